package e2e_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// G3, G6, incident 14: a worker is stopped (SIGSTOP) in the middle of a charge, for longer than a live one may be silent;
// another carries the charge on and finishes it; then the first wakes up (SIGCONT) and gets the provider's answer.
// Expected: one charge under one key, `held` and `confirmed` once each, and the late answer changes nothing.
func TestIncident14_AStoppedWorkerWakesUpTooLate(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, "STRIPE_TIMEOUT=60s", "JOB_TIMEOUT=150s", "RESCUE_AFTER=200s", "WORKER_DEAD_AFTER=2s")
	api := b.start("api")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	id := ada.book(t, "key", wish{resource: court})
	confirm := value[string](b, `SELECT id::text FROM payments WHERE booking_id = $1`, id) + ":confirm"
	hang := b.sim.AddFault(stripesim.Fault{KeyMatch: confirm, Fault: "hang_after", DelayMS: 8_000})

	stopped := b.start("worker")
	eventually(t, soon, "the confirm is executed, and its answer held back", func() bool { return b.sent(confirm, true) == 1 })
	require.NoError(t, syscall.Kill(stopped.process().PID(), syscall.SIGSTOP))
	b.sim.RemoveFault(hang)
	b.start("worker")
	b.start("reconciler")
	b.awaitStatus(carriedOnWithin, "confirmed", id)
	before := value[string](b, `SELECT to_jsonb(b)::text || to_jsonb(p)::text FROM bookings b JOIN payments p ON p.booking_id = b.id WHERE b.id = $1`, id)

	eventually(t, carriedOnWithin, "the held answer is on its way", func() bool { return b.closed(confirm) })
	require.NoError(t, syscall.Kill(stopped.process().PID(), syscall.SIGCONT))
	eventually(t, soon, "the worker that was stopped works again", func() bool {
		return count(b, `SELECT count(*) FROM outbox_workers WHERE seen_at > clock_timestamp() - interval '1 second'`) == 2
	})
	eventually(t, soon, "its job has come to an end", func() bool {
		return count(b, `SELECT count(*) FROM river_job WHERE kind = 'charge' AND state = 'running'`) == 0
	})
	b.requireStory(confirmed(), id)
	b.requireCharges([]string{id})
	require.Equal(t, 1, b.sent(confirm, true))
	require.Equal(t, before, value[string](b, `SELECT to_jsonb(b)::text || to_jsonb(p)::text FROM bookings b JOIN payments p ON p.booking_id = b.id WHERE b.id = $1`, id))
}
