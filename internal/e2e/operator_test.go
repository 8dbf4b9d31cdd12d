package e2e_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// G5, G7: the confirm took the money and no answer came, so the worker has given up and nobody asks the provider yet.
// Expected: the effect is listed as stuck (exit 1). Six operators replay it at once, while the reconciler starts: each
// is accepted (exit 0) with one audit row, or refused (exit 1) with none. Money moves once; then nothing is stuck
// (exit 0), and one more replay is refused.
func TestReplaysAreSafeAndAudited(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, "MAX_SENDS=2")
	api := b.start("api")
	b.start("worker")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	fault := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503_after", Times: -1})
	id := ada.book(t, "one", wish{resource: court})
	eventually(t, soon, "the charge is in doubt", func() bool {
		return count(b, `SELECT count(*) FROM outbox WHERE kind = 'charge' AND status = 'in_doubt'`) == 1
	})
	stdout, _, code := b.command("worker", "outbox", "list", "--stuck")
	require.Equal(t, 1, code)
	effect := value[string](b, `SELECT id::text FROM outbox WHERE kind = 'charge'`)
	require.Contains(t, stdout, effect)

	require.True(t, b.sim.RemoveFault(fault))
	replay := func() int {
		_, _, code := b.command("worker", "outbox", "replay", effect, "--reason", "the answer was lost", "--yes", "--json")
		return code
	}
	codes := make(chan int, 6)
	var group sync.WaitGroup
	for range cap(codes) {
		group.Go(func() { codes <- replay() })
	}
	b.start("reconciler")
	group.Wait()
	close(codes)
	accepted := 0
	for code := range codes {
		require.Contains(t, []int{0, 1}, code)
		if code == 0 {
			accepted++
		}
	}
	b.awaitStatus(soon, "confirmed", id)
	require.Equal(t, 1, replay(), "a finished effect is refused")
	require.Equal(t, accepted, count(b, `SELECT count(*) FROM operator_actions WHERE effect_id = $1 AND reason <> '' AND actor <> ''`, effect))
	_, _, code = b.command("worker", "outbox", "list", "--stuck")
	require.Zero(t, code)
	b.requireStory(confirmed(), id)
	b.requireCharges([]string{id})
}

// G3, G7: the one switch for money.
// Expected: while charges are paused a booking is accepted and held, and nothing is sent for it; after resume it is
// charged once and confirmed. Both acts are in the audit.
func TestPausedChargesTakeNoMoney(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api")
	b.start("worker")
	b.start("reconciler")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	switched := func(verb string) {
		_, stderr, code := b.command("worker", "outbox", verb, "charge", "--reason", "the provider has an incident")
		require.Zero(t, code, stderr)
	}

	switched("pause")
	id := ada.book(t, "one", wish{resource: court})
	eventually(t, soon, "the charge was taken up, and put off", func() bool {
		return count(b, `SELECT count(*) FROM river_job WHERE kind = 'charge' AND (metadata->>'snoozes')::int > 0`) == 1
	})
	require.Zero(t, b.sentSince(0, ""), "nothing was sent")
	require.Equal(t, "held", ada.get(t, id).booking(t).Status)

	switched("resume")
	b.awaitStatus(soon, "confirmed", id)
	b.requireStory(confirmed(), id)
	require.Equal(t, 2, count(b, `SELECT count(*) FROM operator_actions`))
}
