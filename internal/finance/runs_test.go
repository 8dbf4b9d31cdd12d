package finance_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/outbox"
	"holdfast/payments"
)

// The same period twice changes nothing; two runs at once neither duplicate nor wait long; one that was killed is taken up; what is
// explained closes by itself; what is signed off stays so until its amount changes.
func TestMatch_AgainAtOnceAndResumed(t *testing.T) {
	t.Parallel()
	b := setup(t, 1500, 2)
	d := b.desk(b.provider())
	require.NoError(t, d.Read(t.Context(), b.window))

	// Killed half-way: the run is not ended, and has reached the middle. Nobody holds its lock.
	ctx, kill := context.WithCancel(t.Context())
	killed := finance.New(b.Pool, b.provider(), finance.Config{ReadsPerSecond: 1e6, Stride: 50, Progress: func(p finance.Progress) {
		if p.Stage == "match" && p.Done > 0.4 {
			kill()
		}
	}}, quiet())
	require.Error(t, killed.Match(ctx, b.window))
	var reached time.Time
	b.scan(`SELECT reached_at FROM reconciliation_runs WHERE kind = 'match' AND status = 'running'`, &reached)
	require.True(t, reached.After(b.window.From) && reached.Before(b.window.To), "%s", reached)
	require.Subset(t, b.planted(), b.found(), "what is found so far is true")

	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { require.NoError(t, d.Match(t.Context(), b.window)) })
	}
	both.Wait()
	require.Equal(t, b.planted(), b.found())
	var runs, items int
	b.scan(`SELECT count(*) FROM reconciliation_runs WHERE kind = 'match'`, &runs)
	require.Equal(t, 2, runs, "the killed one was taken up")
	before := b.everything()
	require.NoError(t, d.Read(t.Context(), b.window))
	require.NoError(t, d.Match(t.Context(), b.window))
	require.Equal(t, before, b.everything())

	hurried := finance.New(b.Pool, nil, finance.Config{Wait: time.Millisecond}, quiet())
	b.exec(`SELECT pg_advisory_lock(1)`) // another lock is nobody's business
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, int64(0x66696e616e6365))
	require.NoError(t, err)
	require.ErrorIs(t, hurried.Match(t.Context(), b.window), domain.ErrBusy)
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)

	// Explained: the refund that was missing turns up.
	var id, about string
	b.scan(`SELECT about FROM reconciliation_items WHERE kind = 'refund_missing' LIMIT 1`, &about)
	b.scan(`SELECT provider_refund_id FROM refunds WHERE id = $1::uuid`, &id, about)
	b.exec(`
		INSERT INTO provider_transactions (id, type, category, source_id, intent_id, amount, fee, net, currency, presented_amount, presented_currency, created_at, available_at)
		SELECT 'txn_found', 'refund', 'refund', $1, p.provider_intent_id, -r.amount, 0, -r.amount, r.currency, -r.amount, r.currency, r.created_at, r.created_at
		  FROM refunds r JOIN payments p ON p.id = r.payment_id WHERE r.provider_refund_id = $1`, id)
	require.NoError(t, d.Match(t.Context(), b.window))
	b.scan(`SELECT count(*) FROM reconciliation_items WHERE about = $1 AND status = 'closed'`, &items, about)
	require.Equal(t, 1, items)

	// Signed off, with who and why on record.
	open, err := d.Items(t.Context(), finance.Filter{Status: "open", Kind: finance.FeeDiffers})
	require.NoError(t, err)
	noted, err := d.Note(t.Context(), open[0].ID, "ada", "asked the provider", "bea")
	require.NoError(t, err)
	require.Equal(t, []string{"asked the provider", "bea"}, []string{noted.Note, noted.Owner})
	_, err = d.SignOff(t.Context(), open[0].ID, "ada", "")
	refused := &outbox.RefusedError{}
	require.ErrorAs(t, err, &refused, "no reason")
	signed, err := d.SignOff(t.Context(), open[0].ID, "ada", "a new tariff since Monday")
	require.NoError(t, err)
	require.Equal(t, "signed_off", signed.Status)
	_, err = d.SignOff(t.Context(), open[0].ID, "bea", "me, too")
	require.ErrorAs(t, err, &refused)
	_, err = d.SignOff(t.Context(), 1<<40, "bea", "none")
	require.ErrorIs(t, err, domain.ErrNotFound)
	var acts int
	b.scan(`SELECT count(*) FROM operator_actions WHERE action IN ('finance_note', 'finance_sign_off') AND actor = 'ada'`, &acts)
	require.Equal(t, 2, acts)
	require.NoError(t, d.Match(t.Context(), b.window))
	require.NotContains(t, b.found(), finance.FeeDiffers+" "+signed.About, "it stays signed off")
	b.exec(`UPDATE provider_transactions SET fee = fee + 5, net = net - 5 WHERE id = $1`, signed.About)
	require.NoError(t, d.Match(t.Context(), b.window))
	require.Contains(t, b.found(), finance.FeeDiffers+" "+signed.About, "it is another sum now")
}

// faulty is a provider whose listing breaks in one way.
type faulty struct {
	port

	after int // transactions
	err   error
}

func (f faulty) EachTransaction(ctx context.Context, from, to time.Time, each func([]payments.Transaction) error) error {
	seen := 0
	return f.port.EachTransaction(ctx, from, to, func(page []payments.Transaction) error {
		if seen += len(page); seen > f.after {
			return f.err
		}
		return each(page)
	})
}

