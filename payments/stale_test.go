package payments_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// stalled is the real gateway whose answers are held back, or replaced, while something else happens.
type stalled struct {
	payments.Gateway
	afterRead func()                                                       // once, before the answer to a read is delivered
	alterRead func(*payments.Intent)                                       // every read
	lose      func(c payments.Call) bool                                   // sends that never arrive
	afterSend func(c payments.Call, out payments.Outcome) payments.Outcome // every send that arrived
}

func (s *stalled) Intent(ctx context.Context, id string) (payments.Intent, error) {
	intent, err := s.Gateway.Intent(ctx, id)
	if happen := s.afterRead; happen != nil {
		s.afterRead = nil
		happen()
	}
	if s.alterRead != nil {
		s.alterRead(&intent)
	}
	return intent, err
}

func (s *stalled) Send(ctx context.Context, c payments.Call) payments.Outcome {
	if s.lose != nil && s.lose(c) {
		return payments.Outcome{}
	}
	out := s.Gateway.Send(ctx, c)
	if s.afterSend != nil {
		out = s.afterSend(c, out)
	}
	return out
}

func (b *bed) engineOn(g payments.Gateway) *payments.Payments {
	return payments.New(b.db.Pool, g, noWaker{}, b.config, slog.New(slog.DiscardHandler))
}

func (b *bed) intent(id domain.BookingID) string {
	b.Helper()
	var intent string
	b.scan(`SELECT coalesce(provider_intent_id, '') FROM payments WHERE booking_id = $1`, &intent, id)
	return intent
}

func (b *bed) events(id domain.BookingID) []string {
	b.Helper()
	var events []string
	b.scan(`SELECT array_agg(event_type ORDER BY event_seq) FROM outbox WHERE booking_id = $1 AND kind = 'publish'`, &events, id)
	return events
}

