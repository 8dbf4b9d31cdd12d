package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// ErrBroker says that the broker did not take an event, or did not say so. Nothing was recorded; the act may be done again.
var ErrBroker = errors.New("the broker did not acknowledge the event")

// ready is an order with all that is to be known of the world outside, so that one transaction can decide and do it.
type ready struct {
	Order
	signature outbox.Signature
	effect    outbox.Effect // as it was read; zero for a booking
	refused   *outbox.RefusedError
}

// Do does an act. What it must know of the provider is read first, with no transaction open; then it is decided by compare
// and set, and the act, its audit row and, of an act above the second person's amount, its request are committed together.
//
// A *outbox.RefusedError says why it was not done, and by whom something else was done meanwhile; nothing was changed and
// nothing recorded. domain.ErrNotFound: there is no such effect or booking. payments.ErrUnread (wrapped): the provider could
// not be read, and the act needs it; ErrBroker likewise. domain.ErrBusy (wrapped): the database could not take it, and nothing was
// done. If the answer to COMMIT is lost, Do looks whether the act is on record; only if that cannot be told, either, it returns the
// *postgres.CommitError: look at the audit.
func (d *Desk) Do(ctx context.Context, o Order) (Result, error) {
	r, err := d.prepare(ctx, o)
	if err != nil {
		return Result{}, busy(err)
	}
	if r.refused != nil {
		return Result{}, r.refused
	}
	var done Result
	err = postgres.InTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
		done, err = d.carryOut(ctx, tx, r)
		return err
	})
	var unknown *postgres.CommitError
	if errors.As(err, &unknown) {
		err = d.lookBack(ctx, r, unknown)
	}
	if err != nil {
		return Result{}, busy(err)
	}
	return done, nil
}

// DoOnce is Do, decided once for a client's key: the answer is what show made of the result or the refusal, stored in the same
// transaction and replayed byte for byte. Its errors are those of bookings.Service.Once and of Do; those leave the key free, and so
// does a refusal that says nothing of the effect (who, why, and what this process can reach).
func (d *Desk) DoOnce(
	ctx context.Context, k bookings.Keyed, o Order, show func(Result, *outbox.RefusedError) (status int, body []byte, err error),
) (bookings.Response, error) {
	// What was decided under the key before is replayed without asking provider or broker anew.
	answer, err := d.keys.Once(ctx, k, func(context.Context, pgx.Tx) (bookings.Decided, error) { return bookings.Decided{}, errNew })
	if !errors.Is(err, errNew) {
		return answer, err
	}
	r, err := d.prepare(ctx, o)
	if err != nil {
		return bookings.Response{}, busy(err)
	}
	return d.keys.Once(ctx, k, func(ctx context.Context, tx pgx.Tx) (bookings.Decided, error) {
		decided := bookings.Decided{Booking: r.booking()}
		var done Result
		refused := r.refused
		if refused == nil {
			err := postgres.InTx(ctx, tx, func(tx pgx.Tx) (err error) { // a savepoint: of what is refused nothing stays but the answer
				done, err = d.carryOut(ctx, tx, r)
				return err
			})
			if err != nil && !errors.As(err, &refused) {
				return decided, err
			}
		}
		var err error
		decided.Status, decided.Body, err = show(done, refused)
		return decided, err
	})
}

// errNew says that nothing was decided under a key yet.
var errNew = errors.New("a new key")

func (r ready) booking() domain.BookingID {
	if r.On.Effect != (domain.EffectID{}) {
		return r.effect.BookingID
	}
	return r.On.Booking
}

// prepare reads what an order is about and, where it needs it, what lies outside.
func (d *Desk) prepare(ctx context.Context, o Order) (ready, error) {
	r := ready{Order: o, signature: outbox.Signature{ID: uuid.Must(uuid.NewV7()), Actor: o.By, Reason: o.Reason}}
	if err := outbox.Demand(o.By, o.Reason); err != nil {
		return r, err
	}
	return r, d.look(ctx, &r)
}

// look reads how the target stands. What is refused as it stands goes no further.
func (d *Desk) look(ctx context.Context, r *ready) error {
	if r.Act == Refund {
		return errNotBuilt
	}
	if r.On.Effect == (domain.EffectID{}) {
		return &domain.ValidationError{Field: "effect_id", Reason: fmt.Sprintf("a %s is done to an effect: name one", r.Act)}
	}
	e, as, err := outbox.See(ctx, d.pool, r.On.Effect)
	if err != nil {
		return err
	}
	r.effect = e
	if r.Seen == "" {
		r.Seen = string(as)
	}
	if r.Seen != string(as) {
		return nil // the transaction says what has moved
	}
	if err := allowed(r.Act, e); err != nil && !errors.As(err, &r.refused) {
		return err
	}
	return nil
}

// carryOut decides and does an act in tx, and leaves its one row in the audit. It writes nothing if it refuses.
func (d *Desk) carryOut(ctx context.Context, tx pgx.Tx, r ready) (Result, error) {
	switch r.Act {
	case Replay:
		return d.replay(ctx, tx, r)
	case Republish, Resolve, Refund, Discard:
		return Result{}, errNotBuilt
	default:
		return Result{}, &domain.ValidationError{Field: "act", Reason: fmt.Sprintf("there is no act %q", r.Act)}
	}
}

var errNotBuilt = errors.New("not built")

func (d *Desk) replay(ctx context.Context, tx pgx.Tx, r ready) (Result, error) {
	done, err := outbox.ReplayIn(ctx, tx, r.On.Effect, outbox.Seen(r.Seen), r.signature)
	if err != nil {
		return Result{}, err
	}
	said := "it is pending with a new job, and a worker carries it out now, under the keys that it has"
	switch {
	case done.Action == outbox.ReconcileNow:
		said = "it stays in doubt, and is the next that the reconciler asks the provider about"
	case done.Paused:
		said = fmt.Sprintf("it is pending with a new job; %s is paused, and a worker carries it out after the resume", done.Kind)
	case done.Kind == domain.EffectPublish:
		said = "it is pending with a new job, and a worker publishes it now, under its own id, after the earlier events of its booking"
	}
	return Result{
		ActionID: done.ActionID, Act: Replay, EffectID: &done.EffectID, BookingID: done.BookingID, Kind: done.Kind, Said: said,
		Before: done.Before, After: done.After,
	}, nil
}

// lookBack tells what became of a transaction whose COMMIT was not answered: nil, it is done. It takes the locks that the act took,
// since that transaction may be committing still.
func (d *Desk) lookBack(ctx context.Context, r ready, unknown *postgres.CommitError) error {
	var done bool
	err := postgres.InTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
		var b pgx.Batch
		var booking domain.Booking
		var effect outbox.Effect
		bookings.Lock(&b, r.booking(), &booking)
		outbox.Lock(&b, r.On.Effect, &effect)
		if err := postgres.Send(ctx, tx, &b); err != nil {
			return err
		}
		done, err = outbox.Recorded(ctx, tx, r.signature.ID)
		return err
	})
	switch {
	case err != nil:
		return unknown
	case !done:
		return fmt.Errorf("%w: the connection broke before anything was committed", domain.ErrBusy)
	default:
		return nil
	}
}
