package e2e_test

import (
	"fmt"
	"slices"
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

// A killCell is one way for a worker to die in the middle of a booking, and for somebody to carry the booking on.
type killCell struct{ call, kill, heir string }

func (c killCell) String() string { return c.call + " " + c.kill + ", carried on by " + c.heir }

// Where SIGKILL meets the worker.
const (
	unsent    = "recorded and not sent"             // in the COMMIT of the send's record, which succeeds
	unheard   = "executed and not answered"         // the provider has acted, and nobody has been told
	unsettled = "answered and not settled"          // in the settling COMMIT, which is rolled back
	unnoticed = "settled and the reply not noticed" // in the settling COMMIT, which succeeds
)

// Who carries on.
const (
	otherWorker = "another worker"
	sameWorker  = "the same worker, started again"
	reconciler  = "the reconciler"
	operator    = "an operator's replay"
)

var (
	killCalls = []string{"create", "confirm", "cancel"}
	killKills = []string{unsent, unheard, unsettled, unnoticed}
	killHeirs = []string{otherWorker, sameWorker, reconciler, operator}
)

func killCells() []killCell {
	var cells []killCell
	for _, heir := range killHeirs {
		for _, call := range killCalls {
			for _, kill := range killKills {
				cells = append(cells, killCell{call, kill, heir})
			}
		}
	}
	return cells
}

// unfinished tells whether the dead worker has left the call's effect to somebody: a settled create has still to be
// confirmed, all else that is settled is over.
func (c killCell) unfinished() bool { return c.kill != unnoticed || c.call == "create" }

// story is how the cell's booking should have gone, whoever carried it on. The card of one that is fenced was declined.
func (c killCell) story() story {
	if c.call != "cancel" {
		return confirmed()
	}
	s := expired()
	s.events = []string{"held", "payment_declined", "expired"}
	return s
}

// G3, G4, G5, G6, G7, incidents 02 and 14: SIGKILL of the worker at each point of each send, and each heir of what it
// leaves. One kill meets the twelve bookings of an heir's cells at once, each at its own point.
// Expected of every cell: one succeeded charge and `confirmed` for a booking that is paid, none and `expired` for one that
// was fenced; no operation under two keys, no key that ran twice; each event once, under one id, in order.
func TestAKilledWorkerIsCarriedOn(t *testing.T) { //nolint:tparallel // the group must have ended before it is counted
	t.Parallel()
	var mu sync.Mutex
	ran := map[killCell]bool{}
	t.Run("cells", func(t *testing.T) {
		for _, heir := range killHeirs {
			t.Run(heir, func(t *testing.T) {
				t.Parallel()
				k := killWorker(t, heir)
				k.inherit(heir)
				for _, c := range k.cells {
					t.Run(c.call+" "+c.kill, func(t *testing.T) { //nolint:paralleltest // it would wait for its turn while this test keeps a bed
						k.check(t, c)
						mu.Lock()
						defer mu.Unlock()
						ran[c] = true
					})
				}
			})
		}
	})
	cells := killCells()
	t.Logf("killed workers: %d of %d cells ran", len(ran), len(cells))
	for _, c := range cells {
		require.True(t, ran[c], "not run: %s", c)
	}
}

// killing is a bed whose worker was killed.
type killing struct {
	*bed

	worker   *service
	dead     string // what it was called
	cells    []killCell
	ids      map[killCell]string // of their bookings
	payments map[killCell]string
}

// killWorker brings a booking of each of an heir's cells to its point and kills the worker there.
func killWorker(t *testing.T, heir string) *killing {
	t.Helper()
	b := newBed(t, nil, "STRIPE_TIMEOUT=30s", "JOB_TIMEOUT=90s", "RESCUE_AFTER=100s", "WORKER_DEAD_AFTER=3s")
	k := &killing{bed: b, ids: map[killCell]string{}, payments: map[killCell]string{}}
	api := b.start("api")
	// A transaction that is halted keeps its connection, and must not be ended by its own bounds instead of by the kill.
	k.worker = b.service("worker", "DB_MAX_CONNS=40", "DB_STATEMENT_TIMEOUT=100s")
	halts := b.newHalts()
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	for hour, c := range slices.DeleteFunc(killCells(), func(c killCell) bool { return c.heir != heir }) {
		w := wish{resource: court, hour: hour}
		if c.call == "cancel" {
			w.method = "pm_card_chargeDeclined"
		}
		k.cells = append(k.cells, c)
		k.ids[c] = ada.book(t, fmt.Sprint("key-", hour), w)
		k.payments[c] = value[string](b, `SELECT id::text FROM payments WHERE booking_id = $1`, k.ids[c])
		switch c.kill {
		case unsent:
			halts.at(k.key(c), recording)
		case unheard:
			b.sim.AddFault(stripesim.Fault{KeyMatch: k.key(c), Fault: "hang_after"})
		case unsettled, unnoticed:
			halts.at(k.key(c), settling)
		}
	}
	k.worker.Start()
	k.worker.AwaitReady()
	k.dead = value[string](b, `SELECT id FROM outbox_workers`)
	k.fenceTheDeclined()
	eventually(t, soon, "each booking is at its point", func() bool {
		return !slices.ContainsFunc(k.cells, func(c killCell) bool {
			if c.kill == unheard {
				return b.sent(k.key(c), true) != 1
			}
			return !halts.waiting(k.key(c))
		})
	})
	require.NoError(t, k.worker.Kill())
	for _, c := range k.cells {
		if c.kill == unsettled {
			halts.undo(k.key(c))
		}
	}
	halts.end("holdfast-worker")
	for _, c := range k.cells {
		k.requireKilledAt(c)
	}
	b.sim.ClearFaults()
	return k
}

// key is how the provider's key of the cell's call begins.
func (k *killing) key(c killCell) string { return "hf:" + k.payments[c] + ":" + c.call }

// fenceTheDeclined brings forward the end of the declined bookings' holds, and has them swept by a process that does
// nothing else. It is not told how soon a worker counts as dead here: this one lives.
func (k *killing) fenceTheDeclined() {
	k.Helper()
	eventually(k.T, soon, "the cards of the bookings to be fenced are declined", func() bool {
		return count(k.bed, `SELECT count(*) FROM payments WHERE status = 'declined'`) == len(killKills)
	})
	k.endHolds("declined")
	_, stderr, code := run(k.T, append(slices.Clone(k.env), "WORKER_DEAD_AFTER=10m"), "reconciler", "once")
	require.Less(k, code, 2, stderr)
}

// endHolds lets the holds of all bookings whose payment stands so be over.
func (b *bed) endHolds(payment string) {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), `
		UPDATE bookings b SET hold_expires_at = clock_timestamp()
		  FROM payments p WHERE p.booking_id = b.id AND p.status = $1 AND b.status = 'held'`, payment)
	require.NoError(b, err)
}

