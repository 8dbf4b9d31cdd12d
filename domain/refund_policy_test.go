package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/domain"
)

var (
	start = time.Date(2030, 3, 31, 12, 0, 0, 0, time.UTC)
	usual = domain.RefundPolicy{{HoursBefore: 48, Percent: 100}, {HoursBefore: 24, Percent: 50}}
)

// Each step's edge, to the microsecond, as the database counts. That the clocks of the resource's zone are changed in the night
// before moves nothing: hours are elapsed time.
func TestRefundPolicy_TheEdgeOfEachStep(t *testing.T) {
	t.Parallel()
	const tick = time.Microsecond
	at := func(before time.Duration) time.Time { return start.Add(-before) }
	for _, zone := range []*time.Location{time.UTC, berlin(t)} {
		for _, tt := range []struct {
			policy  domain.RefundPolicy
			before  time.Duration
			percent int
			until   time.Time
		}{
			{usual, 1000 * time.Hour, 100, at(48 * time.Hour)},
			{usual, 48*time.Hour + tick, 100, at(48 * time.Hour)},
			{usual, 48 * time.Hour, 100, at(48 * time.Hour)},
			{usual, 48*time.Hour - tick, 50, at(24 * time.Hour)},
			{usual, 24*time.Hour + tick, 50, at(24 * time.Hour)},
			{usual, 24 * time.Hour, 50, at(24 * time.Hour)},
			{usual, 24*time.Hour - tick, 0, time.Time{}},
			{usual, 0, 0, time.Time{}},
			{usual, -time.Hour, 0, time.Time{}},
			{domain.DefaultRefundPolicy(), tick, 100, start},
			{domain.DefaultRefundPolicy(), 0, 100, start},
			{domain.DefaultRefundPolicy(), -tick, 0, time.Time{}},
			{domain.RefundPolicy{}, 1000 * time.Hour, 0, time.Time{}},
			{nil, 1000 * time.Hour, 0, time.Time{}},
			{domain.RefundPolicy{{HoursBefore: 1, Percent: 0}}, 2 * time.Hour, 0, time.Time{}},
		} {
			now := tt.policy.Terms(start.In(zone), at(tt.before).In(zone))[0]
			require.Equal(t, tt.percent, now.Percent, "%s, %s before", tt.policy, tt.before)
			require.True(t, tt.until.Equal(now.Until), "%s, %s before: until %s", tt.policy, tt.before, now.Until)
		}
	}
	require.Equal(t, []domain.RefundTerm{{Percent: 100, Until: at(48 * time.Hour)}, {Percent: 50, Until: at(24 * time.Hour)}, {}},
		usual.Terms(start, at(100*time.Hour)))
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	return zone
}

// A part of each kind of currency: cents; none; three digits of which the last is 0; sent with two digits more, which are 00; and
// counted in whole ariary.
func TestRefundTerm_RoundsInTheCustomersFavour(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		currency   string
		step       int64
		paid, back int64
		percent    int
	}{
		{"USD", 1, 2501, 1251, 50},
		{"USD", 1, 1, 1, 1},
		{"USD", 1, 2500, 825, 33},
		{"JPY", 1, 1001, 501, 50},
		{"JPY", 1, 3, 1, 33},
		{"KWD", 10, 1230, 620, 50},
		{"KWD", 10, 10, 10, 1},
		{"KWD", 10, 1000, 330, 33},
		{"UGX", 1, 5001, 2501, 50},
		{"MGA", 100, 12300, 6200, 50},
		{"EUR", 1, 999_999_999_999, 999_999_999_999, 100},
		{"EUR", 1, 999_999_999_999, 990_000_000_000, 99},
		{"EUR", 1, 2500, 0, 0},
		{"KWD", 10, 15, 15, 100}, // what cannot have been charged is not rounded above itself either
	} {
		got := domain.RefundTerm{Percent: tt.percent}.Of(domain.Money{Amount: tt.paid, Currency: tt.currency}, tt.step)
		require.Equal(t, domain.Money{Amount: tt.back, Currency: tt.currency}, got, "%d%% of %d %s", tt.percent, tt.paid, tt.currency)
	}
}

