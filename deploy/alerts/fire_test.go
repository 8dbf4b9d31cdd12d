package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// trouble is how the system comes into the state that an alert is for.
type trouble struct {
	fires []string // all that fire, and no other
	begin func(b *bed)
	again time.Duration // it goes on: what was counted is counted again each time
}

// aged lets the effects of a kind be in a state, since a while ago.
func aged(kind, status, since string) func(b *bed) {
	return func(b *bed) {
		b.exec(`UPDATE outbox SET status = 'done', finished_at = now(), stream = 'B', stream_sequence = 1 WHERE status = 'pending'`)
		id := b.book("pm_card_visa")
		b.exec(`DELETE FROM outbox WHERE booking_id = $1 AND kind = 'publish' AND $2 <> 'publish'`, id, kind)
		b.exec(`DELETE FROM outbox WHERE booking_id = $1 AND kind = 'charge' AND $2 = 'publish'`, id, kind)
		b.exec(`UPDATE outbox SET kind = CASE event_type IS NULL WHEN true THEN $2 ELSE kind END, status = $3, created_at = now() - $4::text::interval
			WHERE booking_id = $1`, id, kind, status, since)
	}
}

// ending is a booking that has been ending since a while ago: its customer never authenticated.
func ending(since string) func(b *bed) {
	return func(b *bed) {
		id := b.book("pm_card_threeDSecure2Required")
		b.work(id, domain.EffectCharge)
		b.exec(`UPDATE bookings SET hold_expires_at = clock_timestamp() WHERE id = $1`, id)
		worked, err := b.engine.SweepHold(b.ctx)
		require.NoError(b, err)
		require.True(b, worked)
		b.exec(`UPDATE bookings SET updated_at = now() - $2::text::interval WHERE id = $1`, id, since)
	}
}

func disputed(status string) func(b *bed) {
	return func(b *bed) {
		b.exec(`INSERT INTO disputes (id, payment_id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at)
			SELECT 'dp_1', id, 2500, 'EUR', 'fraudulent', $1, true, now(), now(), now() FROM payments LIMIT 1`, status)
	}
}

func receipt(status, since string) func(b *bed) {
	return func(b *bed) {
		b.exec(`INSERT INTO provider_events (id, type, livemode, object_type, object_id, intent_id, booking_id, payment_id, request_key,
				created_at, received_at, via, status, finished_at)
			VALUES ('evt_1', 'charge.succeeded', false, 'charge', 'ch_1', 'pi_1', '', '', '', now(), now() - $2::text::interval, 'webhook', $1,
				CASE WHEN $1 = 'parked' THEN now() END)`, status, since)
	}
}

// exception is one that is open.
func exception(kind string) func(b *bed) {
	return func(b *bed) {
		compared("0")(b)
		b.exec(`INSERT INTO reconciliation_items (kind, about, occurred_at, why, owner, run_id)
			SELECT $1, 'txn_1', now(), 'why', 'finance', id FROM reconciliation_runs`, kind)
	}
}

// compared says how long ago the time ended up to which the books were compared.
func compared(since string) func(b *bed) {
	return func(b *bed) {
		b.exec(`INSERT INTO reconciliation_runs (id, kind, status, from_at, to_at, finished_at)
			VALUES (gen_random_uuid(), 'match', 'complete', now() - interval '1 day', now() - $1::text::interval, now())`, since)
	}
}

// faulty charges bookings while the provider has a fault.
func faulty(operation, fault string, n int) func(b *bed) {
	return func(b *bed) {
		b.sim.AddFault(stripesim.Fault{Operation: operation, Fault: fault, Times: -1})
		for range n {
			b.work(b.book("pm_card_visa"), domain.EffectCharge)
		}
	}
}

