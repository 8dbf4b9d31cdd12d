package payments_test

import (
	"context"
	"log/slog"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/testdb"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

func TestMain(m *testing.M) {
	if work, told := os.LookupEnv(bookkeeperEnv); told { // a process of its own, which a test has started
		bookkeep(work)
		return
	}
	testdb.Main(m)
}

// stripeTimeout is shorter than any hang, and longer than an answer on loopback unless the machine is very busy: what a
// test claims must not rest on that. One that counts requests has to be patient.
const stripeTimeout = 500 * time.Millisecond

// bed is the protocol on real parts: PostgreSQL, and the provider over HTTP. Jobs are run by hand, so that a test says
// when, how often and by whom.
type bed struct {
	testing.TB
	ctx      context.Context
	db       *testdb.DB
	sim      *stripesim.Server
	gateway  *stripe.Gateway
	bookings *bookings.Service
	client   domain.ClientID
	resource domain.ResourceID
	config   payments.Config
	start    time.Time // of the next booking
	since    int64     // where a bed that shares its provider begins in the journal
}

type noWaker struct{}

func (noWaker) Wake(domain.EffectKind) {}

func setup(t *testing.T) *bed {
	t.Helper()
	b := &bed{
		TB: t, ctx: t.Context(), db: testdb.New(t), start: time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC),
		config: payments.Config{Backoff: 5 * time.Millisecond, MaxSends: 3, Lease: time.Millisecond},
	}
	var err error
	b.sim, err = stripesim.Start(b.ctx, "127.0.0.1:0", stripesim.Config{LockWait: 50 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.sim.Close()) })
	b.waitFor(stripeTimeout)

	b.client = domain.NewID[domain.ClientID]()
	b.exec(`INSERT INTO clients (id, name) VALUES ($1, 'test')`, b.client)
	b.bookings = bookings.New(b.db.Pool, noWaker{}, bookings.Config{Budget: time.Minute})
	b.resource = b.newResource(1)
	return b
}

// waitFor sets how long answers of the provider are waited for.
func (b *bed) waitFor(answer time.Duration) {
	b.Helper()
	var err error
	b.gateway, err = stripe.New(stripe.Config{APIKey: "sk_test_payments", BaseURL: b.sim.URL, Timeout: answer})
	require.NoError(b, err)
}

// patient waits for every answer, so that the number of requests depends on no clock.
func (b *bed) patient() { b.waitFor(time.Minute) }

func (b *bed) newResource(places int) domain.ResourceID {
	b.Helper()
	r, err := b.bookings.CreateResource(b.ctx, domain.Resource{
		Name: "Room", TimeZone: "Europe/Berlin", Places: places, UnitMinutes: 60,
		Price: domain.Money{Amount: 2500, Currency: "EUR"}, Hold: time.Hour,
	})
	require.NoError(b, err)
	return r.ID
}

// engine is one process's engine. Several of them are several processes, as far as the database and provider can tell.
func (b *bed) engine() *payments.Payments {
	return payments.New(b.db.Pool, b.gateway, noWaker{}, b.config, slog.New(slog.DiscardHandler))
}

// book accepts a booking on its own hour and returns its id.
func (b *bed) book(method string) domain.BookingID {
	b.Helper()
	b.start = b.start.Add(time.Hour)
	return b.bookAt(domain.NewID[domain.EffectID]().String(), method)
}

// bookAt accepts a booking under a key on the bed's present hour.
func (b *bed) bookAt(key, method string) domain.BookingID {
	b.Helper()
	answer, err := b.bookings.Accept(b.ctx, b.client, key, bookings.Request{
		ResourceID: b.resource, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Ada", CustomerEmail: "ada@example.org",
		PaymentMethod: method,
	})
	require.NoError(b, err)
	id, err := domain.ParseID[domain.BookingID](path.Base(answer.Location))
	require.NoError(b, err)
	return id
}

// effect returns the id of a booking's newest effect of a kind.
func (b *bed) effect(id domain.BookingID, kind domain.EffectKind) domain.EffectID {
	b.Helper()
	var e domain.EffectID
	b.scan(`SELECT id FROM outbox WHERE booking_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1`, &e, id, kind)
	return e
}

// job is a booking's charge job.
func (b *bed) job(id domain.BookingID) outbox.Job {
	b.Helper()
	return outbox.Job{Effect: b.effect(id, domain.EffectCharge), Kind: domain.EffectCharge}
}

// work runs a booking's charge or cancel job, again and again as its verdicts ask, until nothing is left to do.
func (b *bed) work(p *payments.Payments, id domain.BookingID, kind domain.EffectKind) {
	b.Helper()
	job := outbox.Job{Effect: b.effect(id, kind), Kind: kind}
	for range 50 {
		handle := p.Charge
		switch kind {
		case domain.EffectCancel:
			handle = p.Fence
		case domain.EffectRefund:
			handle = p.Refund
		case domain.EffectCharge, domain.EffectRefresh, domain.EffectPublish:
		}
		verdict, err := handle(b.ctx, job)
		require.NoError(b, err)
		if verdict.After == 0 {
			return
		}
		b.pause(verdict.After)
	}
	require.Fail(b, "the job never came to an end")
}

