package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

// carryOut decides and does an act in tx, and leaves its one row in the audit. It writes nothing if it refuses. Locks are taken in the
// order of the whole system: booking, payment, effect.
func (d *Desk) carryOut(ctx context.Context, tx pgx.Tx, r ready) (Result, error) {
	if r.Act == Refund {
		return d.refund(ctx, tx, r)
	}
	if money(r.effect.Kind) {
		if err := lockBooking(ctx, tx, r.effect.BookingID); err != nil {
			return Result{}, err
		}
	}
	e, err := outbox.LockSeen(ctx, tx, r.On.Effect, outbox.Seen(r.Seen))
	if err != nil {
		return Result{}, err
	}
	if err := allowed(r.Act, e); err != nil {
		return Result{}, err
	}
	r.effect = e
	if asked, is, err := d.askSecond(ctx, tx, r); is || err != nil {
		return asked, err
	}
	switch r.Act {
	case Replay:
		return d.replay(ctx, tx, r)
	case Republish:
		return d.republish(ctx, tx, r)
	case Resolve:
		return d.resolve(ctx, tx, r)
	case Discard:
		return d.discard(ctx, tx, r)
	case Refund: // above
	}
	return Result{}, &domain.ValidationError{Field: "act", Reason: fmt.Sprintf("there is no act %q", r.Act)}
}

func lockBooking(ctx context.Context, tx pgx.Tx, id domain.BookingID) error {
	var booking domain.Booking
	var b pgx.Batch
	bookings.Lock(&b, id, &booking)
	err := postgres.Send(ctx, tx, &b)
	if err == nil && booking.ID != id {
		err = domain.ErrNotFound
	}
	return err
}

func (d *Desk) replay(ctx context.Context, tx pgx.Tx, r ready) (Result, error) {
	done, err := outbox.ReplayIn(ctx, tx, r.On.Effect, outbox.Seen(r.Seen), r.signature)
	if err != nil {
		return Result{}, err
	}
	return Result{
		ActionID: done.ActionID, Act: Replay, EffectID: &done.EffectID, BookingID: done.BookingID, Kind: done.Kind, Said: saidOfReplay(done),
		Before: done.Before, After: done.After,
	}, nil
}

func saidOfReplay(done outbox.ReplayResult) string {
	switch {
	case done.Action == outbox.ReconcileNow:
		return "it stays in doubt, and is the next that the reconciler asks the provider about"
	case done.Paused:
		return fmt.Sprintf("it is pending with a new job; %s is paused, and a worker carries it out after the resume", done.Kind)
	case done.Kind == domain.EffectPublish:
		return "it is pending with a new job, and a worker publishes it now, under its own id, after the earlier events of its booking"
	default:
		return "it is pending with a new job, and a worker carries it out now, under the keys that it has"
	}
}

func (d *Desk) republish(ctx context.Context, tx pgx.Tx, r ready) (Result, error) {
	if r.looks {
		return Result{
			Act: Republish,
			Said: "it goes to the stream once more, under its own id: the stream drops it if it has had it within its window of repeats, and " +
				"consumers drop a repeat by its id",
		}, nil
	}
	if r.ack.Stream == "" {
		return Result{}, errMoved()
	}
	before, after, err := outbox.RepublishIn(ctx, tx, r.On.Effect, outbox.Seen(r.Seen), r.ack, r.signature)
	if err != nil {
		return Result{}, err
	}
	done := r.result(before, after)
	done.Ack = &Ack{Stream: r.ack.Stream, Sequence: r.ack.Sequence, Kept: !r.ack.Duplicate}
	if done.Said = fmt.Sprintf("the stream has had it within its window of repeats, as number %d, and dropped this one", r.ack.Sequence); done.Ack.Kept {
		done.Said = fmt.Sprintf("the stream has kept it, as number %d: it had lost it, or had it longer ago than it remembers repeats; consumers drop a repeat by its id",
			r.ack.Sequence)
	}
	return done, nil
}

func (d *Desk) resolve(ctx context.Context, tx pgx.Tx, r ready) (Result, error) {
	if r.reading == nil {
		return Result{}, errMoved()
	}
	said, err := d.money.ResolveIn(ctx, tx, r.effect, *r.reading)
	if err != nil {
		return Result{}, err
	}
	after, err := outbox.Load(ctx, tx, r.effect.ID)
	if err != nil {
		return Result{}, err
	}
	done := r.result(r.effect, after)
	done.Said = said
	return done, r.record(ctx, tx, string(Resolve), &after.ID, done.Before, done.After)
}