var troubles = map[string]trouble{
	"a refund is parked":   {fires: []string{"RefundParked"}, begin: aged("refund", "parked", "0")},
	"a charge is parked":   {fires: []string{"EffectParked"}, begin: aged("charge", "parked", "0")},
	"an event is parked":   {fires: []string{"EffectParked"}, begin: aged("publish", "parked", "0")},
	"a charge is in doubt": {fires: []string{"DoubtUnresolved"}, begin: aged("charge", "in_doubt", "301 seconds")},
	"a refund is in doubt": {fires: []string{"DoubtUnresolved"}, begin: aged("refund", "in_doubt", "301 seconds")},
	"no worker charges":    {fires: []string{"ChargesWait"}, begin: aged("charge", "pending", "121 seconds")},
	"no worker gives back": {fires: []string{"GivingBackWaits"}, begin: aged("refund", "pending", "301 seconds")},
	"no worker fences":     {fires: []string{"GivingBackWaits"}, begin: aged("cancel", "pending", "301 seconds")},
	"the broker is away":   {fires: []string{"EventsWait"}, begin: aged("publish", "pending", "301 seconds")},
	"charges are paused": {fires: []string{"KindPaused"}, begin: func(b *bed) {
		aged("charge", "pending", "121 seconds")(b)
		_, err := outbox.Pause(b.ctx, b.db.Pool, domain.EffectCharge, "ada", "fraud wave")
		require.NoError(b, err)
	}},
	"jobs are deleted": {fires: []string{"JobsRevived"}, begin: func(b *bed) {
		for range 12 {
			b.book("pm_card_visa")
		}
		b.exec(`DELETE FROM river_job`)
		revived, err := b.sweeper.Sweep(b.ctx)
		require.NoError(b, err)
		require.GreaterOrEqual(b, revived, 12)
	}},
	"jobs of another program": {fires: []string{"ForeignJobs"}, begin: func(b *bed) {
		b.exec(`INSERT INTO river_job (args, kind, max_attempts, queue, state) VALUES ('{}', 'teleport', 25, 'charge', 'retryable')`)
	}},
	"events go out late": {fires: []string{"EventsSlow"}, begin: func(b *bed) {
		id := b.book("pm_card_visa")
		b.exec(`UPDATE outbox SET created_at = created_at - interval '25 seconds' WHERE booking_id = $1`, id)
		b.work(id, domain.EffectPublish)
	}},
	"somebody else sends under our key": {fires: []string{"KeyMismatch"}, begin: func(b *bed) {
		id := b.book("pm_card_visa")
		var payment string
		b.scan(`SELECT id::text FROM payments WHERE booking_id = $1`, &payment, id)
		require.Equal(b, 200, b.sendAsUs("hf:"+payment+":create:1", "/v1/payment_intents", "amount=100&currency=eur"))
		b.work(id, domain.EffectCharge)
	}},
	"the provider answers 500":        {fires: []string{"ProviderTrouble"}, begin: faulty("payment_intents.create", "error_500_before", 6)},
	"the provider refuses our key":    {fires: []string{"SendsRefused"}, begin: faulty("payment_intents.create", "unauthorized_401", 4)},
	"the provider asks us to go slow": {fires: []string{"SendsRefused"}, begin: faulty("payment_intents.create", "rate_limit_429", 4)},
	"a key is nearly too old": {fires: []string{"KeysNearHorizon"}, begin: func(b *bed) {
		faulty("payment_intents.confirm", "reset_after", 1)(b)
		b.exec(`UPDATE provider_calls SET first_sent_at = first_sent_at - interval '16 hours' WHERE operation = 'confirm'`)
	}},
	"no reconciler sweeps": {fires: []string{"HoldsNotSwept"}, begin: func(b *bed) {
		b.exec(`UPDATE bookings SET hold_expires_at = now() - interval '61 seconds' WHERE id = $1`, b.book("pm_card_visa"))
	}},
	"a booking ends slowly":       {fires: []string{"EndingsOverdue"}, begin: ending("2 minutes")},
	"a booking does not end":      {fires: []string{"EndingStuck", "EndingsOverdue"}, begin: ending("901 seconds")},
	"a dispute needs evidence":    {fires: []string{"DisputeNeedsResponse"}, begin: disputed("needs_response")},
	"an inquiry needs an answer":  {fires: []string{"DisputeNeedsResponse"}, begin: disputed("warning_needs_response")},
	"a dispute of a new kind":     {fires: []string{"DisputeUnknown"}, begin: disputed("pondering")},
	"a receipt is not understood": {fires: []string{"ReceiptParked"}, begin: receipt("parked", "0")},
	"receipts are not acted on":   {fires: []string{"ReceiptsWait"}, begin: receipt("pending", "301 seconds")},
	"the list of events is unread": {fires: []string{"EventSweepStale"}, begin: func(b *bed) {
		b.exec(`UPDATE provider_events_sweep SET swept_to = now() - interval '3601 seconds'`)
	}},
	"the secret was rolled": {fires: []string{"WebhookSignatures"}, begin: func(b *bed) {
		for i := range 6 {
			require.Equal(b, 400, b.deliver(fmt.Sprintf("evt_%d", i), 0, "whsec_other"))
		}
	}},
	"webhooks cannot be stored": {fires: []string{"RequestsTurnedAway", "WebhooksNotStored"}, again: time.Minute, begin: func(b *bed) {
		b.away = true
		for i := range 4 {
			require.Equal(b, 503, b.deliver(fmt.Sprintf("evt_%d", i), 0, webhookSecret))
		}
	}},
	"webhooks come late": {fires: []string{"WebhooksLate"}, begin: func(b *bed) {
		for i := range 3 {
			require.Equal(b, 200, b.deliver(fmt.Sprintf("evt_%d", i), 299*time.Second, webhookSecret))
		}
		b.exec(`UPDATE provider_events SET status = 'ignored', finished_at = now()`)
	}},
	"no webhook comes": {fires: []string{"WebhooksMissing"}, begin: func(b *bed) {
		for range 4 {
			b.healthy()
		}
		b.exec(`UPDATE provider_events_sweep SET due_at = clock_timestamp()`)
		_, err := b.engine.SweepEvents(b.ctx)
		require.NoError(b, err)
		b.exec(`UPDATE provider_events SET status = 'ignored', finished_at = now()`)
	}, again: 10 * time.Minute},
	"a booking was charged twice":  {fires: []string{"DoubleCharge"}, begin: exception("two_charges")},
	"a refund was made by hand":    {fires: []string{"ExceptionsOpen"}, begin: exception("refund_without_cause")},
	"the provider is an hour late": {begin: exception("late")},
	"the books are not compared":   {fires: []string{"BooksNotCompared"}, begin: compared("7201 seconds")},
	"the books were compared":      {begin: compared("1 hour")},
	"the database is away": {fires: []string{"DatabaseUnread"}, begin: func(b *bed) {
		b.exec(`ALTER TABLE outbox RENAME TO elsewhere`)
	}},
	"a bug": {fires: []string{"ServerErrors"}, begin: func(b *bed) {
		b.trouble = func(context.Context) error { return errors.New("a bug") }
		require.Equal(b, 500, b.post("/v1/resources", ""))
	}},
	"more requests than it bears": {fires: []string{"RequestsTurnedAway"}, again: time.Minute, begin: func(b *bed) {
		b.trouble = func(context.Context) error { return domain.ErrBusy }
		require.Equal(b, 503, b.post("/v1/resources", ""))
	}},
	"booking is slow": {fires: []string{"BookingSlow"}, begin: func(b *bed) {
		held, err := b.db.Pool.Begin(b.ctx)
		require.NoError(b, err)
		_, err = held.Exec(b.ctx, `LOCK TABLE bookings IN EXCLUSIVE MODE`)
		require.NoError(b, err)
		done := make(chan int, 1)
		go func() {
			done <- b.order("2031-05-01")
		}()
		<-time.After(1100 * time.Millisecond)
		require.NoError(b, held.Rollback(b.ctx))
		require.Equal(b, 201, <-done)
	}},
	"stolen cards are tried": {fires: []string{"CardTesting"}, begin: func(b *bed) {
		id := b.book("pm_card_chargeDeclined")
		for i := range 2 {
			b.work(id, domain.EffectCharge)
			_, err := b.desk.ChangeCard(b.ctx, payments.Ask{Client: b.client, Booking: id, Key: fmt.Sprint(i)}, "pm_card_chargeDeclined",
				func(payments.View, bool) (int, []byte, error) { return 202, nil, nil })
			require.Equal(b, i == 1, errors.As(err, new(*payments.TooManyCardsError)), err)
		}
	}},
	"all connections are in use": {fires: []string{"ConnectionsExhausted"}, begin: func(b *bed) { b.hold(2) }},
	"requests wait for connections": {fires: []string{"ConnectionsAwaited"}, again: time.Minute, begin: func(b *bed) {
		release := b.hold(2)
		var waiting sync.WaitGroup
		for range 150 {
			waiting.Go(func() {
				c, err := b.small.Acquire(b.ctx)
				if err == nil {
					c.Release()
				}
			})
		}
		<-time.After(600 * time.Millisecond)
		release()
		waiting.Wait()
	}},
}

