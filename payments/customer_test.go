package payments_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

// act does something at the provider to the intent of a booking.
func (b *bed) act(action string, id domain.BookingID, change ...func(*stripesim.Action)) {
	b.Helper()
	require.NoError(b, b.tryAct(action, id, change...))
}

func (b *bed) tryAct(action string, id domain.BookingID, change ...func(*stripesim.Action)) error {
	b.Helper()
	a := stripesim.Action{Action: action, PaymentIntent: b.intent(id)}
	for _, f := range change {
		f(&a)
	}
	_, err := b.sim.Act(a)
	return err
}

func (b *bed) gatewayTo(returnURL string) *stripe.Gateway {
	b.Helper()
	g, err := stripe.New(stripe.Config{APIKey: "sk_test_payments", BaseURL: b.sim.URL, Timeout: stripeTimeout, ReturnURL: returnURL})
	require.NoError(b, err)
	return g
}

func (b *bed) runOnceCharge(p *payments.Payments, id domain.BookingID) {
	b.Helper()
	b.runOnce(p, outbox.Job{Effect: b.effect(id, domain.EffectCharge), Kind: domain.EffectCharge})
}

// stands checks booking and payment, and what was told, in order.
func (b *bed) stands(id domain.BookingID, booking, payment string, events ...string) {
	b.Helper()
	gotBooking, gotPayment, _ := b.statuses(id)
	require.Equal(b, []any{booking, payment}, []any{gotBooking, gotPayment}, b.tale(id))
	require.Equal(b, events, b.events(id), b.tale(id))
}

// end lets the hold be over and does what follows.
func (b *bed) end(id domain.BookingID) {
	b.Helper()
	b.expire(id)
	b.reconcile(b.engine(), id)
	b.reconcile(b.engine(), id)
}

// 3-D Secure that is passed is a charge, told once (G3, G6); one that is failed, or passed with a card that the bank then
// declines, is a decline, and the booking stays held until its hold ends (G4).
func TestCustomer_AnswersTheBank(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct{ card, action, payment, code string }{
		{"pm_card_threeDSecure2Required", "authenticate", "succeeded", ""},
		{"pm_card_threeDSecure2Required", "fail_authentication", "declined", "payment_intent_authentication_failure"},
		{"pm_card_threeDSecureRequiredChargeDeclined", "authenticate", "declined", "card_declined"},
		{"pm_card_threeDSecureRequiredChargeDeclined", "fail_authentication", "declined", "payment_intent_authentication_failure"},
	} {
		id := b.book(tt.card)
		b.work(b.engine(), id, domain.EffectCharge)
		b.stands(id, "held", "requires_action", "held", "action_required")
		require.Empty(t, b.charges(id))
		b.act(tt.action, id)
		b.watch()
		b.watch()
		require.Equal(t, tt.code, b.view(id).Payment.FailureCode)
		if tt.payment == "succeeded" {
			b.stands(id, "confirmed", "succeeded", "held", "action_required", "confirmed")
			b.agree(id)
			continue
		}
		_, _, taken := b.statuses(id)
		require.True(t, taken)
		b.stands(id, "held", "declined", "held", "action_required", "payment_declined")
		b.end(id)
		b.stands(id, "expired", "canceled", "held", "action_required", "payment_declined", "expired")
		b.agree(id)
	}
}

// A customer who never comes back (G4): the slot is free only once the intent is canceled, and whoever comes back later
// can pay nothing. Expected: no charge, whatever is tried; the slot sells again.
func TestCustomer_AbandonsTheBank(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_threeDSecure2Required")
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	b.expire(id)
	worked, err := p.SweepHold(b.ctx)
	require.NoError(t, err)
	require.True(t, worked)
	_, _, taken := b.statuses(id)
	require.True(t, taken, "asked for is not proved")
	b.stands(id, "ending", "requires_action", "held", "action_required")
	b.work(p, id, domain.EffectCancel)
	b.stands(id, "expired", "canceled", "held", "action_required", "expired")
	for _, late := range []string{"authenticate", "fail_authentication", "customer_confirm"} {
		require.Error(t, b.tryAct(late, id), late)
	}
	b.watch()
	b.agree(id)
	rival := b.bookAt("rival", "pm_card_visa")
	b.work(p, rival, domain.EffectCharge)
	b.agree(rival)
}