// reconcile does rounds until nothing is unfinished but what waits for the provider or a person.
func (b *bed) reconcile(p *payments.Payments, id domain.BookingID) {
	b.Helper()
	r := b.reconciler(p)
	open := func(sql string) bool {
		var n int
		b.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND `+sql, &n, id)
		return n > 0
	}
	tick := 5 * time.Millisecond
	if b.since != 0 { // many share the machine
		tick = 25 * time.Millisecond
	}
	for deadline := time.Now().Add(time.Minute); ; b.pause(tick) {
		_, err := r.Once(b.ctx)
		require.NoError(b, err)
		if open(`kind = 'cancel' AND status = 'pending'`) {
			b.work(p, id, domain.EffectCancel)
		}
		if !open(`kind IN ('charge', 'cancel') AND status IN ('pending', 'in_doubt')`) {
			return
		}
		require.True(b, time.Now().Before(deadline), "a doubt that never ends: %s", b.tale(id))
	}
}

// reconciler is one reconciler process.
func (b *bed) reconciler(p *payments.Payments) *payments.Reconciler {
	return payments.NewReconciler(p.Works(), payments.Rhythm{Interval: time.Millisecond, Ceiling: 100, Step: time.Minute}, slog.New(slog.DiscardHandler))
}

// expire lets the hold of a booking be over.
func (b *bed) expire(id domain.BookingID) {
	b.Helper()
	b.exec(`UPDATE bookings SET hold_expires_at = clock_timestamp() WHERE id = $1`, id)
}

func (b *bed) pause(d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
	}
}

func (b *bed) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.db.Pool.Exec(context.WithoutCancel(b.ctx), sql, args...)
	require.NoError(b, err)
}

func (b *bed) scan(sql string, into any, args ...any) {
	b.Helper()
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, sql, args...).Scan(into))
}

// statuses returns where booking and payment stand, and whether the slot is taken.
func (b *bed) statuses(id domain.BookingID) (booking, payment string, taken bool) {
	b.Helper()
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, `
		SELECT b.status, p.status, EXISTS (SELECT FROM allocations a WHERE a.booking_id = b.id AND a.active)
		  FROM bookings b JOIN payments p ON p.booking_id = b.id WHERE b.id = $1`, id).Scan(&booking, &payment, &taken))
	return booking, payment, taken
}

// tale is what a failing test needs to know of a booking. It is read only when it is printed.
type tale struct {
	b  *bed
	id domain.BookingID
}

func (b *bed) tale(id domain.BookingID) tale { return tale{b: b, id: id} }

func (t tale) String() string {
	var text string
	t.b.scan(`
		SELECT coalesce(jsonb_pretty(jsonb_build_object(
		    'booking', (SELECT to_jsonb(b) FROM bookings b WHERE b.id = $1),
		    'payment', (SELECT to_jsonb(p) FROM payments p WHERE p.booking_id = $1),
		    'calls', (SELECT jsonb_agg(c) FROM provider_calls c JOIN payments p ON p.id = c.payment_id WHERE p.booking_id = $1),
		    'effects', (SELECT jsonb_agg(o) FROM outbox o WHERE o.booking_id = $1))), '')`, &text, t.id)
	return text
}

// charges returns the provider's own truth: the succeeded charges of a booking.
func (b *bed) charges(id domain.BookingID) []stripesim.LedgerCharge {
	return b.sim.Ledger().Succeeded(id.String())
}

// agree checks that booking and ledger tell the same story, and that nothing was ever sent under two keys.
func (b *bed) agree(id domain.BookingID) {
	b.Helper()
	if b.since == 0 { // who shares the provider checks its whole ledger once, at the end
		require.NoError(b, b.sim.Ledger().Check())
	}
	booking, payment, taken := b.statuses(id)
	paid := len(b.charges(id))
	require.LessOrEqual(b, paid, 1, "G3: money moves at most once\n%s", b.tale(id))
	switch booking {
	case "confirmed":
		require.Equal(b, 1, paid, "confirmed without a charge\n%s", b.tale(id))
		require.Equal(b, "succeeded", payment)
		require.True(b, taken)
	case "expired", "cancelled", "failed":
		require.Equal(b, 0, paid, "G4: ended although the money was taken\n%s", b.tale(id))
		require.False(b, taken)
	default:
		require.Failf(b, "not ended", "booking is %s\n%s", booking, b.tale(id))
	}
	b.oneKeyEach(id)
	var repeated int // of a decline there is one for each card, of a dispute for each status
	b.scan(`SELECT count(DISTINCT event_type) - count(*) FROM outbox WHERE booking_id = $1 AND kind = 'publish' AND event_type NOT IN ('payment_declined', 'disputed')`, &repeated, id)
	require.Zero(b, repeated, "an event was told twice\n%s", b.tale(id))
}

// oneKeyEach checks that the provider saw the keys that were recorded before their sends, and no other; and that the
// intention to take the money kept one key for its whole life (G3).
func (b *bed) oneKeyEach(id domain.BookingID) {
	b.Helper()
	var payment string
	b.scan(`SELECT id::text FROM payments WHERE booking_id = $1`, &payment, id)
	seen, confirms := map[string]bool{}, 0
	for _, e := range b.sim.Journal(b.since) {
		if strings.Contains(e.IdempotencyKey, payment) && !seen[e.IdempotencyKey] {
			seen[e.IdempotencyKey] = true
			if e.Operation == "payment_intents.confirm" {
				confirms++
			}
		}
	}
	var recorded []string
	b.scan(`SELECT coalesce(array_agg(c.key), '{}') FROM provider_calls c WHERE c.payment_id = $1::uuid`, &recorded, payment)
	for key := range seen {
		require.Contains(b, recorded, key, "a key was sent that was never recorded")
	}
	var cards int
	b.scan(`SELECT card FROM payments WHERE booking_id = $1`, &cards, id)
	require.LessOrEqual(b, confirms, cards, "a confirm's key changed while its intention lived\n%s", b.tale(id))
}
