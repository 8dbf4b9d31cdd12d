package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/postgres"
	"holdfast/migrations"
	"holdfast/payments/stripesim"
)

// G1, G5: a pool of four for the API and one of four for the workers, a provider that takes a second for each answer, and
// sixty-four requests at once. Expected: each is answered within its time and none with a 500, health answers all the
// while, no session waits inside a transaction while the provider is asked, and afterwards everything is booked and paid.
func TestIncident22_ASlowProviderAndASmallPool(t *testing.T) {
	t.Parallel()
	const requests, deadline, slow = 64, eternity, time.Second
	b := setup(t)
	p := newProvider(t, b)
	open := func(name string) *pgxpool.Pool {
		pool, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: b.db.URL, ApplicationName: name, MaxConns: 4})
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	small, workers := open("starved-api"), open("starved-worker")
	narrow := setup(t, func(c *httpapi.Config) {
		c.RequestTimeout = deadline / 2
		service := bookings.New(small, noWaker{}, bookings.Config{Budget: eternity})
		c.Clients, c.Bookings, c.Catalogue = clients.New(small), service, service
		c.Ready = func(ctx context.Context) error {
			_, err := migrations.Current(ctx, small)
			return err
		}
	})
	narrow.db, narrow.token, narrow.resource = b.db, b.token, b.resource
	hour := func(i int) string {
		start := time.Date(2027, 5, 1, i, 0, 0, 0, time.UTC)
		return b.body(set("start", start.Format(time.RFC3339)), set("end", start.Add(time.Hour).Format(time.RFC3339)))
	}

	// Four bookings are being charged, and the provider keeps all four workers waiting.
	p.sim.AddFault(stripesim.Fault{Fault: "hang_after", DelayMS: int(slow.Milliseconds()), Times: -1})
	w := p.worker(workers, p.gateway)
	var charging sync.WaitGroup
	charged := make([]error, 4)
	for i := range charged {
		id := bookingOf(t, b.book(t, fmt.Sprint("early-", i), hour(100+i)))
		charging.Go(func() { charged[i] = p.run(t.Context(), w, id, domain.EffectCharge, 20) })
	}
	require.Eventually(t, func() bool { return len(p.sim.Journal(0)) == len(charged) }, deadline, time.Millisecond)

	idle := eachMoment(func() error {
		var n int
		err := b.db.Pool.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity
			 WHERE datname = current_database() AND application_name LIKE 'starved-%' AND state LIKE 'idle in transaction%'
			   AND clock_timestamp() - state_change > $1`, slow/2).Scan(&n)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d sessions wait inside a transaction", n)
		}
		return err
	})
	healthy := eachMoment(func() error {
		if a := narrow.get(t, "/healthz"); a.status != http.StatusOK {
			return fmt.Errorf("/healthz answers %d", a.status)
		}
		if a := narrow.get(t, "/readyz"); a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
			return fmt.Errorf("/readyz answers %d", a.status)
		}
		return nil
	})
	answers, took := make([]answer, requests), make([]time.Duration, requests)
	var burst sync.WaitGroup
	for i := range answers {
		burst.Go(func() {
			began := time.Now()
			answers[i] = narrow.book(t, fmt.Sprint("key-", i), hour(i))
			took[i] = time.Since(began)
		})
	}
	burst.Wait()
	booked := 0
	for i, a := range answers {
		require.Less(t, took[i], deadline)
		if a.status == http.StatusCreated {
			booked++
			continue
		}
		a.refused(t, http.StatusServiceUnavailable, httpapi.CodeBusy)
		require.NotEmpty(t, a.header.Get("Retry-After"))
	}
	require.Greater(t, booked, requests/2, "a standstill, which only time-outs ended")
	charging.Wait()
	require.NoError(t, idle())
	require.NoError(t, healthy())

	p.sim.ClearFaults()
	for i := range answers {
		a := narrow.book(t, fmt.Sprint("key-", i), hour(i))
		require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
		require.NoError(t, p.run(t.Context(), w, bookingOf(t, a), domain.EffectCharge, 20))
	}
	for _, err := range charged {
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusOK, narrow.get(t, "/readyz").status)
	require.Zero(t, small.Stat().AcquiredConns(), "every connection came back")
	require.Zero(t, workers.Stat().AcquiredConns())
	require.Equal(t, requests+len(charged), b.count(t, `SELECT count(*) FROM bookings WHERE status = 'confirmed'`))
	ledger := p.sim.Ledger()
	require.NoError(t, ledger.Check())
	require.Len(t, ledger.Succeeded(""), requests+len(charged))
}
