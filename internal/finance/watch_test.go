package finance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/finance"
)

// What does not match is on the list before anybody asks for a report, as far as it was listed; and it closes by itself, however old.
func TestWatch(t *testing.T) {
	t.Parallel()
	b := setup(t, 1500, 3)
	watch := func(every time.Duration) {
		more, err := finance.New(b.Pool, nil, finance.Config{Every: every, LateAfter: 96 * time.Hour}, quiet()).Watch(t.Context())
		require.NoError(t, err)
		require.False(t, more)
	}
	watch(time.Hour)
	require.Zero(t, b.matchings(), "nothing was listed")

	require.NoError(t, b.desk(b.provider()).Read(t.Context(), b.window))
	b.exec(`DELETE FROM reconciliation_runs WHERE kind = 'read' AND to_at = $1`, b.window.To) // the last day was not
	watch(time.Hour)
	require.Equal(t, 1, b.matchings())
	require.NotEmpty(t, b.found())
	require.Subset(t, b.planted(), b.found())
	outside := `SELECT count(*) FROM reconciliation_items WHERE occurred_at < $1 OR occurred_at >= $2`
	var strangers int
	b.scan(outside, &strangers, b.window.To.AddDate(0, 0, -6), b.window.To.AddDate(0, 0, -1))
	require.Zero(t, strangers, "of the last days that were listed")

	require.NoError(t, b.desk(b.provider()).Read(t.Context(), b.window))
	require.NoError(t, b.desk(nil).Match(t.Context(), b.window))
	made := b.matchings()
	watch(10 * 365 * 24 * time.Hour)
	require.Equal(t, made, b.matchings(), "it was compared a while ago")

	var about, refund string
	b.scan(`SELECT about FROM reconciliation_items WHERE kind = 'refund_missing' AND status = 'open' ORDER BY occurred_at LIMIT 1`, &about)
	b.scan(`SELECT provider_refund_id FROM refunds WHERE id = $1::uuid`, &refund, about)
	b.exec(`
		INSERT INTO provider_transactions (id, type, category, source_id, intent_id, amount, fee, net, currency, presented_amount, presented_currency, created_at, available_at)
		SELECT 'txn_found', 'refund', 'refund', $1, p.provider_intent_id, -r.amount, 0, -r.amount, r.currency, -r.amount, r.currency, r.created_at, r.created_at
		  FROM refunds r JOIN payments p ON p.id = r.payment_id WHERE r.provider_refund_id = $1`, refund)
	watch(time.Nanosecond)
	var status string
	b.scan(`SELECT status FROM reconciliation_items WHERE about = $1`, &status, about)
	require.Equal(t, "closed", status)
	require.Len(t, b.found(), len(b.planted())-1)
}

// A comparison is shown again only of what it has compared; and somebody's report of one day is no comparison of the last ones.
func TestReport_OfAFreshComparison(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, 0)
	d := finance.New(b.Pool, b.provider(), finance.Config{ReadsPerSecond: 1e6, Fresh: time.Hour}, quiet())
	for range 2 {
		r, err := d.Report(t.Context(), b.period())
		require.NoError(t, err)
		require.Equal(t, finance.VerdictClean, r.Verdict())
	}
	require.Equal(t, 1, b.matchings())
	b.adjust("txn_since")
	r, err := d.Report(t.Context(), b.period())
	require.NoError(t, err)
	require.Equal(t, finance.VerdictExceptions, r.Verdict())

	b.exec(`DELETE FROM reconciliation_items`)
	b.exec(`DELETE FROM reconciliation_runs WHERE kind = 'match'`)
	watched := finance.New(b.Pool, nil, finance.Config{Every: 10 * 365 * 24 * time.Hour, LateAfter: 96 * time.Hour}, quiet())
	require.NoError(t, watched.Match(t.Context(), finance.Window{From: b.window.To.AddDate(0, 0, -1), To: b.window.To}))
	_, err = watched.Watch(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, b.matchings(), "the days before it, too")
}
