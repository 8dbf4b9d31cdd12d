package payments_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

const webhookSecret = domain.Secret("whsec_payments")

// deliver hands a body to the inbox, signed as the provider signs, and returns the event's id.
func (b *bed) deliver(body []byte) string {
	b.Helper()
	verifier, err := stripe.NewVerifier([]domain.Secret{webhookSecret})
	require.NoError(b, err)
	at := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(webhookSecret.Reveal()))
	fmt.Fprintf(mac, "%d.%s", at, body)
	id, err := payments.NewInbox(b.db.Pool, verifier, b.config.Meter).
		Receive(b.ctx, fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil))), body)
	require.NoError(b, err)
	return id
}

// told returns the provider's own events of a type about an intent, as it would deliver them.
func (b *bed) told(kind, intent string) [][]byte {
	b.Helper()
	request, err := http.NewRequestWithContext(b.ctx, http.MethodGet, b.sim.URL+"/v1/events?limit=100&type="+kind, http.NoBody)
	require.NoError(b, err)
	request.Header.Set("Authorization", "Bearer sk_test_payments")
	response, err := http.DefaultClient.Do(request)
	require.NoError(b, err)
	defer func() { require.NoError(b, response.Body.Close()) }()
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	require.NoError(b, json.NewDecoder(response.Body).Decode(&list))
	var about [][]byte
	for _, body := range list.Data {
		if strings.Contains(string(body), intent) {
			about = append(about, body)
		}
	}
	return about
}

// deliverTold delivers the provider's one event of a type about an intent.
func (b *bed) deliverTold(kind, intent string) string {
	b.Helper()
	events := b.told(kind, intent)
	require.Len(b, events, 1, kind)
	return b.deliver(events[0])
}

// claim is an event of our own making: what anybody with the secret could have said, at any time.
func (b *bed) claim(event, kind, intent string, metadata map[string]string) []byte {
	b.Helper()
	body, err := json.Marshal(map[string]any{
		"id": event, "object": "event", "type": kind, "created": time.Now().Unix(), "livemode": false, "api_version": "2020-08-27",
		"data": map[string]any{"object": map[string]any{
			"id": intent, "object": "payment_intent", "status": strings.TrimPrefix(kind, "payment_intent."), "metadata": metadata,
		}},
	})
	require.NoError(b, err)
	return body
}

// settleEvents acts on every receipt that is due, and then makes those due again that have to wait.
func (b *bed) settleEvents(p *payments.Payments) {
	b.Helper()
	for {
		worked, err := p.SettleEvent(b.ctx)
		require.NoError(b, err)
		if !worked {
			break
		}
	}
	b.exec(`UPDATE provider_events SET due_at = clock_timestamp() WHERE status = 'pending'`)
}

// receipt returns where a receipt stands, and why.
func (b *bed) receipt(event string) (status, why string) {
	b.Helper()
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, `SELECT status, coalesce(last_error, '') FROM provider_events WHERE id = $1`, event).Scan(&status, &why))
	return status, why
}

