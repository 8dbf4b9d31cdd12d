package finance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/payments"
)

// slow is a provider that answers once it is let.
type slow struct {
	port

	let <-chan struct{}
}

func (s slow) EachTransaction(ctx context.Context, from, to time.Time, each func([]payments.Transaction) error) error {
	select {
	case <-s.let:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.port.EachTransaction(ctx, from, to, each)
}

func (b *bed) period() finance.Period {
	return finance.Period{From: b.window.From.Format(time.DateOnly), To: b.window.To.Format(time.DateOnly), Zone: "UTC"}
}

// matchings counts the comparisons that were made.
func (b *bed) matchings() (n int) {
	b.Helper()
	b.scan(`SELECT count(*) FROM reconciliation_runs WHERE kind = 'match' AND status = 'complete'`, &n)
	return n
}

// Whoever cannot wait is told how far it is, and finds the comparison done when asking again: it goes on without them, and once.
func TestComparing_GoesOnWithoutWhoHasAsked(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000, 1)
	let := make(chan struct{})
	life, end := context.WithCancel(t.Context())
	c := finance.NewComparing(life, time.Second, func(tell func(finance.Progress)) *finance.Desk {
		return finance.New(b.Pool, slow{b.provider(), let}, finance.Config{ReadsPerSecond: 1e6, Fresh: time.Hour, Progress: tell}, quiet())
	})
	for range 3 {
		_, err := c.Report(t.Context(), b.period())
		far := &finance.ComparingError{}
		require.ErrorAs(t, err, &far)
		require.ErrorIs(t, err, domain.ErrBusy)
	}
	close(let)
	var r finance.Report
	for range 2 { // the second time it was done before
		require.Eventually(t, func() (done bool) {
			var err error
			r, err = c.Report(t.Context(), b.period())
			return err == nil
		}, patience, 10*time.Millisecond)
	}
	require.True(t, r.Complete, r.Incomplete)
	require.Equal(t, b.planted(), b.found())
	require.Len(t, r.Exceptions, len(b.planted()))
	require.Equal(t, 1, b.matchings())

	_, err := b.desk(b.provider()).Report(t.Context(), b.period())
	require.NoError(t, err)
	require.Equal(t, 2, b.matchings(), "who compares anew compares anew")

	// What is found open since is not signed, though a fresh comparison is there.
	for _, i := range r.Exceptions {
		_, err := c.SignOff(t.Context(), i.ID, "ada", "looked at")
		require.NoError(t, err)
	}
	b.exec(`UPDATE provider_transactions SET amount = amount + 1, net = net + 1, presented_amount = presented_amount + 1 WHERE id = (
		SELECT id FROM provider_transactions t WHERE category = 'charge' AND NOT EXISTS (SELECT FROM reconciliation_items i WHERE i.about = t.id) LIMIT 1)`)
	require.Eventually(t, func() bool {
		_, err = c.SignOffPeriod(t.Context(), b.period(), "ada", "closed")
		return !errors.Is(err, domain.ErrBusy)
	}, patience, 10*time.Millisecond)
	require.ErrorContains(t, err, "open")

	end() // with the process
	_, err = c.SignOffPeriod(t.Context(), b.period(), "ada", "closed")
	require.Error(t, err)
}

// Who asks for many periods at once does not make everybody wait for all of them, nor for one of many years.
func TestComparing_BoundsWhatIsAsked(t *testing.T) {
	t.Parallel()
	b := setup(t, 100, 0)
	life, end := context.WithCancel(t.Context())
	defer end()
	let := make(chan struct{})
	c := finance.NewComparing(life, 500*time.Millisecond, func(tell func(finance.Progress)) *finance.Desk {
		return finance.New(b.Pool, slow{b.provider(), let}, finance.Config{ReadsPerSecond: 1e6, Fresh: time.Hour, Progress: tell}, quiet())
	})
	for day := range 40 {
		from := b.window.From.AddDate(0, 0, -day)
		_, err := c.Report(t.Context(), finance.Period{From: from.Format(time.DateOnly), To: from.AddDate(0, 0, 1).Format(time.DateOnly), Zone: "UTC"})
		require.ErrorIs(t, err, domain.ErrBusy)
	}
	close(let)
	require.Eventually(t, func() bool {
		_, err := c.Report(t.Context(), b.period())
		return !errors.Is(err, domain.ErrBusy)
	}, patience, 5*time.Millisecond)
	require.LessOrEqual(t, b.matchings(), 9)

	for _, p := range []finance.Period{
		{From: "2020-01-01", To: "2030-01-01", Zone: "UTC"},
		{From: "0000-01-01", To: "0000-01-02", Zone: "UTC"},
		{From: "9999-01-01", To: "9999-01-02", Zone: "UTC"},
		{From: "2011-12-30", To: "2011-12-31", Zone: "Pacific/Apia"}, // there was no such day
	} {
		var err error
		invalid := &domain.ValidationError{}
		require.Eventually(t, func() bool {
			_, err = c.Report(t.Context(), p)
			return !errors.Is(err, domain.ErrBusy)
		}, patience, 5*time.Millisecond)
		require.ErrorAs(t, err, &invalid, p)
	}
}