// No exception is ever raised of what was not read whole; what was read stays, and the next reading goes on from there.
func TestMatch_AnIncompleteListingAccusesNobody(t *testing.T) {
	t.Parallel()
	b := setup(t, 1500, 2)
	broken := b.desk(faulty{port{b.books, 20}, 50, errors.New("the provider answers 500")})
	require.ErrorIs(t, broken.Read(t.Context(), b.window), finance.ErrIncomplete)
	require.ErrorIs(t, broken.Match(t.Context(), b.window), finance.ErrIncomplete)
	period := finance.Period{From: b.window.From.Format(time.DateOnly), To: b.window.To.Format(time.DateOnly), Zone: "UTC"}
	r, err := broken.Report(t.Context(), period)
	require.NoError(t, err)
	require.False(t, r.Complete)
	require.NotEmpty(t, r.Incomplete)
	require.Empty(t, b.found())
	var stored int
	b.scan(`SELECT count(*) FROM provider_transactions`, &stored)
	require.Positive(t, stored)
	_, err = broken.SignOffPeriod(t.Context(), period, "ada", "all well")
	require.ErrorIs(t, err, finance.ErrIncomplete)

	r, err = b.desk(b.provider()).Report(t.Context(), period)
	require.NoError(t, err)
	require.True(t, r.Complete)
	require.Equal(t, b.planted(), b.found())
	require.Len(t, r.Exceptions, len(b.planted()))
	b.agrees()
}

// All identities hold but those of the payouts that do not add up; a signed period is locked, and what differs later is told.
func TestReport_IdentitiesAndSignOff(t *testing.T) {
	t.Parallel()
	b := setup(t, 1500, 0)
	d := b.desk(b.provider())
	for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Kathmandu"} {
		period := finance.Period{From: b.window.From.AddDate(0, 0, 1).Format(time.DateOnly), To: b.window.To.AddDate(0, 0, -1).Format(time.DateOnly), Zone: zone}
		w, err := d.Window(t.Context(), period)
		require.NoError(t, err)
		require.NoError(t, d.Read(t.Context(), finance.Window{From: b.window.From, To: w.To}))
		r, err := d.Report(t.Context(), period)
		require.NoError(t, err)
		require.True(t, r.Complete, r.Incomplete)
		require.Empty(t, r.Exceptions)
		require.Zero(t, r.Broken(), "%v", r.Identities)
		require.NotEmpty(t, r.Identities)
		require.Len(t, r.Unchecked, 1, "no stream was given")
		var net, days int64
		for _, bal := range r.Balances {
			net += bal.Activity + bal.Payouts
		}
		for _, day := range r.Days {
			days += day.Net
		}
		require.Equal(t, net, days)
		if zone != "UTC" {
			continue
		}
		_, err = d.SignOffPeriod(t.Context(), period, "ada", "the month is closed")
		require.NoError(t, err)
		refused := &outbox.RefusedError{}
		_, err = d.SignOffPeriod(t.Context(), period, "bea", "once more")
		require.ErrorAs(t, err, &refused)
	}
	b.exec(`
		INSERT INTO provider_transactions (id, type, category, source_id, intent_id, amount, fee, net, currency, created_at, available_at)
		VALUES ('txn_late', 'charge', 'charge', 'ch_late', 'pi_late', 100, 0, 100, 'USD', $1, $1)`, b.window.From.AddDate(0, 0, 3))
	require.NoError(t, d.Read(t.Context(), b.window))
	require.NoError(t, d.Match(t.Context(), b.window))
	items, err := d.Items(t.Context(), finance.Filter{Status: "open"})
	require.NoError(t, err)
	kinds := map[string]bool{}
	for _, i := range items {
		kinds[i.Kind] = i.AfterSignOff
		if i.Kind == finance.PeriodChanged {
			require.Regexp(t, `that ada has signed off, of 20\d\d-\d\d-\d\d to before 20\d\d-\d\d-\d\d`+
				`, days of UTC: charge in USD was \d+\.\d\d USD net of \d+, and is \d+\.\d\d USD net of \d+$`, i.Why)
		}
	}
	require.Equal(t, map[string]bool{finance.ChargedWithoutBooking: true, finance.FeeDiffers: true, finance.PeriodChanged: true}, kinds)
}

// Many readers share one budget.
func TestBudget_IsShared(t *testing.T) {
	t.Parallel()
	b := setup(t, 10, 0)
	started := time.Now()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			budget := finance.NewBudget(b.Pool, 20)
			for range 10 {
				require.NoError(t, budget.Take(t.Context()))
			}
		})
	}
	readers.Wait()
	require.GreaterOrEqual(t, time.Since(started), 900*time.Millisecond, "40 pages at 20 a second, of which 20 at once")
}

// manual is a provider of which every payout was made by hand.
type manual struct{ port }

func (m manual) Payout(ctx context.Context, id string) (payments.Payout, error) {
	p, err := m.port.Payout(ctx, id)
	p.Automatic = false
	return p, err
}

// A report does not tell which payouts are automatic: one that the provider then calls manual is read once.
func TestRead_AManualPayoutOfAFile(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, 0)
	b.importAll(b.desk(nil))
	b.exec(`UPDATE payouts SET rows_read_at = NULL`)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, b.desk(manual{b.provider()}).Read(ctx, b.window))
}
