package bookings_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
)

func (b *bed) create(price domain.Money, places, unitMinutes int) (domain.Resource, error) {
	return b.service.CreateResource(b.ctx, domain.Resource{
		Name: "Room", TimeZone: "UTC", Places: places, UnitMinutes: unitMinutes, Price: price, Hold: time.Minute,
	})
}

// Incident 11: a price at which no booking whatever can be charged is refused with the resource; one at which some can
// be is taken.
func TestIncident11_APriceThatCouldNeverBeCharged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const month = 44640
	for _, tt := range []struct {
		amount      int64
		currency    string
		places      int
		unitMinutes int
		field       string // at fault; empty: taken
	}{
		{1, "EUR", 1, 60, ""},         // fifty hours reach the minimum
		{1, "EUR", 1, month, "price"}, // eleven months, the longest booking, do not
		{1, "EUR", 5, month, ""},      // ten months of five places do
		{1, "EUR", 4, month, "price"}, // eleven of four do not
		{5005, "KWD", 1, 60, ""},      // two hours are 10.010
		{5001, "KWD", 1, 60, ""},      // ten hours are 50.010
		{9_999_999, "KWD", 1, 60, ""}, // ten hours are 99999.990, the most
		{10_000_001, "KWD", 1, 60, "price"},
		{33, "MGA", 1, month, "price"}, // a hundred months would be whole ariary
		{33, "MGA", 10, month, ""},
		{99_999_999, "EUR", 1, 60, ""},
		{100_000_000, "EUR", 1, 60, "price"},
		{999_999_999_999, "IDR", 1, 60, ""},
		{1_000_000_000_000, "IDR", 1, 60, "price"},
		{999_999, "ISK", 1, 60, ""},
		{1_000_000, "ISK", 1, 60, "price"},
		{1000, "IQD", 1, 60, "currency"},
		{1000, "LYD", 1, 60, "currency"},
		{1000, "CLF", 1, 60, "currency"},
	} {
		_, err := b.create(domain.Money{Amount: tt.amount, Currency: tt.currency}, tt.places, tt.unitMinutes)
		if tt.field == "" {
			require.NoError(t, err, "%+v", tt)
			continue
		}
		var invalid *domain.ValidationError
		require.ErrorAs(t, err, &invalid, "%+v", tt)
		require.Equal(t, tt.field, invalid.Field, "%+v", tt)
	}
}

// Minimums are data with dates: the newest that is not in the future counts, for bookings and for new prices.
func TestIncident11_MinimumsHaveDates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r, err := b.create(domain.Money{Amount: 50, Currency: "EUR"}, 100, 60)
	require.NoError(t, err)
	day := func(n int) time.Time { return time.Now().UTC().AddDate(0, 0, n).Truncate(24 * time.Hour) }
	set := func(amount int64, asOf time.Time) {
		require.NoError(t, b.service.SetMinimum(b.ctx, domain.Money{Amount: amount, Currency: "EUR"}, asOf))
	}
	n := 0
	refused := func() bool {
		n++
		request := request(r.ID, 0)
		request.End = request.Start.Add(time.Hour)
		_, err := b.service.Accept(b.ctx, b.client, fmt.Sprint(n), request)
		var invalid *domain.ValidationError
		if err != nil {
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "amount_too_small", invalid.Code)
		}
		return err != nil
	}
	require.False(t, refused())
	set(60, day(2))
	require.False(t, refused(), "not yet")
	set(60, day(-2))
	require.True(t, refused())
	set(40, day(-3))
	require.True(t, refused(), "an older figure, entered later, does not count")
	set(50, day(-1))
	require.False(t, refused(), "the newest")
	set(51, day(-1))
	require.True(t, refused(), "corrected")
	set(0, day(-1))
	require.False(t, refused(), "none")

	listed, err := b.service.Minimums(b.ctx)
	require.NoError(t, err)
	holds := map[string]int{}
	for _, m := range listed {
		if m.Now {
			holds[m.Least.Currency]++
			if m.Least.Currency == "EUR" {
				require.Equal(t, bookings.Minimum{Least: domain.Money{Amount: 0, Currency: "EUR"}, AsOf: day(-1), Now: true}, m)
			}
		}
	}
	for currency, n := range holds {
		require.Equal(t, 1, n, currency)
	}
	for _, wrong := range []domain.Money{{Amount: -1, Currency: "EUR"}, {Amount: 100_000_000, Currency: "EUR"}, {Amount: 1, Currency: "IQD"}} {
		var invalid *domain.ValidationError
		require.ErrorAs(t, b.service.SetMinimum(b.ctx, wrong, day(0)), &invalid, wrong)
	}
}