// hold takes connections of the API's pool, until it is told to let go or the case ends.
func (b *bed) hold(n int) (release func()) {
	b.Helper()
	var held []*pgxpool.Conn
	for range n {
		c, err := b.small.Acquire(b.ctx)
		require.NoError(b, err)
		held = append(held, c)
	}
	release = sync.OnceFunc(func() {
		for _, c := range held {
			c.Release()
		}
	})
	b.Cleanup(release)
	return release
}

// TestEveryAlertFires: each alert on the real system in the state that it is for: it fires, and no other does.
func TestEveryAlertFires(t *testing.T) {
	t.Parallel()
	all := rules(t)
	var fired sync.Map
	t.Cleanup(func() { // after every case
		for _, rule := range all {
			_, did := fired.Load(rule.Alert)
			require.True(t, did || t.Failed(), "no case fires %s", rule.Alert)
		}
	})
	for name, test := range troubles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.healthy()
			require.Equal(t, 201, b.order("2031-04-01"))
			before := scrapeOf(t, b.registry)
			test.begin(b)
			h := history{before: before, after: scrapeOf(t, b.registry), again: test.again}
			require.Equal(t, test.fires, h.fired(t, all))
			for _, alert := range test.fires {
				fired.Store(alert, true)
			}
		})
	}
}

// TestNoAlertFiresWhereAllIsWell: a system that is busy.
func TestNoAlertFiresWhereAllIsWell(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.healthy()
	before := scrapeOf(t, b.registry)
	for range 3 {
		b.healthy()
	}
	require.Equal(t, 200, b.post("/v1/resources", ""))
	require.Equal(t, 200, b.deliver("evt_1", time.Second, webhookSecret))
	h := history{before: before, after: scrapeOf(t, b.registry), again: time.Minute}
	require.Empty(t, h.fired(t, rules(t)))
}

// TestAnAlertFiresWhereNothingIsLeft: no process is scraped any more, and silence is no good news.
func TestAnAlertFiresWhereNothingIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := history{before: scrapeOf(t, b.registry)}
	require.Equal(t, []string{"DatabaseUnread"}, h.fired(t, rules(t)))
}
