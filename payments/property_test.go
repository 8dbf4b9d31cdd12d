package payments_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// casesByDefault fit into make test. For a long run:
//
//	go run ./internal/testdb/cmd/withdb -- go test ./payments -run TestProperty -timeout 2h -rapid.checks=5000
//
// A failure is shrunk, printed act by act, and kept in testdata/rapid, from where it is tried first ever after.
const casesByDefault = "15"

// TestProperty_EveryInterleavingAgrees: whatever is done by workers, reconcilers, operators, customers and a failing
// provider, in whatever order, and in the middle of each other's sends and reads, once all is well again each booking has
// ended, and agrees with the provider's ledger (G3, G4, G5, G7).
//
// What can be done is the table acts, in property_acts_test.go: a new thing that happens in the world is one line there.
func TestProperty_EveryInterleavingAgrees(t *testing.T) {
	t.Parallel()
	fewByDefault(t)
	b := setup(t)
	ended := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(b, rt)
		for range rapid.IntRange(1, 12).Draw(rt, "acts") {
			w.act()
		}
		w.heal()
		for _, id := range w.ids {
			ended[w.judge(id)]++
		}
	})
	t.Logf("bookings by their end: %v", ended)
}

// fewByDefault sets the number of cases, unless the command line does.
func fewByDefault(t *testing.T) {
	t.Helper()
	const name = "rapid.checks"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if !given {
		require.NoError(t, flag.Set(name, casesByDefault))
	}
}

// world is one case: a provider and a database that know of nothing else, and a booking or two.
type world struct {
	*bed

	rapid   *rapid.T
	ids     []domain.BookingID
	within  int // so many sends or reads are under way, one inside the other
	healing bool
}

func newWorld(b *bed, rt *rapid.T) *world {
	own := *b
	own.TB = caseTB{TB: b.TB, rapid: rt}
	w := &world{bed: &own, rapid: rt}
	w.exec(`TRUNCATE provider_events, card_changes, refunds, bookings, allocations, idempotency_keys, payments, provider_calls, outbox, operator_actions, outbox_pauses, river_job CASCADE`)
	w.sim.Reset()
	w.config.MaxSends = rapid.IntRange(1, 4).Draw(rt, "sends of a worker")
	for range rapid.IntRange(1, 2).Draw(rt, "bookings") {
		w.ids = append(w.ids, w.book(rapid.SampledFrom([]string{
			"pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_card_chargeDeclined", "pm_card_authenticationRequired",
			"pm_card_threeDSecureRequiredChargeDeclined", "pm_sim_processing", "pm_card_nobodyKnows",
		}).Draw(rt, "card")))
	}
	for range rapid.IntRange(0, 2).Draw(rt, "faults") {
		w.fail(rapid.SampledFrom(w.ids).Draw(rt, "booking"))
	}
	return w
}

// act does one thing.
func (w *world) act() {
	a := rapid.SampledFrom(acts()).Draw(w.rapid, "act")
	a.do(w, rapid.SampledFrom(w.ids).Draw(w.rapid, "booking"))
}

// process is one process, whose sends and reads others get in between.
func (w *world) process() *payments.Payments {
	return w.engineOn(&crossed{Gateway: w.gateway, world: w})
}

// mortally does a step of a process that may die in the middle of it.
func (w *world) mortally(step func(p *payments.Payments, w *world) error) {
	w.Helper()
	within := w.within
	defer func() {
		w.within = within
		if v := recover(); v != nil {
			if err, ok := v.(error); !ok || !errors.Is(err, errDied) {
				panic(v)
			}
		}
	}()
	require.NoError(w, step(w.process(), w))
}

// between is a moment at which a process waits for the provider, and anything else may happen, its death included.
func (w *world) between(moment string) {
	const deepest = 2
	if w.healing || w.within >= deepest {
		return
	}
	n := rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, -1}).Draw(w.rapid, moment)
	if n < 0 {
		panic(errDied)
	}
	w.within++
	for range n {
		w.act()
	}
	w.within--
}

// crossed is the real gateway, and what happens before and after each of its calls.
type crossed struct {
	payments.Gateway
	world *world
}

func (c *crossed) Send(ctx context.Context, call payments.Call) payments.Outcome {
	c.world.between("before the send of " + string(call.Operation))
	out := c.Gateway.Send(ctx, call)
	c.world.between("after the send of " + string(call.Operation))
	return out
}

func (c *crossed) Intent(ctx context.Context, id string) (payments.Intent, error) {
	intent, err := c.Gateway.Intent(ctx, id)
	c.world.between("after a read")
	return intent, err
}

func (c *crossed) Charges(ctx context.Context, intentID string) ([]payments.ProviderCharge, error) {
	charges, err := c.Gateway.Charges(ctx, intentID)
	c.world.between("after a listing of charges")
	return charges, err
}

func (c *crossed) IntentsCreated(ctx context.Context, from, to time.Time) ([]payments.Intent, error) {
	intents, err := c.Gateway.IntentsCreated(ctx, from, to)
	c.world.between("after a listing of intents")
	return intents, err
}

// heal lets the provider answer, the operator resume and the bank decide, and everybody do their work until nothing is open;
// then every hold ends, and they do what that leaves.
func (w *world) heal() {
	w.Helper()
	w.healing = true
	w.sim.ClearFaults()
	_, err := outbox.Resume(w.ctx, w.db.Pool, domain.EffectCharge, operator, "healed")
	require.NoError(w, err)
	for deadline := time.Now().Add(time.Minute); ; w.pause(5 * time.Millisecond) {
		effects, bookings := w.open()
		if effects+bookings == 0 {
			return
		}
		require.True(w, time.Now().Before(deadline), "a doubt that never ends: %s", w.tale(w.ids[0]))
		for _, id := range w.ids {
			if effects == 0 {
				w.expire(id)
			}
			w.happen(id, stripesim.Action{Action: "settle_processing"})
			w.charge(id)
			w.fence(id)
		}
		w.due()
		_, err := w.reconciler(w.process()).Once(w.ctx)
		require.NoError(w, err)
	}
}

// open counts what is not finished: effects on which somebody works, and bookings that have not ended.
func (w *world) open() (effects, bookings int) {
	w.Helper()
	w.scan(`SELECT count(*) FROM outbox WHERE kind IN ('charge', 'cancel') AND status IN ('pending', 'in_doubt')`, &effects)
	w.scan(`SELECT count(*) FROM bookings WHERE status IN ('held', 'ending')`, &bookings)
	return effects, bookings
}

// judge checks a booking that has ended, and returns how.
func (w *world) judge(id domain.BookingID) string {
	w.Helper()
	w.agree(id)
	for _, charge := range w.charges(id) {
		require.Equal(w, int64(2500), charge.Amount)
	}
	var parked int
	w.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND status = 'parked'`, &parked, id)
	require.Zero(w, parked, "nothing here needs a person: %s", w.tale(id))
	booking, _, _ := w.statuses(id)
	return booking
}

// caseTB is the test, whose failures are a case's.
type caseTB struct {
	testing.TB
	rapid *rapid.T
}

func (c caseTB) Helper()                      { c.rapid.Helper() }
func (c caseTB) Errorf(f string, args ...any) { c.rapid.Errorf(f, args...) }
func (c caseTB) Logf(f string, args ...any)   { c.rapid.Logf(f, args...) }
func (c caseTB) Fatalf(f string, args ...any) { c.rapid.Fatalf(f, args...) }
func (c caseTB) FailNow()                     { c.rapid.FailNow() }
func (c caseTB) Failed() bool                 { return c.rapid.Failed() }
