package outbox

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// TestIncident10_FiveHundredBookingsBehindAnOutage (G6, G7): the broker is away until each of five hundred bookings has
// been put off several times, and the first event of one of them is too large for any broker. When it is back, the other
// 499 are told in order by the jobs that waited; the bad one is parked, listed with its error and counted.
func TestIncident10_FiveHundredBookingsBehindAnOutage(t *testing.T) {
	t.Parallel()
	const bookings, backoffs = 500, 3
	b := setup(t)
	server := testnats.NewListening(t)
	js := b.connected(t, server.URL(), StreamConfig{})
	server.Stop()
	made := b.books(t, bookings, domain.EventConfirmed)
	bad := made[bookings/2]
	b.exec(t, `UPDATE outbox SET payload = jsonb_build_object('x', repeat('y', 2000000)) WHERE id = $1`, bad.held)
	jobs := b.count(t, `SELECT count(*) FROM river_job`)

	drain := NewDrain(b.pool, js, DrainConfig{FirstBackoff: 100 * time.Millisecond, MaxBackoff: 400 * time.Millisecond}, b.logger)
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectPublish: drain.Work})
	for n := range backoffs { // one after the other, each with a test's patience: this is the most work of the package
		b.eventually(t, 0, `
			SELECT count(*) FROM river_job WHERE kind = 'publish' AND coalesce((metadata ->> 'snoozes')::int, 0) <= $1`, n)
	}
	require.Zero(t, b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND (status <> 'pending' OR attempts > 0)`))
	require.Zero(t, b.sweep(t), "all are carried: an outage must not breed jobs")

	server.Restart()
	b.eventually(t, 2*(bookings-1), `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done' AND attempts = 1`)
	b.eventually(t, 0, `SELECT count(*) FROM river_job WHERE kind = 'publish' AND state <> 'completed'`)
	requireInOrder(t, told(t, js), bookings-1)
	require.Equal(t, jobs, b.count(t, `SELECT count(*) FROM river_job`), "the jobs that waited did it")
	require.Zero(t, b.count(t, `SELECT count(*) FROM river_job WHERE errors IS NOT NULL`))
	require.Zero(t, b.count(t, `SELECT count(*) FROM operator_actions`), "nobody's hand")

	page, err := List(t.Context(), b.pool, Filter{Stuck: true, Kind: domain.EffectPublish})
	require.NoError(t, err)
	require.Len(t, page.Rows, 2)
	require.Equal(t, bad.held, page.Rows[0].ID)
	require.Contains(t, page.Rows[0].Reason, "parked, needs a person: the event is too large for the broker: 2000")
	require.Equal(t, bad.booking, page.Rows[1].BookingID)
	require.Equal(t, "waits for an earlier event of its booking", page.Rows[1].Reason)
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCollector(b.pool, b.logger))
	require.InDelta(t, 1, gather(t, registry)["holdfast_outbox_effects publish parked"], 0)
}