// requireKilledAt asserts that the kill met the cell's booking where it should, by the provider's account and by the row.
func (k *killing) requireKilledAt(c killCell) {
	k.Helper()
	want := map[string]struct {
		executed int
		answered bool
	}{unsent: {0, false}, unheard: {1, false}, unsettled: {1, false}, unnoticed: {1, true}}[c.kill]
	require.Equal(k, want.executed, k.sent(k.key(c), false), "%s: sends", c)
	require.Equal(k, want.executed, k.sent(k.key(c), true), "%s: executed sends", c)
	require.Equal(k, want.answered, value[bool](k.bed,
		`SELECT http_status IS NOT NULL FROM provider_calls WHERE payment_id = $1 AND operation = $2`, k.payments[c], c.call), "%s", c)
}

// inherit starts those who are to carry on, and waits until all bookings have ended.
func (k *killing) inherit(heir string) {
	k.Helper()
	switch heir {
	case otherWorker:
		k.startOn("heir", "worker")
		k.start("reconciler")
	case sameWorker:
		k.worker.Start()
		k.worker.AwaitReady()
		k.start("reconciler")
	case reconciler:
		// A worker that reaches no provider: it hands over what it finds sent, and whatever is sent from here on is the
		// reconciler's.
		k.start("worker", "MAX_SENDS=1", "STRIPE_API_BASE=http://"+freeAddress(k.T))
		k.start("reconciler")
	case operator: // and nobody who would notice by himself that the worker has died
		k.start("worker")
		k.replayAll()
	}
	var paid, fenced []string
	for _, c := range k.cells {
		if c.call == "cancel" {
			fenced = append(fenced, k.ids[c])
		} else {
			paid = append(paid, k.ids[c])
		}
	}
	k.awaitStatus(carriedOnWithin, "confirmed", paid...)
	k.awaitStatus(carriedOnWithin, "expired", fenced...)
	k.requireCharges(paid)
}

// replayAll is an operator who replays the effect of every cell. One that is settled is refused.
func (k *killing) replayAll() {
	k.Helper()
	codes := together(len(k.cells), func(i int) (answer, error) {
		effect := value[string](k.bed, `SELECT id::text FROM outbox WHERE booking_id = $1 AND kind = $2`, k.ids[k.cells[i]], k.cells[i].effect())
		_, _, code := k.command("worker", "outbox", "replay", effect, "--reason", "its worker was killed", "--yes", "--json")
		return answer{status: code}, nil
	})
	for i, c := range k.cells {
		require.Equal(k, map[bool]int{true: 0, false: 1}[c.unfinished()], codes[i].status, "%s", c)
	}
}

// effect is the kind of the effect that makes the call.
func (c killCell) effect() string {
	if c.call == "cancel" {
		return "cancel"
	}
	return "charge"
}

// check compares the cell's booking with its story, and looks who has carried it on.
func (k *killing) check(t *testing.T, c killCell) {
	t.Helper()
	own := *k.bed
	own.T = t
	b := &own
	b.requireStory(c.story(), k.ids[c])
	require.Equal(t, 1, b.sent(k.key(c), true), "executed once")
	if c.kill == unnoticed {
		require.Equal(t, 1, b.sent(k.key(c), false), "what is settled is never sent again")
	}
	var last, state string
	require.NoError(t, b.db.Pool.QueryRow(t.Context(), `
		SELECT j.attempted_by[array_upper(j.attempted_by, 1)], j.state FROM outbox o JOIN river_job j ON j.id = o.job_id
		 WHERE o.booking_id = $1 AND o.kind = $2`, k.ids[c], c.effect()).Scan(&last, &state))
	require.Equal(t, "completed", state)
	require.Equal(t, c.unfinished(), last != k.dead, "the job was completed by %s; the dead worker was %s", last, k.dead)
	if c.heir == otherWorker && hostsCanBeNamed() {
		require.Equal(t, c.unfinished(), strings.HasPrefix(last, "heir_"))
	}
	replays := 0
	if c.heir == operator && c.unfinished() {
		replays = 1
	}
	require.Equal(t, replays, count(b, `SELECT count(*) FROM operator_actions WHERE booking_id = $1`, k.ids[c]), "G7: one audit row for each replay")
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