// The customer is back in the very moment in which the hold ends (G3, G4): between the sweep and the fence, or while the
// fence's answer is on its way. Expected: who pays before the cancel is confirmed, and charged once.
func TestCustomer_ComesBackInTheLastMoment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, action := range []string{"authenticate", "customer_confirm"} {
		id := b.book("pm_card_threeDSecure2Required")
		p := b.engine()
		b.work(p, id, domain.EffectCharge)
		b.expire(id)
		_, err := p.SweepHold(b.ctx)
		require.NoError(t, err)
		b.act(action, id, func(a *stripesim.Action) { a.PaymentMethod = "pm_card_visa" })
		b.work(p, id, domain.EffectCancel)
		b.stands(id, "confirmed", "succeeded", "held", "action_required", "confirmed")
		b.agree(id)
	}
}

// onConfirm is a gateway beside whose first confirm something else happens: before it is sent, which it then may never
// be (lost), or once its answer is there.
func (b *bed) onConfirm(before, after func(), lost bool) *stalled {
	first := true
	confirm := func(c payments.Call) bool { return c.Operation == domain.OpConfirm && first }
	return &stalled{Gateway: b.gateway, lose: func(c payments.Call) bool {
		if !confirm(c) {
			return false
		}
		if before != nil {
			before()
		}
		first = !lost && after != nil
		return lost
	}, afterSend: func(c payments.Call, out payments.Outcome) payments.Outcome {
		if confirm(c) {
			first = false
			after()
		}
		return out
	}}
}

// Whoever holds the client secret can confirm without us, at any moment of our own confirm (G3). Expected, for each: one
// charge, one confirmed event, our confirm under its one key.
func TestCustomer_ConfirmsOnTheirOwn(t *testing.T) {
	t.Parallel()
	const (
		asks = "pm_card_threeDSecure2Required"
		pays = "pm_card_visa"
	)
	with := func(card string) func(*stripesim.Action) { return func(a *stripesim.Action) { a.PaymentMethod = card } }
	for name, tt := range map[string]struct {
		cards []string // the booking's
		plan  func(b *bed, id domain.BookingID) *stalled
	}{
		"before ours is sent": {[]string{asks, pays}, func(b *bed, id domain.BookingID) *stalled {
			return b.onConfirm(func() { b.act("customer_confirm", id, with(pays)) }, nil, false)
		}},
		"with a card that is declined and then another, before ours": {[]string{asks, pays}, func(b *bed, id domain.BookingID) *stalled {
			return b.onConfirm(func() {
				b.act("customer_confirm", id, with("pm_card_chargeDeclined"))
				b.act("customer_confirm", id, with(pays))
			}, nil, false)
		}},
		"while ours is under way": {[]string{asks, pays}, func(b *bed, id domain.BookingID) *stalled {
			b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "slow"})
			paid := make(chan error, 1)
			return b.onConfirm(func() {
				intent, sent := b.intent(id), b.sent("payment_intents.confirm")
				go func() {
					for b.sent("payment_intents.confirm") == sent && b.ctx.Err() == nil {
						b.pause(time.Millisecond)
					}
					_, err := b.sim.Act(stripesim.Action{Action: "customer_confirm", PaymentIntent: intent, PaymentMethod: pays})
					paid <- err
				}()
			}, func() { require.NoError(b, <-paid) }, false)
		}},
		"before the answer to ours is here": {[]string{asks}, func(b *bed, id domain.BookingID) *stalled {
			return b.onConfirm(nil, func() { b.act("customer_confirm", id, with(pays)) }, false)
		}},
		"instead of ours, which is lost": {[]string{asks, pays}, func(b *bed, id domain.BookingID) *stalled {
			return b.onConfirm(func() { b.act("customer_confirm", id, with(pays)) }, nil, true)
		}},
		"instead of ours, at the bank, and the answer to ours is lost": {[]string{asks}, func(b *bed, id domain.BookingID) *stalled {
			b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after"})
			return b.onConfirm(nil, func() { b.act("authenticate", id) }, false)
		}},
		"after ours": {[]string{asks}, func(b *bed, _ domain.BookingID) *stalled { return &stalled{Gateway: b.gateway} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for _, card := range tt.cards {
				id := b.book(card)
				p := b.engineOn(tt.plan(b, id))
				b.work(p, id, domain.EffectCharge)
				b.reconcile(p, id)
				if name == "after ours" {
					b.stands(id, "held", "requires_action", "held", "action_required")
					require.Empty(t, b.charges(id))
					b.act("customer_confirm", id, with(pays))
				}
				b.watch()
				booking, _, _ := b.statuses(id)
				require.Equal(t, "confirmed", booking, b.tale(id))
				b.agree(id)
			}
		})
	}
}

