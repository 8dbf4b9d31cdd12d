package finance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/payments"
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
	b.scan(outside, &strangers, b.window.From, b.window.To.AddDate(0, 0, -1))
	require.Zero(t, strangers, "of the days that were listed")

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

// shortPayouts is a provider that leaves one transaction out of each payout.
type shortPayouts struct{ port }

func (s shortPayouts) EachPayoutTransaction(ctx context.Context, id string, each func([]payments.Transaction) error) error {
	return s.port.EachPayoutTransaction(ctx, id, func(page []payments.Transaction) error { return each(page[1:]) })
}

// A day without anything open is compared again by itself once something is entered into it, however old it is: by the provider, late, by a
// transaction that was open meanwhile, for another day's sake, or of a payout. Nothing else is, and only so much at once.
func TestWatch_ComparesAgainWhereSomethingWasEntered(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, 0)
	d := b.desk(b.provider())
	require.NoError(t, d.Read(t.Context(), b.window))
	require.NoError(t, d.Match(t.Context(), b.window))
	watch := func() (oldest time.Time) {
		before := b.matchings()
		_, err := finance.New(b.Pool, nil, finance.Config{Every: time.Nanosecond, LateAfter: 96 * time.Hour}, quiet()).Watch(t.Context())
		require.NoError(t, err)
		b.scan(`SELECT min(from_at) FROM (SELECT from_at FROM reconciliation_runs WHERE kind = 'match' ORDER BY id OFFSET $1) AS made`, &oldest, before)
		return oldest
	}
	last := b.window.To.AddDate(0, 0, -6)
	require.False(t, watch().Before(last), "nothing was entered: only the last days are compared")
	require.Empty(t, b.found())

	held, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	b.adjustIn(held, "txn_held", b.window.From.AddDate(0, 0, 2))
	b.adjustIn(b.Pool, "txn_late", b.window.From.Add(time.Hour))
	require.Equal(t, b.window.From, watch().UTC())
	require.Equal(t, []string{"unexplained txn_late"}, b.found())
	require.NoError(t, held.Commit(t.Context()))
	watch()
	require.Equal(t, []string{"unexplained txn_held", "unexplained txn_late"}, b.found())
	b.explain()
	require.False(t, watch().Before(last))

	// The refund of an old day has failed on a new one.
	back := failure(b, last)
	require.NoError(t, payments.StoreTransactions(t.Context(), b.Pool, []payments.Transaction{back}))
	watch()
	require.Equal(t, []string{"refund_missing " + back.SourceID}, b.found())
	b.explain()

	// What went out with an old payout is read late.
	var payout string
	b.scan(`
		UPDATE payouts SET rows_read_at = NULL, asked_at = now() - interval '1 day' WHERE id = (
		SELECT p.id FROM payouts p JOIN provider_transactions t ON t.source_id = p.id AND t.category = 'payout' WHERE t.created_at < $1 LIMIT 1) RETURNING id`, &payout, last)
	b.exec(`DELETE FROM payout_transactions WHERE payout_id = $1`, payout)
	require.False(t, watch().Before(last))
	_, err = b.desk(shortPayouts{b.provider()}).ReadPayout(t.Context())
	require.NoError(t, err)
	watch()
	require.Equal(t, []string{"payout_differs " + payout}, b.found())
	b.explain()

	// Many days at once: some in each round. Days that were not listed wait.
	b.adjustIn(b.Pool, "txn_unlisted", b.window.From.AddDate(-2, 0, 0))
	for i := range 40 {
		b.adjustIn(b.Pool, fmt.Sprintf("txn_%02d", i), b.window.From.AddDate(0, 0, -1-2*i))
	}
	b.exec(`INSERT INTO reconciliation_runs (id, kind, status, from_at, to_at, finished_at) VALUES (gen_random_uuid(), 'read', 'complete', $1, $2, now())`,
		b.window.From.AddDate(0, 0, -90), b.window.From)
	watch()
	require.Len(t, b.found(), 31)
	watch()
	require.Len(t, b.found(), 40)
	b.explain()
	require.False(t, watch().Before(last))
}

// failure is a transaction of the last day that brings a whole refund back, which was made before then.
func failure(b *bed, then time.Time) payments.Transaction {
	b.Helper()
	at := b.window.To.Add(-time.Hour)
	x := payments.Transaction{ID: "txn_failure", Type: "refund_failure", Category: "refund_failure", Created: at, Available: at, Presented: &domain.Money{}}
	require.NoError(b, b.Pool.QueryRow(b.Context(), `
		SELECT t.source_id, t.intent_id, -t.amount, -t.amount, t.currency, -coalesce(t.presented_amount, t.amount), coalesce(t.presented_currency, t.currency)
		  FROM provider_transactions t JOIN refunds r ON r.provider_refund_id = t.source_id
		 WHERE t.category = 'refund' AND t.fee = 0 AND r.status = 'succeeded' AND t.created_at < $1
		   AND NOT EXISTS (SELECT FROM provider_transactions e WHERE e.source_id = t.source_id AND e.id <> t.id) LIMIT 1`, then).
		Scan(&x.SourceID, &x.IntentID, &x.Amount.Amount, &x.Net, &x.Amount.Currency, &x.Presented.Amount, &x.Presented.Currency))
	return x
}