func (d *Desk) discard(ctx context.Context, tx pgx.Tx, r ready) (Result, error) {
	said := "it is closed, and what it asked of a person is off the list"
	switch {
	case r.effect.Kind == domain.EffectPublish:
		said = fmt.Sprintf("it is never told: a skipped event takes its place, number %d of its booking, and the later events go on", r.effect.EventSeq)
	case money(r.effect.Kind) && r.reading == nil:
		return Result{}, errMoved()
	case money(r.effect.Kind):
		var err error
		if said, err = d.money.DiscardIn(ctx, tx, r.effect, *r.reading); err != nil {
			return Result{}, err
		}
	}
	before, after, err := outbox.Discard(ctx, tx, r.effect, r.signature)
	if err != nil {
		return Result{}, err
	}
	done := r.result(before, after)
	done.Said = said
	return done, nil
}

// refund begins what is to go back, unless a second person has to approve the sum that it turns out to be.
func (d *Desk) refund(ctx context.Context, tx pgx.Tx, r ready) (Result, error) {
	if err := lockBooking(ctx, tx, r.On.Booking); err != nil {
		return Result{}, err
	}
	if r.Seen != "" {
		if err := outbox.CheckBooking(ctx, tx, r.On.Booking, outbox.Seen(r.Seen)); err != nil {
			return Result{}, err
		}
	}
	done := Result{ActionID: r.signature.ID, Act: Refund, BookingID: r.On.Booking, Kind: domain.EffectRefund}
	var together domain.Money
	err := postgres.InTx(ctx, tx, func(tx pgx.Tx) error { // a savepoint: what is only asked for does not begin
		made, err := payments.BeginRefund(ctx, tx, r.On.Booking, payments.RefundRequest{
			Amount: r.Amount, Reason: r.signature.Reason, Category: r.Category, By: r.signature.Actor,
		})
		if err != nil {
			return err
		}
		done.Refund = &made
		if made.Refund == nil {
			return &outbox.RefusedError{Code: outbox.RefusedRefund, Reason: whyNoRefund(made)}
		}
		if together, err = refundedByPeople(ctx, tx, r.On.Booking, made.Refund.Amount.Currency); err != nil {
			return err
		}
		if r.second != approves && d.tooMuch(together) {
			return errTooMuch
		}
		e, err := outbox.Load(ctx, tx, made.Effect)
		if err != nil {
			return err
		}
		done.EffectID, done.After = &made.Effect, outbox.SnapshotOf(e)
		done.Said = payments.ForPeople(made.Refund.Amount) + " goes back: a worker asks the provider for it now"
		return r.record(ctx, tx, string(Refund), &made.Effect, made.Before, made.After)
	})
	if errors.Is(err, errTooMuch) {
		return d.ask(ctx, tx, r, done.Refund.Refund.Amount, together)
	}
	return done, err
}

// refundedByPeople is what people have given back of a booking, with what has just begun: a sum that needs a second person needs one
// in parts, too.
func refundedByPeople(ctx context.Context, tx pgx.Tx, id domain.BookingID, currency string) (domain.Money, error) {
	m := domain.Money{Currency: currency}
	err := tx.QueryRow(ctx, `
		SELECT sum(r.amount) FROM refunds r JOIN payments p ON p.id = r.payment_id
		 WHERE p.booking_id = $1 AND r.reason = 'requested' AND r.status <> 'failed'`, id).Scan(&m.Amount)
	if err != nil {
		return m, fmt.Errorf("sum up what people have given back: %w", err)
	}
	return m, nil
}

func whyNoRefund(made payments.RefundDecision) string {
	left := payments.ForPeople(domain.Money{Amount: made.Balance.Refundable, Currency: made.Currency})
	switch made.Refusal {
	case payments.RefundNotPaid:
		return "nothing was taken for this booking: there is nothing to give back"
	case payments.RefundDisputed:
		return "the cardholder's bank disputes this payment: the provider refuses every refund until that is decided"
	default:
		return "only " + left + " is left to give back"
	}
}

// errMoved says that an effect came back to the state that was seen between two looks at it.
func errMoved() error {
	return &outbox.RefusedError{Code: outbox.RefusedChanged, Reason: "it moved while it was looked at; look again"}
}

func (r ready) result(before, after outbox.Effect) Result {
	return Result{
		ActionID: r.signature.ID, Act: r.Act, EffectID: &after.ID, BookingID: after.BookingID, Kind: after.Kind,
		Before: outbox.SnapshotOf(before), After: outbox.SnapshotOf(after),
	}
}

func (r ready) record(ctx context.Context, tx pgx.Tx, action string, effect *domain.EffectID, before, after any) error {
	booking := r.booking()
	return outbox.RecordAct(ctx, tx, outbox.Act{
		ID: r.signature.ID, Actor: r.signature.Actor, Action: action, Effect: effect, Booking: &booking, Reason: r.signature.Reason,
		Before: before, After: after,
	})
}
