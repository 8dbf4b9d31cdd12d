package finance_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/outbox"
	"holdfast/payments"
)

// A period is not signed off while one of its equations is broken, though no exception is open; the refusal names it. A payout that differs
// from its rows by just what was signed off counts as explained.
func TestSignOffPeriod_NeedsEveryIdentity(t *testing.T) {
	t.Parallel()
	b := setup(t, 1500, 0)
	d := b.desk(b.provider())
	period := finance.Period{From: b.window.From.Format(time.DateOnly), To: b.window.To.Format(time.DateOnly), Zone: "UTC"}
	r, err := d.Report(t.Context(), period)
	require.NoError(t, err)
	require.Zero(t, r.Open()+r.Broken())
	refused := func(names ...string) {
		t.Helper()
		_, err := d.SignOffPeriod(t.Context(), period, "ada", "the month is closed")
		no := &outbox.RefusedError{}
		require.ErrorAs(t, err, &no)
		for _, name := range names {
			require.Contains(t, no.Reason, name)
		}
	}

	payout := r.Payouts[0]
	b.exec(`DELETE FROM payout_transactions WHERE (payout_id, transaction_id) = (SELECT payout_id, min(transaction_id) FROM payout_transactions WHERE payout_id = $1 GROUP BY 1)`,
		payout.ID)
	refused("1 exception is open")
	open, err := d.Items(t.Context(), finance.Filter{Status: "open"})
	require.NoError(t, err)
	require.Equal(t, finance.PayoutDiffers, open[0].Kind)
	_, err = d.SignOff(t.Context(), open[0].ID, "ada", "the provider has looked into it")
	require.NoError(t, err)
	r, err = d.Report(t.Context(), period)
	require.NoError(t, err)
	require.Zero(t, r.Open()+r.Broken(), "%v", r.Identities)

	var currency string
	b.scan(`
		INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, occurred_at)
		SELECT 'provider', 'adjustment', 'provider_balance', 'adjustments', 7, currency, id, created_at FROM provider_transactions WHERE category = 'charge' LIMIT 1
		RETURNING currency`, &currency)
	refused("2 of the period's checks", "our ledger's charge = the provider's ("+currency+")", "opening + activity + payouts = closing ("+currency+")")
	b.exec(`
		INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, occurred_at)
		SELECT origin, kind, credit, debit, amount, currency, about, occurred_at FROM ledger_entries WHERE kind = 'adjustment'`)
	signed, err := d.SignOffPeriod(t.Context(), period, "ada", "the month is closed")
	require.NoError(t, err)
	require.Equal(t, "ada", signed.SignedOffBy)

	// The report stays as it was signed, whatever comes in.
	r, err = d.Report(t.Context(), period)
	require.NoError(t, err)
	b.adjust("txn_since")
	now, err := d.Report(t.Context(), period)
	require.NoError(t, err)
	require.NotEqual(t, r.Balances, now.Balances)
	kept, err := d.AsSigned(t.Context(), period)
	require.NoError(t, err)
	figures := func(r finance.Report) string {
		text, err := json.Marshal([]any{r.Balances, r.Categories, r.Days, r.Sides, r.Payouts, r.Identities, r.SignedOff})
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, figures(r), figures(kept))
	require.Equal(t, []any{finance.VerdictClean, "Nothing: it is signed off."}, []any{kept.Verdict(), kept.Next()})
	_, err = d.AsSigned(t.Context(), finance.Period{From: period.From, To: b.window.To.AddDate(0, 0, -1).Format(time.DateOnly), Zone: "UTC"})
	require.ErrorContains(t, err, "no report was signed of just these days")
}