// The customer's own try fails before our confirm arrives (G3, G4): the provider has taken the method away, and ours is
// refused for the state that it finds. Expected: declined, held, nothing charged; a later try of the customer confirms.
func TestCustomer_FailsOnTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.work(b.engineOn(b.onConfirm(func() {
		b.act("customer_confirm", id, func(a *stripesim.Action) { a.PaymentMethod = "pm_card_chargeDeclined" })
	}, nil, false)), id, domain.EffectCharge)
	b.stands(id, "held", "declined", "held", "payment_declined")
	require.Empty(t, b.charges(id))
	b.act("customer_confirm", id)
	b.watch()
	b.stands(id, "confirmed", "succeeded", "held", "payment_declined", "confirmed")
	b.agree(id)
}

// Accepted is not decided (G4, G5): processing settles later, either way, while the hold runs and after it. Expected:
// neither confirmed nor released before.
func TestCustomer_ProcessingSettlesLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct {
		outcome string
		late    bool // after the hold
		story   []string
	}{
		{"succeeded", false, []string{"confirmed", "held", "confirmed"}},
		{"succeeded", true, []string{"confirmed", "held", "confirmed"}},
		{"failed", false, []string{"held", "held", "payment_declined"}},
		{"failed", true, []string{"expired", "held", "expired"}},
	} {
		id := b.book("pm_sim_processing")
		p := b.engine()
		b.work(p, id, domain.EffectCharge)
		b.stands(id, "held", "processing", "held")
		if tt.late {
			b.expire(id)
			_, err := p.SweepHold(b.ctx)
			require.NoError(t, err)
			b.runOnce(p, outbox.Job{Effect: b.effect(id, domain.EffectCancel), Kind: domain.EffectCancel})
			_, _, taken := b.statuses(id)
			require.True(t, taken)
			b.stands(id, "ending", "processing", "held")
		}
		b.act("settle_processing", id, func(a *stripesim.Action) { a.Outcome = tt.outcome })
		b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE booking_id = $1 AND status = 'in_doubt'`, id)
		b.reconcile(p, id)
		booking, payment, _ := b.statuses(id)
		require.Equal(t, tt.story, append([]string{booking}, b.events(id)...), b.tale(id))
		if booking == "held" {
			require.Equal(t, "declined", payment)
			b.end(id)
		}
		b.agree(id)
	}
}

// told is a log that may be read while it is written.
type told struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *told) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *told) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// says is a gateway whose provider reports every intent of a payment that it has confirmed as this status, whatever the
// truth is; nil tells the truth.
type says struct {
	stalled

	mu     sync.Mutex
	status payments.IntentStatus
}

func (b *bed) says(status payments.IntentStatus) *says {
	s := &says{status: status}
	s.Gateway = b.gateway
	s.alterRead = s.alter
	s.afterSend = func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation == domain.OpConfirm && out.Intent != nil {
			s.alter(out.Intent)
		}
		return out
	}
	return s
}

func (s *says) alter(i *payments.Intent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != "" {
		i.Status, i.AmountReceived = s.status, 0
	}
}

func (s *says) set(status payments.IntentStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Incident 21 (G3, G4, G6): requires_action or processing counted as paid, or as failed; an unheard-of status taken for
// either. The provider reports each status in turn, an invented one too, in the answer to the confirm and in every read,
// although the money is taken. Expected: no confirmed event, nothing released and nothing called failed before it says
// succeeded; what nobody has heard of is in doubt, in the log as an error and on the list of what is stuck. Then: one
// charge, confirmed once.
func TestIncident21_OnlySucceededIsPaid(t *testing.T) {
	t.Parallel()
	for status, payment := range map[payments.IntentStatus]string{
		payments.IntentRequiresPaymentMethod: "in_doubt", // no error with it: not executed so far
		payments.IntentRequiresConfirmation:  "in_doubt",
		payments.IntentRequiresAction:        "requires_action",
		payments.IntentProcessing:            "processing",
		"requires_capture":                   "in_doubt", // money is only ever captured at once: not ours to know
		"requires_divination":                "in_doubt",
		"":                                   "succeeded",
	} {
		t.Run("it says "+string(status), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.config.Poll = time.Hour // nothing is read again but by us
			log := &told{}
			provider := b.says(status)
			p := payments.New(b.db.Pool, provider, noWaker{}, b.config, slog.New(slog.NewJSONHandler(log, nil)))
			id := b.book("pm_card_visa")
			b.work(p, id, domain.EffectCharge)
			require.Len(t, b.charges(id), 1, "the truth")
			if status != "" {
				for range 3 {
					b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE booking_id = $1 AND status = 'in_doubt'`, id)
					b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE watch_at IS NOT NULL`)
					_, err := b.reconciler(p).Once(b.ctx)
					require.NoError(t, err)
				}
				booking, got, taken := b.statuses(id)
				require.Equal(t, []any{"held", payment, true}, []any{booking, got, taken}, b.tale(id))
				require.NotContains(t, b.events(id), "confirmed")
				unheard := status == "requires_capture" || status == "requires_divination"
				require.Equal(t, unheard, bytes.Contains([]byte(log.String()), []byte(`"level":"ERROR"`)), log.String())
				if payment == "in_doubt" || payment == "processing" {
					b.requireStuck(id)
				}
				provider.set("")
				b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE booking_id = $1 AND status = 'in_doubt'`, id)
				b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE watch_at IS NOT NULL`)
				_, err := b.reconciler(p).Once(b.ctx)
				require.NoError(t, err)
			}
			b.agree(id)
			booking, _, _ := b.statuses(id)
			require.Equal(t, "confirmed", booking, b.tale(id))
			require.Equal(t, 1, b.sent("payment_intents.confirm"))
		})
	}
}

// requireStuck asserts that the list of what needs attention has an effect of the booking.
func (b *bed) requireStuck(id domain.BookingID) {
	b.Helper()
	stuck, err := outbox.List(b.ctx, b.db.Pool, outbox.Filter{Stuck: true, Kind: domain.EffectCharge})
	require.NoError(b, err)
	require.Len(b, stuck.Rows, 1, b.tale(id))
	require.Equal(b, id, stuck.Rows[0].BookingID)
	require.NotContains(b, stuck.Rows[0].LastError, "divination", "what a provider says may be anything")
}

// Incident 21: the refusal of a second confirm means that the first one paid. The customer has paid before our confirm
// arrives, which is refused with unexpected_state. Expected: confirmed by that answer alone, without a read.
func TestIncident21_AlreadyDoneIsDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_threeDSecure2Required")
	var class payments.Class
	g := b.onConfirm(func() {
		b.act("customer_confirm", id, func(a *stripesim.Action) { a.PaymentMethod = "pm_card_visa" })
	}, nil, false)
	g.afterSend = func(_ payments.Call, out payments.Outcome) payments.Outcome {
		class = out.Class
		return out
	}
	b.work(b.engineOn(g), id, domain.EffectCharge)
	require.Equal(t, payments.KnownState, class)
	b.stands(id, "confirmed", "succeeded", "held", "confirmed")
	require.Zero(t, b.sent("payment_intents.retrieve"))
	b.agree(id)
}

// Incident 21: money that comes for a 3-D Secure that was abandoned, after its intent was proved canceled. The provider
// says so all the same. Expected: still expired, never confirmed, and the money is to go back once.
func TestIncident21_ALateCompletionGoesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_threeDSecure2Required")
	b.work(b.engine(), id, domain.EffectCharge)
	b.end(id)
	b.stands(id, "expired", "canceled", "held", "action_required", "expired")
	late := b.engineOn(b.says(payments.IntentSucceeded))
	for range 2 {
		b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE booking_id = $1`, id)
		_, err := late.Watch(b.ctx)
		require.NoError(t, err)
	}
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"expired", "succeeded", false}, []any{booking, payment, taken}, b.tale(id))
	require.NotContains(t, b.events(id), "confirmed")
	var refunds int
	b.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind = 'refund'`, &refunds, id)
	require.Equal(t, 1, refunds)
}
