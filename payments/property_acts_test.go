package payments_test

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

const operator = outbox.Actor("ops@example.org")

// act is one thing that somebody does, to one booking. It happens now, and may be anything that can happen at any time: an
// act that makes no sense at the moment does nothing.
type act struct {
	who string
	do  func(w *world, id domain.BookingID)
}

// acts is everything that can happen. What is here twice happens twice as often.
func acts() []act {
	return []act{
		// Workers: a job, its twin, a rescued one.
		{"a worker charges", (*world).charge},
		{"a worker charges", (*world).charge},
		{"another worker charges", (*world).charge},
		{"a worker fences", (*world).fence},

		// Reconcilers.
		{"holds are swept", func(w *world, _ domain.BookingID) { w.mortally(sweep) }},
		{"a doubt is resolved", func(w *world, _ domain.BookingID) { w.due(); w.mortally(resolve) }},
		{"an intent is watched", func(w *world, _ domain.BookingID) { w.due(); w.mortally(watch) }},

		// Time.
		{"the hold ends", func(w *world, id domain.BookingID) { w.expire(id) }},
		{"a day passes", func(w *world, _ domain.BookingID) { w.day() }},

		// The provider.
		{"the provider fails", (*world).fail},
		{"the provider fails", (*world).fail},
		{"reads fail", func(w *world, _ domain.BookingID) { w.failReads() }},
		{"the provider heals", func(w *world, _ domain.BookingID) { w.sim.ClearFaults() }},
		{"the bank takes it", does(stripesim.Action{Action: "settle_processing"})},
		{"the bank refuses", does(stripesim.Action{Action: "settle_processing", Outcome: "failed"})},

		// The customer, who holds the intent's client secret.
		{"the customer authenticates", does(stripesim.Action{Action: "authenticate"})},
		{"the customer fails to", does(stripesim.Action{Action: "fail_authentication"})},
		{"the customer pays with the browser", does(stripesim.Action{Action: "customer_confirm", PaymentMethod: "pm_card_mastercard"})},
		{"the customer tries a bad card", does(stripesim.Action{Action: "customer_confirm", PaymentMethod: "pm_card_chargeDeclined"})},

		{"the customer brings another card", func(w *world, id domain.BookingID) {
			_ = w.change(id, domain.NewID[domain.EffectID]().String(), rapid.SampledFrom([]string{
				"pm_card_visa", "pm_card_mastercard", "pm_card_chargeDeclined", "pm_card_authenticationRequired", "pm_card_nobodyKnows",
			}).Draw(w.rapid, "another card"))
		}},

		// Webhooks, true and untrue, and whoever acts on them.
		{"an event is delivered", (*world).hear},
		{"an event is acted on", func(w *world, _ domain.BookingID) {
			w.mortally(func(p *payments.Payments, w *world) error { _, err := p.SettleEvent(w.ctx); return err })
		}},

		// The operator.
		{"the charge is replayed", func(w *world, id domain.BookingID) { w.replay(id, domain.EffectCharge) }},
		{"the fence is replayed", func(w *world, id domain.BookingID) { w.replay(id, domain.EffectCancel) }},
		{"the charge is resolved by hand", func(w *world, id domain.BookingID) { w.byHand(id, domain.EffectCharge, (*payments.Payments).ResolveIn) }},
		{"the fence is resolved by hand", func(w *world, id domain.BookingID) { w.byHand(id, domain.EffectCancel, (*payments.Payments).ResolveIn) }},
		{"the charge is discarded by hand", func(w *world, id domain.BookingID) { w.parkAndDiscard(id, domain.EffectCharge) }},
		{"the fence is discarded by hand", func(w *world, id domain.BookingID) { w.parkAndDiscard(id, domain.EffectCancel) }},
		{"charges are paused", func(w *world, _ domain.BookingID) {
			_, err := outbox.Pause(w.ctx, w.db.Pool, domain.EffectCharge, operator, "property")
			require.NoError(w, err)
		}},
		{"charges are resumed", func(w *world, _ domain.BookingID) {
			_, err := outbox.Resume(w.ctx, w.db.Pool, domain.EffectCharge, operator, "property")
			require.NoError(w, err)
		}},
	}
}

func sweep(p *payments.Payments, w *world) error   { _, err := p.SweepHold(w.ctx); return err }
func resolve(p *payments.Payments, w *world) error { _, err := p.ResolveDoubt(w.ctx); return err }
func watch(p *payments.Payments, w *world) error   { _, err := p.Watch(w.ctx); return err }

// charge runs the booking's charge job once.
func (w *world) charge(id domain.BookingID) { w.job(id, domain.EffectCharge) }

// fence runs its cancel job once, if there is one.
func (w *world) fence(id domain.BookingID) { w.job(id, domain.EffectCancel) }

func (w *world) job(id domain.BookingID, kind domain.EffectKind) {
	effect, ok := w.maybe(id, kind)
	if !ok {
		return
	}
	w.mortally(func(p *payments.Payments, w *world) error {
		handle := p.Charge
		if kind == domain.EffectCancel {
			handle = p.Fence
		}
		_, err := handle(w.ctx, outbox.Job{Effect: effect, Kind: kind})
		return err
	})
}

