package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// leaderWithin is how soon another River client is elected after the death of one: its term of 15 s has to run out, and
// the others stand every 5 to 6 s. The rest is for a busy machine.
const leaderWithin = 45 * time.Second

// G3, G5, incident 14: SIGKILL of the one of two workers that River has elected. It alone lets jobs run again that were
// put off, and takes over those that are left in running. No reconciler is there to give them new jobs.
// Expected: the other is elected within the bound; it runs what was put off when that is due, and what the dead one had
// in hand; one charge for each booking, under the same key.
func TestIncident14_TheElectedLeaderIsKilled(t *testing.T) {
	t.Parallel()
	const bookings = 8
	b := newBed(t, nil)
	api := b.start("api")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	var ids, inHand []string
	for n := range bookings {
		id := ada.book(t, fmt.Sprint("key-", n), wish{resource: court, hour: n})
		ids = append(ids, id)
		confirm := value[string](b, `SELECT id::text FROM payments WHERE booking_id = $1`, id) + ":confirm:"
		if n%2 == 0 {
			b.sim.AddFault(stripesim.Fault{KeyMatch: confirm, Fault: "error_503"}) // put off
			continue
		}
		b.sim.AddFault(stripesim.Fault{KeyMatch: confirm, Fault: "hang_after"})
		inHand = append(inHand, confirm)
	}

	// The leader puts off for twice its back-off after a second send, which is longer than a client keeps a job in its own
	// hands (5 s), and waits for the provider for longer than the test takes. Nothing of that binds the other one.
	leader := b.start("worker", "SEND_BACKOFF=10s", "STRIPE_TIMEOUT=100s", "JOB_TIMEOUT=250s", "RESCUE_AFTER=300s")
	first := value[string](b, `SELECT id FROM outbox_workers`)
	left := func() int {
		return count(b, `SELECT count(*) FROM river_job
			WHERE kind = 'charge' AND state IN ('scheduled', 'running') AND attempted_by[array_upper(attempted_by, 1)] = $1`, first)
	}
	eventually(t, soon, "it is elected, half of the charges are put off and half are in its hands", func() bool {
		for _, confirm := range inHand {
			if b.sent(confirm, true) != 1 {
				return false
			}
		}
		return b.leader() == first && left() == bookings &&
			count(b, `SELECT count(*) FROM river_job WHERE kind = 'charge' AND state = 'scheduled'`) == bookings/2
	})
	b.start("worker", "SEND_BACKOFF=100ms", "STRIPE_TIMEOUT=1s", "JOB_TIMEOUT=3s", "RESCUE_AFTER=4s")
	second := value[string](b, `SELECT id FROM outbox_workers WHERE id <> $1`, first)
	require.NoError(t, leader.Kill())
	died := time.Now()
	require.Equal(t, bookings, left(), "the other has not touched them")
	require.Equal(t, first, b.leader(), "its term runs on after its death")
	b.sim.ClearFaults()

	eventually(t, leaderWithin, "the other worker is elected", func() bool { return b.leader() == second })
	t.Logf("elected %s after the kill", time.Since(died).Round(time.Second))
	b.awaitStatus(leaderWithin, "confirmed", ids...)
	t.Logf("all charged %s after the kill", time.Since(died).Round(time.Second))
	b.requireStory(confirmed(), ids...)
	b.requireCharges(ids)
	require.Equal(t, bookings, count(b, `SELECT count(*) FROM river_job
		WHERE kind = 'charge' AND state = 'completed' AND attempted_by[array_upper(attempted_by, 1)] = $1`, second), "by the same jobs")
	for _, confirm := range inHand {
		require.Equal(t, 1, b.sent(confirm, true))
	}
}

// leader is the River client that is elected, if its term still runs.
func (b *bed) leader() string {
	b.Helper()
	return value[string](b, `SELECT coalesce((SELECT leader_id FROM river_leader WHERE expires_at > clock_timestamp()), '')`)
}