// counted returns a counter's value.
func (b *bed) counted(name string, labels ...string) float64 {
	b.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.config.Meter)
	families, err := registry.Gather()
	require.NoError(b, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var values []string
			for _, label := range metric.GetLabel() {
				values = append(values, label.GetValue())
			}
			if strings.Join(values, ",") == strings.Join(labels, ",") {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// Incident 06 (G5, G6): the provider tells of a success before the accepting transaction is visible. It cannot be told
// apart from one that rolled back, so the event is kept. Expected: not used up while the row is hidden; once it is there,
// paid once, by nobody's hand.
func TestIncident06_TheEventComesBeforeTheBooking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	booking, payment := domain.NewID[domain.BookingID](), domain.NewID[domain.PaymentID]()
	accept, err := b.db.Pool.Begin(b.ctx)
	require.NoError(t, err)
	defer func() { _ = accept.Rollback(context.WithoutCancel(b.ctx)) }()
	_, err = accept.Exec(b.ctx, `
		SELECT accept_booking($1, '/v1/bookings', 'key', '\x00', 1::smallint, '24 hours', $2, $3, $4, $5, $6,
			'2030-05-01T10:00Z', '2030-05-01T11:00Z', 1, NULL, NULL, 'Ada', 'ada@example.com', 'pm_card_visa', '{}')`,
		b.client, booking, payment, domain.NewID[domain.EffectID](), domain.NewID[domain.EffectID](), b.resource)
	require.NoError(t, err)

	intent := b.charged(payments.Charge{
		BookingID: booking, PaymentID: payment, Total: domain.Money{Amount: 2500, Currency: "EUR"}, PaymentMethod: "pm_card_visa",
	})
	event := b.deliverTold("payment_intent.succeeded", intent)
	p := b.engine()
	for range 3 {
		b.settleEvents(p)
		status, why := b.receipt(event)
		require.Equal(t, []string{"pending", "it names a booking that is not here"}, []string{status, why})
	}

	require.NoError(t, accept.Commit(b.ctx))
	b.settleEvents(p)
	status, why := b.receipt(event)
	require.Equal(t, []string{"pending", "the intent's id is not committed yet"}, []string{status, why})
	b.work(p, booking, domain.EffectCharge)
	b.settleEvents(p)
	b.agree(booking)
	require.Equal(t, []string{"held", "confirmed"}, b.events(booking))
	status, _ = b.receipt(event)
	require.Equal(t, "ignored", status, "it was settled by then")
}

// charged makes and confirms an intent under the keys that our own sends have, and returns its id.
func (b *bed) charged(c payments.Charge) string {
	b.Helper()
	made := b.gateway.Send(b.ctx, payments.Call{
		Operation: domain.OpCreate, Key: domain.ProviderKey(c.PaymentID, domain.OpCreate, 1), Params: b.gateway.Freeze(domain.OpCreate, c),
	})
	require.Equal(b, payments.Executed, made.Class, made.Detail)
	confirmed := b.gateway.Send(b.ctx, payments.Call{
		Operation: domain.OpConfirm, IntentID: made.Intent.ID, Key: domain.ProviderKey(c.PaymentID, domain.OpConfirm, 1),
		Params: b.gateway.Freeze(domain.OpConfirm, c),
	})
	require.Equal(b, payments.IntentSucceeded, confirmed.Intent.Status, confirmed.Detail)
	return made.Intent.ID
}

// Incident 06 (G5, G6): the success is told while the worker's commit of the intent's id waits for a lock that somebody
// else has. Expected: the event is kept, and after the release the booking is paid once.
func TestIncident06_TheEventComesBeforeTheIntentsID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	var lock pgx.Tx
	made := make(chan string, 1)
	gateway := &stalled{Gateway: b.gateway, afterSend: func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation == domain.OpCreate {
			var err error
			lock, err = b.db.Pool.Begin(b.ctx)
			require.NoError(t, err)
			_, err = lock.Exec(b.ctx, `SELECT FROM bookings WHERE id = $1 FOR UPDATE`, id)
			require.NoError(t, err)
			made <- out.Intent.ID
		}
		return out
	}}
	worked := make(chan error, 1)
	go func() {
		_, err := b.engineOn(gateway).Charge(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectCharge)})
		worked <- err
	}()
	intent := <-made
	_, err := b.sim.Act(stripesim.Action{Action: "customer_confirm", PaymentIntent: intent})
	require.NoError(t, err)
	event := b.deliverTold("payment_intent.succeeded", intent)
	p := b.engine()
	b.settleEvents(p)
	status, why := b.receipt(event)
	require.Equal(t, []string{"pending", "the intent's id is not committed yet"}, []string{status, why})

	require.NoError(t, lock.Rollback(b.ctx))
	if err := <-worked; err != nil {
		t.Log(err) // it has waited too long for the lock: its job comes again
	}
	b.work(p, id, domain.EffectCharge)
	b.settleEvents(p)
	b.agree(id)
	require.Equal(t, []string{"held", "confirmed"}, b.events(id))
	status, _ = b.receipt(event)
	require.NotEqual(t, "pending", status)
}

// Incident 06: the worker that made the intent is gone, its id was never committed, and the success is told. Expected: the
// reconciler adopts the intent, and the event that was kept makes the money known although nobody polls.
func TestIncident06_TheWorkerIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll, b.config.MaxSends = time.Hour, 1
	id := b.book("pm_card_authenticationRequired")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "reset_after"})
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	intents, err := b.gateway.IntentsCreated(b.ctx, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Len(t, intents, 1)
	b.reconcile(p, id)
	_, err = b.sim.Act(stripesim.Action{Action: "authenticate", PaymentIntent: intents[0].ID})
	require.NoError(t, err)
	event := b.deliverTold("payment_intent.succeeded", intents[0].ID)
	b.settleEvents(p)
	status, _ := b.receipt(event)
	require.Equal(t, "settled", status)
	b.agree(id)
	require.Equal(t, []string{"held", "action_required", "confirmed"}, b.events(id))
}

