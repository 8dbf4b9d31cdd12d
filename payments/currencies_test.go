package payments_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

func (b *bed) priced(price domain.Money) (domain.Resource, error) {
	return b.bookings.CreateResource(b.ctx, domain.Resource{
		Name: "Room", TimeZone: "UTC", Places: 1, UnitMinutes: 60, Price: price, Hold: time.Hour,
	})
}

// Incident 11 (G3, G8): what the provider was asked for and took, compared with a table worked out by hand from its
// documentation, and not with our own arithmetic. Whatever it could not take is refused before the provider hears of it,
// and before there is a booking.
func TestIncident11_TheProviderReceivesWhatTheTableSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct {
		price    int64 // as the books have it
		currency string
		received int64  // by the provider, in its own units
		refused  string // instead
	}{
		{500, "JPY", 500, ""},   // ¥500
		{1, "KRW", 1, ""},       // ₩1
		{1999, "USD", 1999, ""}, // $19.99
		{829, "USD", 829, ""},
		{1708, "USD", 1708, ""},
		{99_999_999, "USD", 99_999_999, ""},
		{49, "USD", 0, "amount_too_small"}, // two of them could be charged
		{50, "USD", 50, ""},
		{0, "USD", 0, "price"},
		{-1, "USD", 0, "price"},
		{1e15, "USD", 0, "price"},
		{100_000_000, "USD", 0, "price"}, // nine digits
		{5, "UGX", 500, ""},
		{3700, "UGX", 370_000, ""},
		{999_999, "UGX", 99_999_900, ""},
		{1_000_000, "UGX", 0, "price"},
		{5, "ISK", 500, ""},
		{12_990, "ISK", 1_299_000, ""},
		{5120, "KWD", 5120, ""}, // 5.120
		{5124, "KWD", 0, "amount_too_fine"},
		{10, "BHD", 10, ""},
		{250, "JOD", 250, ""},
		{990, "OMR", 990, ""},
		{44_440, "TND", 44_440, ""},
		{1045, "TWD", 1045, ""},
		{17_545, "HUF", 17_545, ""}, // 175.45: charged with two digits, whatever is paid out
		{17_400, "HUF", 0, "amount_too_small"},
		{500, "MGA", 5, ""}, // five ariary
		{550, "MGA", 0, "amount_too_fine"},
		{150_000_000_000, "IDR", 150_000_000_000, ""},
		{1000, "IQD", 0, "currency"},
		{1000, "XXX", 0, "currency"},
	} {
		money := domain.Money{Amount: tt.price, Currency: tt.currency}
		before := len(b.sim.Journal(0))
		r, err := b.priced(money)
		refusedBy := func(v *domain.ValidationError) string { return v.Field }
		if err == nil && tt.refused != "" {
			refusedBy = func(v *domain.ValidationError) string { return v.Code }
			_, err = b.bookings.Accept(b.ctx, b.client, money.String(), bookings.Request{
				ResourceID: r.ID, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Ada", CustomerEmail: "ada@example.org",
				PaymentMethod: "pm_card_visa",
			})
		}
		if tt.refused != "" {
			var invalid *domain.ValidationError
			require.ErrorAs(t, err, &invalid, money)
			require.Equal(t, tt.refused, refusedBy(invalid), "%s: %s", money, invalid.Reason)
			require.Len(t, b.sim.Journal(0), before, money)
			continue
		}
		require.NoError(t, err, money)
		b.resource = r.ID
		id := b.bookAt(money.String(), "pm_card_visa")
		b.work(b.engine(), id, domain.EffectCharge)
		b.agree(id)
		charges := b.charges(id)
		require.Len(t, charges, 1, money)
		require.Equal(t, tt.received, charges[0].Amount, money)
		require.Equal(t, strings.ToLower(tt.currency), charges[0].Currency)
		var received int64
		b.scan(`SELECT amount_received FROM payments WHERE booking_id = $1`, &received, id)
		require.Equal(t, tt.price, received, "%s: and back again", money)
	}
}

// Incident 11 (G4, G5): the provider's minimum has risen and nobody has told us. Expected: a definite end at the first
// answer, the customer told why, the slot free, and nobody who tries again.
func TestIncident11_AmountTooSmallIsADefiniteEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	b.exec(`DELETE FROM charge_minimums`)
	r, err := b.priced(domain.Money{Amount: 49, Currency: "USD"})
	require.NoError(t, err)
	b.resource = r.ID
	id := b.book("pm_card_visa")
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"failed", "refused", false}, []any{booking, payment, taken}, b.tale(id))
	b.agree(id)
	view, err := payments.NewViewer(b.db.Pool).View(t.Context(), b.client, id)
	require.NoError(t, err)
	require.Equal(t, "amount_too_small", view.Payment.FailureCode)
	require.Equal(t, []string{"held", "failed"}, b.events(id))

	verdict, err := p.Charge(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectCharge), Kind: domain.EffectCharge})
	require.NoError(t, err)
	require.Zero(t, verdict.After)
	_, err = b.reconciler(p).Once(b.ctx)
	require.NoError(t, err)
	ofTheCharge := slices.DeleteFunc(b.sim.Journal(0), func(e stripesim.JournalEntry) bool { return e.Operation == "balance_transactions.list" })
	require.Len(t, ofTheCharge, 1, "one create, and nothing after it but the reading of the books")
	var open int
	b.scan(`SELECT count(*) FROM outbox WHERE status NOT IN ('done', 'not_needed') AND kind <> 'publish'`, &open)
	require.Zero(t, open)
	require.NotEqual(t, id, b.bookAt("the next one", "pm_card_visa"), "the slot is free")
}

// The figures by which bookings are accepted (in minor units, in the database) and those by which the provider is asked
// (in its units, in the adapter) say the same of every currency: just what is accepted has an amount to send.
func TestIncident11_AcceptedIsWhatCanBeSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows, err := b.db.Pool.Query(b.ctx, `SELECT currency, step, maximum FROM charge_limits`)
	require.NoError(t, err)
	defer rows.Close()
	n := 0
	for rows.Next() {
		var code string
		var step, maximum int64
		require.NoError(t, rows.Scan(&code, &step, &maximum))
		sent := func(amount int64) bool {
			p := b.gateway.Freeze(domain.OpCreate, payments.Charge{Total: domain.Money{Amount: amount, Currency: code}})
			return p["amount"] != ""
		}
		require.True(t, sent(step), code)
		require.True(t, sent(maximum), code)
		require.False(t, sent(maximum+step), code)
		require.Equal(t, step == 1, sent(step+1), code)
		require.Zero(t, maximum%step, code)
		n++
	}
	require.NoError(t, rows.Err())
	require.Greater(t, n, 100)
}
