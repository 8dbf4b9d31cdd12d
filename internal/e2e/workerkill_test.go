package e2e_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// carriedOnWithin is how soon another worker takes over what a killed one had begun: a process counts as dead 15 s after
// its last sign of life, then the reconciler's next round revives its effects. The rest is for a busy machine.
const carriedOnWithin = 30 * time.Second

// G3, G5, G6, incidents 02 and 14: SIGKILL of the worker in the middle of five bookings at once: before the create and
// before the confirm reached the provider, after the provider has executed each of them and has not answered, and after
// the settling COMMIT, when nothing is published yet.
// Expected: another worker carries each one on within the bound, under the same keys; five charges; `held` and
// `confirmed` once each.
func TestAKilledWorkerIsCarriedOn(t *testing.T) {
	t.Parallel()
	gate := newGate()
	b := newBed(t, gate.observe, "STRIPE_TIMEOUT=30s", "JOB_TIMEOUT=90s", "RESCUE_AFTER=100s")
	api := b.start("api")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	var ids, payments []string
	for hour := range 5 {
		id := ada.book(t, "key-"+string(rune('a'+hour)), wish{resource: court, hour: hour})
		ids = append(ids, id)
		payments = append(payments, value[string](b, `SELECT id::text FROM payments WHERE booking_id = $1`, id))
	}
	createBefore, confirmBefore, createAfter, confirmAfter, settled := payments[0]+":create", payments[1]+":confirm",
		payments[2]+":create", payments[3]+":confirm", ids[4]
	for _, key := range []string{createBefore, confirmBefore} { // held at the gate, and then thrown away
		gate.hold(key)
		b.sim.AddFault(stripesim.Fault{KeyMatch: key, Fault: "reset_before"})
	}
	for _, key := range []string{createAfter, confirmAfter} {
		b.sim.AddFault(stripesim.Fault{KeyMatch: key, Fault: "hang_after"})
	}
	b.nats.Stop()

	worker := b.start("worker")
	eventually(t, soon, "each booking is at its point", func() bool {
		return gate.waiting(createBefore) && gate.waiting(confirmBefore) &&
			b.sent(createAfter, true) == 1 && b.sent(confirmAfter, true) == 1 &&
			value[string](b, `SELECT status FROM bookings WHERE id = $1`, settled) == "confirmed"
	})
	require.NoError(t, worker.Kill())
	gate.open()
	eventually(t, soon, "what was held has been thrown away", func() bool {
		return b.closed(createBefore) && b.closed(confirmBefore)
	})
	require.Zero(t, b.sent(createBefore, true)+b.sent(confirmBefore, true), "the provider never saw these")
	require.Zero(t, count(b, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status <> 'pending'`))

	b.nats.Restart()
	b.start("worker")
	b.start("reconciler")
	b.awaitStatus(carriedOnWithin, "confirmed", ids...)
	b.requireStory(confirmed(), ids...)
	b.requireCharges(ids)
	for _, key := range []string{createBefore, confirmBefore, createAfter, confirmAfter} {
		require.Equal(t, 2, b.sent(key, false), "%s: sent again, once", key)
		require.Equal(t, 1, b.sent(key, true), "%s: executed once", key)
	}
}

// sent counts the requests under a key; executed counts only those that ran.
func (b *bed) sent(key string, executed bool) int {
	b.Helper()
	n := 0
	for _, entry := range b.sim.Journal(0) {
		if strings.Contains(entry.IdempotencyKey, key) && (entry.Executed || !executed) {
			n++
		}
	}
	return n
}

// closed tells whether no request under the key is still being worked on.
func (b *bed) closed(key string) bool {
	for _, entry := range b.sim.Journal(0) {
		if strings.Contains(entry.IdempotencyKey, key) && entry.Open {
			return false
		}
	}
	return true
}

// gate holds requests to the provider on arrival, before anything is decided.
type gate struct {
	mu    sync.Mutex
	holds map[string]bool // part of a key: whether a request is waiting
	exit  chan struct{}
}

func newGate() *gate { return &gate{holds: map[string]bool{}, exit: make(chan struct{})} }

func (g *gate) hold(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds[key] = false
}

func (g *gate) waiting(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holds[key]
}

// open lets all go, now and later.
func (g *gate) open() { close(g.exit) }

func (g *gate) observe(entry stripesim.JournalEntry) {
	g.mu.Lock()
	held := false
	for key := range g.holds {
		if strings.Contains(entry.IdempotencyKey, key) {
			g.holds[key], held = true, true
		}
	}
	g.mu.Unlock()
	if held {
		<-g.exit
	}
}