// Incident 06: who shares the account. An event that does not carry our ids and is about an intent of nobody here has no
// effect, and is counted; one that carries ids like ours is kept for days, listed with its age, and then left to a person.
func TestIncident06_ForeignAndUnknownEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Meter = payments.NewMeter()
	p := b.engine()
	none := b.deliver(b.claim("evt_none", "payment_intent.succeeded", "pi_foreign", nil))
	other := b.deliver(b.claim("evt_other", "payment_intent.succeeded", "pi_foreign", map[string]string{"booking_id": "order-7", "payment_id": "7"}))
	lost := b.deliver(b.claim("evt_lost", "payment_intent.succeeded", "pi_lost", map[string]string{
		"booking_id": uuid.NewString(), "payment_id": uuid.NewString(),
	}))
	live := b.deliver([]byte(`{"id":"evt_live","type":"payment_intent.succeeded","livemode":true,"data":{"object":{"id":"pi_live","object":"payment_intent"}}}`))
	payout := b.deliver(b.claim("evt_payout", "payout.paid", "pi_foreign", nil))
	b.settleEvents(p)
	for event, want := range map[string]string{none: "foreign", other: "foreign", live: "foreign", lost: "pending", payout: "ignored"} {
		status, _ := b.receipt(event)
		require.Equal(t, want, status, event)
	}
	require.InDelta(t, 3, b.counted("holdfast_provider_events_handled_total", "foreign", "payment_intent.succeeded"), 0)
	require.InDelta(t, 1, b.counted("holdfast_provider_events_handled_total", "ignored", "payout.paid"), 0)
	require.Empty(t, b.sim.Journal(0), "the provider was asked")

	b.exec(`UPDATE provider_events SET received_at = received_at - interval '71 hours' WHERE id = $1`, lost)
	b.settleEvents(p)
	stuck, err := payments.StuckEvents(b.ctx, b.db.Pool, 10)
	require.NoError(t, err)
	require.Len(t, stuck, 1)
	require.Contains(t, stuck[0].String(), "event evt_lost (payment_intent.succeeded) of intent pi_lost, pending since 71h0m")
	b.exec(`UPDATE provider_events SET received_at = received_at - interval '1 hour' WHERE id = $1`, lost)
	b.settleEvents(p)
	status, why := b.receipt(lost)
	require.Equal(t, []string{"parked", "it names a booking that is not here"}, []string{status, why})
	var touched int
	b.scan(`SELECT (SELECT count(*) FROM payments) + (SELECT count(*) FROM outbox)`, &touched)
	require.Zero(t, touched)
}

// Incident 07 (G4, G6): late and repeated events of earlier states, rightly signed, each twice, under a second id, too, and
// all at once, after a success that we know of, or do not know of yet. Expected: paid, confirmed told once, the slot
// taken, no receipt open.
func TestIncident07_LateEventsDowngradeNothing(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"the success is known": true, "the success is not known yet": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.config.Poll = time.Hour
			id := b.book("pm_card_authenticationRequired")
			b.work(b.engine(), id, domain.EffectCharge)
			intent := b.intent(id)
			_, err := b.sim.Act(stripesim.Action{Action: "authenticate", PaymentIntent: intent})
			require.NoError(t, err)
			if known {
				b.deliverTold("payment_intent.succeeded", intent)
				b.settleEvents(b.engine())
				b.agree(id)
			}
			var payment string
			b.scan(`SELECT id::text FROM payments WHERE booking_id = $1`, &payment, id)
			metadata := map[string]string{"booking_id": id.String(), "payment_id": payment}
			var bodies [][]byte
			for _, kind := range []string{"payment_failed", "requires_action", "processing"} {
				for _, event := range []string{"evt_" + kind, "evt_" + kind, "evt_again_" + kind} {
					bodies = append(bodies, b.claim(event, "payment_intent."+kind, intent, metadata))
				}
			}
			together(len(bodies), func(i int) {
				b.deliver(bodies[i])
				for worked := true; worked; {
					var err error
					worked, err = b.engine().SettleEvent(b.ctx)
					require.NoError(t, err)
				}
			})
			for range 3 {
				b.settleEvents(b.engine()) // those that looked while another settled
			}
			b.agree(id)
			require.Equal(t, []string{"held", "action_required", "confirmed"}, b.events(id))
			var receipts, open, looked int
			b.scan(`SELECT count(*) FROM provider_events WHERE id NOT LIKE 'evt_3%'`, &receipts)
			b.scan(`SELECT count(*) FROM provider_events WHERE status NOT IN ('settled', 'ignored')`, &open)
			b.scan(`SELECT count(*) FROM provider_events WHERE status = 'settled'`, &looked)
			require.Equal(t, 6, receipts)
			require.Zero(t, open)
			if known {
				require.Equal(t, 1, looked, "what is settled for good needs no look")
			}
		})
	}
}

