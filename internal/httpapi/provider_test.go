package httpapi_test

import (
	"context"
	"log/slog"
	"path"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

// provider is the money's side of the API's bookings: a simulated Stripe, and charge workers whose jobs are run by hand.
type provider struct {
	b       *bed
	sim     *stripesim.Server
	gateway *stripe.Gateway
}

func newProvider(t *testing.T, b *bed) *provider {
	t.Helper()
	sim, err := stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	gateway, err := stripe.New(stripe.Config{APIKey: "sk_test_httpapi", BaseURL: sim.URL})
	require.NoError(t, err)
	return &provider{b: b, sim: sim, gateway: gateway}
}

// worker is one worker process on a pool and a gateway of its own.
func (*provider) worker(pool *pgxpool.Pool, gateway payments.Gateway) *payments.Payments {
	return payments.New(pool, gateway, noWaker{}, payments.Config{Backoff: time.Millisecond, Lease: time.Millisecond}, slog.New(slog.DiscardHandler))
}

// run carries an effect of a booking on until nothing is left to do, at most so many times.
func (p *provider) run(ctx context.Context, w *payments.Payments, id domain.BookingID, kind domain.EffectKind, times int) error {
	job := outbox.Job{Kind: kind}
	const newest = `SELECT id FROM outbox WHERE booking_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1`
	if err := p.b.db.Pool.QueryRow(ctx, newest, id, kind).Scan(&job.Effect); err != nil {
		return err
	}
	handle := w.Charge
	if kind == domain.EffectCancel {
		handle = w.Fence
	}
	for range times {
		verdict, err := handle(ctx, job)
		if err != nil || verdict.After == 0 {
			return err
		}
		select {
		case <-time.After(verdict.After):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// bookingOf is the booking that an answer tells of.
func bookingOf(t *testing.T, a answer) domain.BookingID {
	t.Helper()
	id, err := domain.ParseID[domain.BookingID](path.Base(a.header.Get("Location")))
	require.NoError(t, err)
	return id
}

// count runs a query that answers one number.
func (b *bed) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, b.db.Pool.QueryRow(context.WithoutCancel(t.Context()), sql, args...).Scan(&n))
	return n
}

// eachMoment looks again and again until the test says stop, and then tells what it has found wrong, if anything.
func eachMoment(look func() error) (stop func() error) {
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			if err := look(); err != nil {
				ended <- err
				return
			}
			select {
			case <-tick.C:
			case <-over:
				ended <- nil
				return
			}
		}
	}()
	return func() error {
		close(over)
		return <-ended
	}
}