func (w *world) maybe(id domain.BookingID, kind domain.EffectKind) (domain.EffectID, bool) {
	w.Helper()
	var n int
	w.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind = $2`, &n, id, kind)
	if n == 0 {
		return domain.EffectID{}, false
	}
	return w.effect(id, kind), true
}

// hear delivers an event that claims anything of the booking's intent: it may be weeks old, doubled or untrue.
func (w *world) hear(id domain.BookingID) {
	intent := w.intent(id)
	if intent == "" {
		return
	}
	kind := rapid.SampledFrom([]string{"succeeded", "payment_failed", "requires_action", "processing", "canceled"}).Draw(w.rapid, "event")
	w.deliver(w.claim("evt_"+domain.NewID[domain.EffectID]().String(), "payment_intent."+kind, intent, map[string]string{"booking_id": id.String()}))
}

// due lets every wait be over.
func (w *world) due() {
	w.exec(`UPDATE provider_events SET due_at = clock_timestamp() WHERE status = 'pending'`)
	w.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE status = 'in_doubt'`)
	w.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE watch_at IS NOT NULL`)
}

// day lets so much time pass that the provider forgets every key. Holds are shorter, and over.
func (w *world) day() {
	w.exec(`UPDATE bookings SET hold_expires_at = clock_timestamp() WHERE hold_expires_at > clock_timestamp()`)
	w.exec(`UPDATE provider_calls SET first_sent_at = first_sent_at - interval '25 hours', last_sent_at = last_sent_at - interval '25 hours'`)
	w.sim.Advance(25 * time.Hour)
}

// fail arms a fault for sends of this booking, or for reads.
func (w *world) fail(id domain.BookingID) {
	f := stripesim.Fault{
		Operation: "payment_intents." + rapid.SampledFrom([]string{"create", "update", "confirm", "cancel"}).Draw(w.rapid, "send"),
		KeyMatch:  w.paymentID(id),
		Fault: rapid.SampledFrom([]string{
			"reset_before", "reset_after", "reset_after_reused", "error_500_before", "error_500_after", "partial_500", "partial_500", "error_502", "error_503",
			"error_503_after", "error_504", "error_424", "html_502", "bad_body", "in_use_409", "lock_timeout_429", "rate_limit_429", "unauthorized_401",
			"hang_after", "slow",
		}).Draw(w.rapid, "fault"),
		Times: rapid.IntRange(1, 4).Draw(w.rapid, "times"),
	}
	switch f.Fault {
	case "hang_after", "slow":
		f.DelayMS, f.Times = 2*int(stripeTimeout.Milliseconds()), 1
	case "partial_500": // half a charge, which stays pending until the bank decides
		f.Operation = "payment_intents.confirm"
	}
	w.sim.AddFault(f)
}

// failReads arms a fault for reads, which are asked for no booking's key. It is one that the SDK does not wait and try again
// after.
func (w *world) failReads() {
	w.sim.AddFault(stripesim.Fault{
		Operation: rapid.SampledFrom([]string{"payment_intents.retrieve", "payment_intents.list", "charges.list"}).Draw(w.rapid, "read"),
		Fault:     "unauthorized_401", Times: rapid.IntRange(1, 4).Draw(w.rapid, "times"),
	})
}

// does makes an act of what is done at the provider, past us.
func does(a stripesim.Action) func(*world, domain.BookingID) {
	return func(w *world, id domain.BookingID) { w.happen(id, a) }
}

// happen does it to the booking's intent, if there is one and it allows it.
func (w *world) happen(id domain.BookingID, a stripesim.Action) {
	if a.PaymentIntent = w.intent(id); a.PaymentIntent != "" {
		_, _ = w.sim.Act(a) // at the wrong moment it is refused
	}
}

func (w *world) replay(id domain.BookingID, kind domain.EffectKind) {
	effect, ok := w.maybe(id, kind)
	if !ok {
		return
	}
	_, err := outbox.Replay(w.ctx, w.db.Pool, effect, operator, "property")
	var refused *outbox.RefusedError
	require.True(w, err == nil || errors.As(err, &refused), "%v", err)
}

// byHand does an operator's act to the booking's newest effect of a kind: the provider is read first, and anything may happen before
// what it showed is acted on. It tells whether the act was done.
func (w *world) byHand(id domain.BookingID, kind domain.EffectKind, act func(*payments.Payments, context.Context, pgx.Tx, outbox.Effect, payments.Reading) (string, error)) (done bool) {
	effect, ok := w.maybe(id, kind)
	if !ok {
		return false
	}
	w.mortally(func(p *payments.Payments, w *world) error {
		e, err := outbox.Load(w.ctx, w.db.Pool, effect)
		require.NoError(w, err)
		r, err := p.Read(w.ctx, e)
		if errors.Is(err, payments.ErrUnread) {
			return nil
		}
		require.NoError(w, err)
		w.between("before an act by hand")
		return postgres.InTx(w.ctx, w.db.Pool, func(tx pgx.Tx) error {
			_, err := act(p, w.ctx, tx, e, r)
			var refused *outbox.RefusedError
			if errors.As(err, &refused) {
				return nil // and the transaction goes on
			}
			done = err == nil
			return err
		})
	})
	return done
}

// parkAndDiscard lets an unfinished effect be parked, and a person try to discard it; what they may not, they replay.
func (w *world) parkAndDiscard(id domain.BookingID, kind domain.EffectKind) {
	effect, ok := w.maybe(id, kind)
	if !ok {
		return
	}
	w.exec(`UPDATE outbox SET status = 'parked' WHERE id = $1 AND status IN ('pending', 'in_doubt')`, effect)
	w.byHand(id, kind, func(p *payments.Payments, ctx context.Context, tx pgx.Tx, e outbox.Effect, r payments.Reading) (string, error) {
		said, err := p.DiscardIn(ctx, tx, e, r)
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE outbox SET status = 'discarded', finished_at = clock_timestamp() WHERE id = $1 AND status = 'parked'`, e.ID)
		}
		return said, err
	})
	if e, err := outbox.Load(w.ctx, w.db.Pool, effect); err == nil && e.Status == domain.EffectParked {
		w.replay(id, kind)
	}
}