// An older answer never settles over a newer one (G3, G4): a read shows requires_action and is delivered only after the
// customer has failed to authenticate and somebody else has settled that. Expected: declined, told once, and not
// requires_action again.
func TestSettle_AnOldObservationIsDropped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_authenticationRequired")
	gateway := &stalled{Gateway: b.gateway}
	slow, fast := b.engineOn(gateway), b.engine()
	b.work(fast, id, domain.EffectCharge)
	watch := func(p *payments.Payments) {
		b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE booking_id = $1`, id)
		worked, err := p.Watch(b.ctx)
		require.NoError(t, err)
		require.True(t, worked)
	}
	gateway.afterRead = func() {
		_, err := b.sim.Act(stripesim.Action{Action: "fail_authentication", PaymentIntent: b.intent(id)})
		require.NoError(t, err)
		watch(fast)
	}
	watch(slow)
	_, payment, _ := b.statuses(id)
	require.Equal(t, "declined", payment, b.tale(id))
	require.Equal(t, []string{"held", "action_required", "payment_declined"}, b.events(id))
}

// A replayed answer is a snapshot (G3, G6): the confirm asked for authentication, that answer was lost, the customer
// passed meanwhile, and the same key is answered requires_action for the rest of its life. Expected: confirmed, and
// nobody is told to act.
func TestCharge_AReplayedAnswerIsASnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_authenticationRequired")
	gateway := &stalled{Gateway: b.gateway}
	confirms := 0
	gateway.afterSend = func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation != domain.OpConfirm {
			return out
		}
		if confirms++; confirms > 1 {
			require.True(t, out.Replayed)
			require.Equal(t, payments.IntentRequiresAction, out.Intent.Status)
			return out
		}
		_, err := b.sim.Act(stripesim.Action{Action: "authenticate", PaymentIntent: c.IntentID})
		require.NoError(t, err)
		return payments.Outcome{} // lost
	}
	b.work(b.engineOn(gateway), id, domain.EffectCharge)
	b.agree(id)
	require.Equal(t, []string{"held", "confirmed"}, b.events(id))
	require.Equal(t, 2, confirms)
}

// A refusal of a re-send says nothing about the send before it (G4): the first confirm charged and its answer was lost,
// the second is refused outright. Expected: not ended, the call's outcome still unknown, and confirmed once read.
func TestCharge_ARefusedResendProvesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	gateway := &stalled{Gateway: b.gateway}
	confirms := 0
	gateway.afterSend = func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation != domain.OpConfirm {
			return out
		}
		if confirms++; confirms == 1 {
			return payments.Outcome{}
		}
		return payments.Outcome{Class: payments.Rejected, HTTPStatus: 400}
	}
	b.work(b.engineOn(gateway), id, domain.EffectCharge)
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"held", "in_doubt", true}, []any{booking, payment, taken})
	var outcome string
	b.scan(`SELECT outcome FROM provider_calls WHERE operation = 'confirm'`, &outcome)
	require.Equal(t, "unknown", outcome)
	b.reconcile(b.engine(), id)
	b.agree(id)
	booking, _, _ = b.statuses(id)
	require.Equal(t, "confirmed", booking)
}

// The create's answer comes after the hold was swept (G3): the intent's id is not committed, so that it can never be
// confirmed; it is canceled when it is found. Expected: expired, no charge, no confirm.
func TestCharge_ALateIntentIsNeverAdopted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	gateway := &stalled{Gateway: b.gateway}
	gateway.afterSend = func(_ payments.Call, out payments.Outcome) payments.Outcome {
		b.expire(id)
		worked, err := b.engine().SweepHold(b.ctx)
		require.NoError(t, err)
		require.True(t, worked)
		return out
	}
	b.work(b.engineOn(gateway), id, domain.EffectCharge)
	require.Empty(t, b.intent(id))
	require.Equal(t, 0, b.sent("payment_intents.confirm"))
	b.watch()
	require.Equal(t, 1, b.sent("payment_intents.cancel"))
	b.agree(id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "expired", booking)
}

// A hold that is over but not swept yet: nothing may be sent any more (G4). Expected: expired, and the provider saw
// nothing at all.
func TestCharge_NothingIsSentAfterTheHold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.expire(id)
	b.work(b.engine(), id, domain.EffectCharge)
	b.agree(id)
	require.Empty(t, b.sim.Journal(0))
}

// One clock judges the end of a hold, the database's (G4): a host whose own clock is hours ahead or behind neither sends after
// the end nor ends before it.
func TestCharge_TheDatabasesClockEndsAHold(t *testing.T) {
	t.Parallel()
	for apart, want := range map[string][]any{"-2 hours": {"confirmed", "succeeded", true}, "2 hours": {"expired", "canceled", false}} {
		t.Run(apart, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.book("pm_card_visa")
			b.exec(`CREATE SCHEMA apart`)
			b.exec(`CREATE FUNCTION apart.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT pg_catalog.clock_timestamp() + interval ''` + apart + `'''`)
			b.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = apart, pg_catalog, public', current_database()); END $$`)
			b.db.Pool.Reset()
			if apart == "-2 hours" { // over by the host's clock, and not by the database's
				b.exec(`UPDATE bookings SET hold_expires_at = clock_timestamp() + interval '1 hour'`)
			}
			b.work(b.engine(), id, domain.EffectCharge)
			booking, payment, taken := b.statuses(id)
			require.Equal(t, want, []any{booking, payment, taken}, "judged by the host's clock\n%s", b.tale(id))
			b.agree(id)
		})
	}
}

// A late or duplicated job of a settled effect asks nobody anything (G7, incident 14).
func TestIncident14_ALateJobDoesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, method := range []string{"pm_card_visa", "pm_card_chargeDeclined", "pm_card_authenticationRequired"} {
		id := b.book(method)
		job := outbox.Job{Effect: b.effect(id, domain.EffectCharge)}
		b.work(b.engine(), id, domain.EffectCharge)
		before, story := len(b.sim.Journal(0)), b.tale(id).String()
		for range 3 {
			verdict, err := b.engine().Charge(b.ctx, job)
			require.NoError(t, err)
			require.Zero(t, verdict.After)
		}
		require.Len(t, b.sim.Journal(0), before, method)
		require.JSONEq(t, story, b.tale(id).String(), method)
	}
}

// While the provider is still deciding, the fence waits and sends no cancel (G4, G5).
// Expected: ending with the slot taken for as long as it lasts, then confirmed.
func TestFence_ProcessingIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_sim_processing")
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	_, payment, _ := b.statuses(id)
	require.Equal(t, "processing", payment, b.tale(id))
	b.expire(id)
	worked, err := p.SweepHold(b.ctx)
	require.NoError(t, err)
	require.True(t, worked)
	for range 4 {
		verdict, err := p.Fence(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectCancel)})
		require.NoError(t, err)
		require.Positive(t, verdict.After)
	}
	booking, _, taken := b.statuses(id)
	require.Equal(t, []any{"ending", true}, []any{booking, taken})
	require.Equal(t, 0, b.sent("payment_intents.cancel"))
	_, err = b.sim.Act(stripesim.Action{Action: "settle_processing", PaymentIntent: b.intent(id)})
	require.NoError(t, err)
	b.work(p, id, domain.EffectCancel)
	b.agree(id)
	booking, _, _ = b.statuses(id)
	require.Equal(t, "confirmed", booking)
}

// A late stored error never overwrites what was settled meanwhile (G3, G5): the first confirm's answer, a 500, comes
// only after another worker has seen that the customer must authenticate. Expected: still requires_action, and watched.
func TestCharge_ALateErrorOverwritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id := b.book("pm_card_authenticationRequired")
	gateway := &stalled{Gateway: b.gateway}
	gateway.afterSend = func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation != domain.OpConfirm {
			return out
		}
		b.work(b.engine(), id, domain.EffectCharge)
		return payments.Outcome{Class: payments.Unknown, Stored: true, HTTPStatus: 500}
	}
	b.work(b.engineOn(gateway), id, domain.EffectCharge)
	_, payment, _ := b.statuses(id)
	require.Equal(t, "requires_action", payment, b.tale(id))
	var watched bool
	b.scan(`SELECT watch_at IS NOT NULL FROM payments WHERE booking_id = $1`, &watched, id)
	require.True(t, watched)
}

// A payment that the provider is still deciding after the customer has authenticated is followed to its end (G5).
func TestWatch_ProcessingIsFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_authenticationRequired")
	b.work(b.engine(), id, domain.EffectCharge)
	gateway := &stalled{Gateway: b.gateway, alterRead: func(i *payments.Intent) { i.Status = payments.IntentProcessing }}
	b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE booking_id = $1`, id)
	worked, err := b.engineOn(gateway).Watch(b.ctx)
	require.NoError(t, err)
	require.True(t, worked)
	_, payment, _ := b.statuses(id)
	require.Equal(t, "processing", payment, b.tale(id))
	_, err = b.sim.Act(stripesim.Action{Action: "authenticate", PaymentIntent: b.intent(id)})
	require.NoError(t, err)
	b.watch()
	b.agree(id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking)
}

// A provider that stores an error under every create is asked at a growing interval, and not as fast as it answers (G5).
func TestResolve_StoredErrorsAreSpaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Backoff = time.Second
	id := b.book("pm_card_visa")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "error_500_before", Times: -1})
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	for range 3 {
		_, err := b.reconciler(p).Once(b.ctx)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, b.sent("payment_intents.create"), 3, b.tale(id))
	b.sim.ClearFaults()
	b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE booking_id = $1`, id)
	b.reconcile(p, id)
	b.agree(id)
}

// The first create is lost, the second refused outright: the listing shows that the first made nothing, and the
// refusal stands (G4, G5). Expected: failed and refused at once, long before the hold ends, with the slot free.
func TestResolve_ARefusalAfterALostCreate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_nobodyKnows")
	creates := 0
	gateway := &stalled{Gateway: b.gateway, lose: func(payments.Call) bool { creates++; return creates == 1 }}
	p := b.engineOn(gateway)
	b.work(p, id, domain.EffectCharge)
	b.reconcile(p, id)
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"failed", "refused", false}, []any{booking, payment, taken}, b.tale(id))
	b.agree(id)
}