func policies() *rapid.Generator[domain.RefundPolicy] {
	return rapid.Custom(func(t *rapid.T) domain.RefundPolicy {
		var p domain.RefundPolicy
		hours, percent := domain.MaxRefundHoursBefore+1, 101
		for range rapid.IntRange(0, domain.MaxRefundSteps).Draw(t, "steps") {
			if hours == 0 || percent == 0 {
				break
			}
			hours, percent = rapid.IntRange(0, hours-1).Draw(t, "hours"), rapid.IntRange(0, percent-1).Draw(t, "percent")
			p = append(p, domain.RefundStep{HoursBefore: hours, Percent: percent})
		}
		return p
	})
}

// Of any policy, at any two moments: whoever cancels later never gets more, nobody gets more than was paid or a fraction that
// the currency does not count, nobody loses more than one step to rounding, and what the earlier moment was told would follow
// is what the later one finds.
func TestRefundPolicy_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := policies().Draw(t, "policy")
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		moment := rapid.Int64Range(-int64(400*24*time.Hour/time.Microsecond), int64(24*time.Hour/time.Microsecond))
		a, b := moment.Draw(t, "one moment"), moment.Draw(t, "another")
		if len(p) > 0 && rapid.Bool().Draw(t, "at an edge") {
			edge := rapid.SampledFrom(p).Draw(t, "edge").HoursBefore
			a = -int64(edge)*int64(time.Hour/time.Microsecond) + rapid.Int64Range(-1, 1).Draw(t, "beside it")
		}
		earlier, later := start.Add(time.Duration(min(a, b))*time.Microsecond), start.Add(time.Duration(max(a, b))*time.Microsecond)
		step := rapid.SampledFrom([]int64{1, 10, 100}).Draw(t, "step")
		paid := domain.Money{Amount: step * rapid.Int64Range(1, 999_999_999_999/step).Draw(t, "paid"), Currency: "EUR"}

		now, then := p.Terms(start, earlier), p.Terms(start, later)
		first, second := now[0].Of(paid, step), then[0].Of(paid, step)
		exact := paid.Amount * int64(now[0].Percent) // in hundredths
		switch {
		case second.Amount > first.Amount:
			t.Fatalf("who waits gets more: %s, then %s", first, second)
		case first.Amount < 0 || first.Amount > paid.Amount || first.Amount%step != 0:
			t.Fatalf("%s of %s in steps of %d", first, paid, step)
		case first.Amount*100 < exact || first.Amount*100 >= exact+100*step:
			t.Fatalf("%s is not %d%% of %s rounded up", first, now[0].Percent, paid)
		case now[len(now)-1] != domain.RefundTerm{}:
			t.Fatal("the last term gives nothing, for good")
		}
		for _, term := range now { // the first that has not passed is what holds later
			if term.Until.IsZero() || !later.After(term.Until) {
				if term != then[0] {
					t.Fatalf("told %v, found %v", term, then[0])
				}
				break
			}
		}
	})
}

func TestRefundPolicy_Validate(t *testing.T) {
	t.Parallel()
	for _, good := range []domain.RefundPolicy{nil, {}, domain.DefaultRefundPolicy(), usual, {{8784, 100}, {0, 0}}} {
		require.NoError(t, good.Validate(), good)
	}
	long := domain.RefundPolicy{}
	for i := range 11 {
		long = append(long, domain.RefundStep{HoursBefore: 20 - i, Percent: 50 - i})
	}
	for _, bad := range []domain.RefundPolicy{
		{{-1, 100}}, {{8785, 100}}, {{48, -1}}, {{48, 101}}, {{24, 100}, {48, 50}}, {{48, 100}, {48, 50}}, {{48, 50}, {24, 100}}, {{48, 50}, {24, 50}}, long,
	} {
		var invalid *domain.ValidationError
		require.ErrorAs(t, bad.Validate(), &invalid, "%s", bad)
		require.Equal(t, "refund_policy", invalid.Field)
	}
	require.Equal(t, "48h=100 24h=50", usual.String())
	require.Equal(t, "none", domain.RefundPolicy{}.String())
}