// What comes in between comparing and signing is not signed unseen; and what was compared by a run that was killed is compared again.
func TestSignOffPeriod_SignsOnlyWhatWasCompared(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, 0)
	d := b.desk(b.provider())
	_, err := d.Report(t.Context(), b.period())
	require.NoError(t, err)
	sign := b.aboutToSign(d)
	b.adjust("txn_between")
	refused := &outbox.RefusedError{}
	require.ErrorAs(t, sign(), &refused)
	require.Contains(t, refused.Reason, "while it was compared")
	_, err = d.SignOffPeriod(t.Context(), b.period(), "ada", "closed")
	require.ErrorContains(t, err, "1 exception is open")

	b.exec(`UPDATE reconciliation_items SET status = 'signed_off', signed_off_by = 'ada', sign_off_reason = 'a gift', ended_at = now() WHERE status = 'open'`)
	b.exec(`UPDATE reconciliation_runs SET status = 'running', reached_at = to_at, finished_at = NULL WHERE id = (
		SELECT id FROM reconciliation_runs WHERE kind = 'match' ORDER BY id DESC LIMIT 1)`)
	b.exec(`UPDATE fee_schedules SET fixed = fixed + 1 WHERE category = 'charge'`) // since the run was killed
	_, err = d.SignOffPeriod(t.Context(), b.period(), "ada", "closed")
	require.ErrorContains(t, err, "exceptions are open")
}

// What was written before a comparison and committed after it was not compared, whatever its time says: the period is not signed, no report is
// made of that comparison, and a killed run that has passed it is not taken up.
func TestMatch_HasNotSeenWhatIsCommittedLater(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, 0)
	d := finance.New(b.Pool, b.provider(), finance.Config{ReadsPerSecond: 1e6, Fresh: time.Hour}, quiet())
	hold := func(id string) pgx.Tx {
		tx, err := b.Pool.Begin(t.Context())
		require.NoError(t, err)
		b.adjustIn(tx, id, b.window.From.Add(time.Hour))
		return tx
	}
	held := hold("txn_reported")
	r, err := d.Report(t.Context(), b.period())
	require.NoError(t, err)
	require.Equal(t, finance.VerdictClean, r.Verdict())
	require.NoError(t, held.Commit(t.Context()))
	r, err = d.Report(t.Context(), b.period())
	require.NoError(t, err)
	require.Equal(t, 1, r.Open(), "it is compared again")
	b.explain()

	held = hold("txn_passed")
	require.NoError(t, d.Match(t.Context(), b.window))
	b.exec(`UPDATE reconciliation_runs SET status = 'running', reached_at = to_at, finished_at = NULL WHERE id = (
		SELECT id FROM reconciliation_runs WHERE kind = 'match' ORDER BY id DESC LIMIT 1)`)
	require.NoError(t, held.Commit(t.Context()))
	require.NoError(t, d.Match(t.Context(), b.window))
	require.Equal(t, []string{"unexplained txn_passed"}, b.found())
	b.explain()

	held = hold("txn_signed")
	sign := b.aboutToSign(d)
	require.NoError(t, held.Commit(t.Context()))
	require.ErrorContains(t, sign(), "while it was compared")
	_, err = d.SignOffPeriod(t.Context(), b.period(), "ada", "closed")
	require.ErrorContains(t, err, "1 exception is open")
	b.explain()
	_, err = d.SignOffPeriod(t.Context(), b.period(), "ada", "closed")
	require.NoError(t, err)

	// What has changed of a signed period was looked at; what is committed after that was not.
	b.adjust("txn_seen")
	held = hold("txn_unseen")
	require.NoError(t, d.Match(t.Context(), b.window))
	require.Equal(t, []string{"period_changed " + b.signed(), "unexplained txn_seen"}, b.found())
	b.explain()
	require.NoError(t, held.Commit(t.Context()))
	require.NoError(t, d.Match(t.Context(), b.window))
	require.Equal(t, []string{"period_changed " + b.signed(), "unexplained txn_unseen"}, b.found())
}