// What an event says is never applied (G4): a success that the provider does not bear out changes nothing, is kept, and is
// parked in the end. So is one on an intent that is not the payment's.
func TestEvents_AreNeverBelieved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_authenticationRequired")
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	metadata := map[string]string{"booking_id": id.String()}
	early := b.deliver(b.claim("evt_early", "payment_intent.succeeded", b.intent(id), metadata))
	other := b.deliver(b.claim("evt_other", "payment_intent.succeeded", "pi_other", metadata))
	failed := b.deliver(b.claim("evt_failed", "payment_intent.payment_failed", "pi_other", metadata))
	canceled := b.deliver(b.claim("evt_canceled", "payment_intent.canceled", b.intent(id), metadata))
	b.settleEvents(p)
	for _, c := range []struct{ event, want string }{{early, "pending"}, {other, "parked"}, {failed, "ignored"}, {canceled, "settled"}} {
		status, why := b.receipt(c.event)
		require.Equal(t, c.want, status, "%s: %s", c.event, why)
	}
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"held", "requires_action", true}, []any{booking, payment, taken})
	require.Equal(t, []string{"held", "action_required"}, b.events(id))

	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.retrieve", Fault: "error_503", Times: -1})
	b.settleEvents(p)
	status, why := b.receipt(early)
	require.Equal(t, []string{"pending", "the provider could not be read"}, []string{status, why})
	b.sim.ClearFaults()
	_, err := b.sim.Act(stripesim.Action{Action: "authenticate", PaymentIntent: b.intent(id)})
	require.NoError(t, err)
	b.settleEvents(p)
	b.agree(id)
	status, _ = b.receipt(early)
	require.Equal(t, "settled", status)
}

// A charge that belongs to no intent is never a booking's, whatever its metadata says: here every charge has one (G8).
// Expected: nothing is read, money on it is a person's at once, and the rest is over.
func TestEvents_AChargeWithoutAnIntentIsNobodys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa") // without an intent, too, so far
	claim := func(event, kind string) string {
		return b.deliver([]byte(`{"id":"` + event + `","type":"` + kind + `","data":{"object":{"id":"ch_1","object":"charge","payment_intent":null,` +
			`"metadata":{"booking_id":"` + id.String() + `"}}}}`))
	}
	taken, failed := claim("evt_taken", "charge.succeeded"), claim("evt_failed", "charge.failed")
	b.settleEvents(b.engine())
	for event, want := range map[string]string{taken: "parked", failed: "ignored"} {
		status, why := b.receipt(event)
		require.Equal(t, want, status, "%s: %s", event, why)
	}
	require.Empty(t, b.sim.Journal(0), "the provider was asked")
	b.work(b.engine(), id, domain.EffectCharge)
	b.agree(id)
}

// An event may be all that tells of a success behind a canceled intent (G4, G8). Expected: one refund, made.
func TestEvents_ALateChargeIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Watch = time.Hour
	id := b.book("pm_card_visa")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "partial_500"})
	b.sim.AddFault(stripesim.Fault{Operation: "charges.list", Fault: "list_page_empty"})
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	b.reconcile(p, id)
	booking, payment, _ := b.statuses(id)
	require.Equal(t, []any{"failed", "canceled"}, []any{booking, payment}, b.tale(id))
	_, err := b.sim.Act(stripesim.Action{Action: "roll_forward", PaymentIntent: b.intent(id)})
	require.NoError(t, err)
	b.deliverTold("charge.succeeded", b.intent(id))
	b.settleEvents(p)
	booking, payment, _ = b.statuses(id)
	require.Equal(t, []any{"failed", "succeeded"}, []any{booking, payment}, b.tale(id))
	require.Equal(t, "done", b.healRefund(id))
	b.givenBack(id, "1")
}
