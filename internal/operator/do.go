package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

// ErrBroker says that the broker did not take an event, or did not say so. Nothing was recorded; the act may be done again.
var ErrBroker = errors.New("the broker did not acknowledge the event")

// ready is an order with all that is to be known of the world outside, so that one transaction can decide and do it.
type ready struct {
	Order
	signature outbox.Signature
	effect    outbox.Effect // as it was read; zero for a booking
	refused   *outbox.RefusedError
	looks     bool              // it is only a preview: nothing goes out
	reading   *payments.Reading // of the provider, where the act needs one
	ack       outbox.Ack        // of the stream, of Republish
	second    second
}

// second is what the rule of two persons makes of an act.
type second int

const (
	asks     second = iota // above the amount it becomes a request
	approves               // a second person does it
	alone                  // above the amount it is refused: nobody is asked for each of many
)

// Do does an act. What it must know of the provider is read first, with no transaction open; then it is decided by compare
// and set, and the act, its audit row and, of an act above the second person's amount, its request are committed together.
// With a *outbox.RefusedError of a refund comes what was decided of it (Result.Refund).
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
	return d.commit(ctx, r, func(tx pgx.Tx) (Result, error) { return d.carryOut(ctx, tx, r) })
}

// commit runs an act's one transaction. If the answer to COMMIT is lost, it looks whether the act is on record.
func (d *Desk) commit(ctx context.Context, r ready, act func(tx pgx.Tx) (Result, error)) (done Result, err error) {
	err = postgres.InTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
		done, err = act(tx)
		return err
	})
	var unknown *postgres.CommitError
	if errors.As(err, &unknown) {
		err = d.lookBack(ctx, r, unknown)
	}
	if err != nil {
		return Result{Refund: done.Refund}, busy(err) // why a refund was refused
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
		if r.Act == Refund {
			decided.Location = k.Route // where the booking's refunds are listed
		}
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

// look reads how the target stands, and what lies outside that the act needs. What is refused as it stands goes no further.
func (d *Desk) look(ctx context.Context, r *ready) error {
	if !slices.Contains(Acts(), r.Act) {
		return &domain.ValidationError{Field: "act", Reason: fmt.Sprintf("there is no act %q", r.Act)}
	}
	if r.Act == Refund {
		return d.lookAtBooking(ctx, r)
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
	if err := allowed(r.Act, e); err != nil {
		if !errors.As(err, &r.refused) {
			return err
		}
		return nil
	}
	return d.lookOutside(ctx, r)
}

func (d *Desk) lookAtBooking(ctx context.Context, r *ready) error {
	if r.On.Booking == (domain.BookingID{}) {
		return &domain.ValidationError{Field: "booking_id", Reason: "money is given back of a booking: name one"}
	}
	if r.Amount < 0 {
		return &domain.ValidationError{Field: "amount", Reason: "want minor units, or 0 for all that is left"}
	}
	if r.Seen != "" || !r.looks { // who has looked at nothing is answered by what is left
		return nil
	}
	as, err := outbox.SeeBooking(ctx, d.pool, r.On.Booking)
	r.Seen = string(as)
	return err
}

// lookOutside asks provider or broker what the act has to know of them. No transaction is open.
func (d *Desk) lookOutside(ctx context.Context, r *ready) error {
	switch {
	case r.Act == Republish && r.looks:
		return nil
	case r.Act == Republish:
		if d.publisher == nil {
			return &outbox.RefusedError{
				Code: outbox.RefusedUnavailable, Reason: "this process has no broker to publish to: do it where NATS_URL is set",
			}
		}
		ack, err := outbox.PublishAgain(ctx, d.publisher, r.effect)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBroker, err)
		}
		r.ack = ack
	case (r.Act == Resolve || r.Act == Discard) && money(r.effect.Kind):
		if d.money == nil {
			return &outbox.RefusedError{
				Code: outbox.RefusedUnavailable, Reason: "this process has no key for the provider, which has to be read first: do it where STRIPE_API_KEY is set",
			}
		}
		reading, err := d.money.Read(ctx, r.effect)
		if err != nil {
			return err
		}
		r.reading = &reading
	}
	return nil
}

// money tells whether effects of a kind are about money.
func money(kind domain.EffectKind) bool {
	return kind == domain.EffectCharge || kind == domain.EffectCancel || kind == domain.EffectRefund
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