// aboutToSign begins to sign the period off, and returns when it is compared and not signed yet. What it returns lets it be signed.
func (b *bed) aboutToSign(d *finance.Desk) (sign func() error) {
	b.Helper()
	made := b.matchings()
	gate, err := b.Pool.Begin(b.Context())
	require.NoError(b, err)
	_, err = gate.Exec(b.Context(), `LOCK TABLE finance_periods IN SHARE ROW EXCLUSIVE MODE`)
	require.NoError(b, err)
	done := make(chan error, 1)
	go func() {
		_, err := d.SignOffPeriod(b.Context(), b.period(), "ada", "closed")
		done <- err
	}()
	require.Eventually(b, func() bool { return b.matchings() > made }, time.Minute, 5*time.Millisecond)
	return func() error {
		b.Helper()
		require.NoError(b, gate.Commit(b.Context()))
		return <-done
	}
}

// signed is the period that was signed off.
func (b *bed) signed() (id string) {
	b.Helper()
	b.scan(`SELECT id::text FROM finance_periods`, &id)
	return id
}

// explain signs off whatever is open.
func (b *bed) explain() {
	b.Helper()
	b.exec(`UPDATE reconciliation_items SET status = 'signed_off', signed_off_by = 'ada', sign_off_reason = 'a gift', ended_at = now() WHERE status = 'open'`)
}

// adjust lets the provider move the balance for no reason that bookings have.
func (b *bed) adjust(id string) {
	b.Helper()
	b.adjustIn(b.Pool, id, b.window.From.Add(time.Hour))
}

func (b *bed) adjustIn(db postgres.Batcher, id string, at time.Time) {
	b.Helper()
	require.NoError(b, payments.StoreTransactions(b.Context(), db, []payments.Transaction{{
		ID: id, Type: "adjustment", Category: "other_adjustment", Amount: domain.Money{Amount: 500, Currency: "EUR"}, Net: 500, Created: at, Available: at,
	}}))
}

// A period counts as signed only if all of it is. Who signs more than is left is told what is signed, and what is left; what is not over is
// refused for that, and for nothing else.
func TestSignOffPeriod_SaysWhatIsSignedAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	d := finance.New(db.Pool, nil, finance.Config{}, quiet())
	_, err := db.Pool.Exec(t.Context(), `INSERT INTO reconciliation_runs (id, kind, status, from_at, to_at, finished_at) VALUES ($1, 'read', 'complete', '2025-08-01Z', '2025-12-01Z', now())`, uuid.New())
	require.NoError(t, err)
	const newYork = "America/New_York"
	signed, err := d.SignOffPeriod(t.Context(), finance.Period{From: "2025-10-01", To: "2025-11-01", Zone: newYork}, "ada", "October is closed")
	require.NoError(t, err)
	require.Equal(t, "October 2025, days of America/New_York", signed.Days())
	for _, c := range []struct{ from, to, zone, left string }{
		{"2025-09-01", "2025-11-03", newYork, "from 2025-09-01 to before 2025-10-01, and from 2025-11-01 to before 2025-11-03"},
		{"2025-10-01", "2025-11-01", "UTC", "no whole day of UTC is left"},
		{"2025-10-31", "2025-11-03", "UTC", "from 2025-11-02 to before 2025-11-03"},
	} {
		p := finance.Period{From: c.from, To: c.to, Zone: c.zone}
		r, err := d.Report(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, []any{finance.VerdictClean, false, 1}, []any{r.Verdict(), r.Signed(), len(r.SignedOff)})
		_, err = d.SignOffPeriod(t.Context(), p, "bea", "all of it")
		require.ErrorContains(t, err, "October 2025, days of America/New_York (by ada, ")
		require.ErrorContains(t, err, c.left)
		require.Contains(t, r.Next(), c.left)
	}
	r, err := d.Report(t.Context(), finance.Period{From: "2025-10-02", To: "2025-10-20", Zone: "Asia/Tokyo"})
	require.NoError(t, err)
	require.True(t, r.Signed())
	require.Equal(t, "Nothing: it is signed off.", r.Next())
	today := time.Now().UTC()
	_, err = d.SignOffPeriod(t.Context(), finance.Period{From: today.Format(time.DateOnly), To: today.AddDate(0, 0, 1).Format(time.DateOnly), Zone: "UTC"}, "ada", "today")
	require.ErrorContains(t, err, "refused: the period is not over, or has only just ended: it can be signed off from 20")
}
