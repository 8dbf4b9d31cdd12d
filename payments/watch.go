package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
)

// Watch reads one intent that is due although nothing is in doubt, and tells whether there was one: a customer may
// authenticate at any time, and a success may still appear after a booking's end. Without it both would have to wait
// for somebody to tell us.
func (p *Payments) Watch(ctx context.Context) (bool, error) {
	id, err := p.claimWatch(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d, err := p.peek(ctx, id)
	if err != nil {
		return true, err
	}
	if d.payment.ProviderIntentID != "" {
		_, err = p.look(ctx, id, nil)
	}
	if err == nil && d.payment.Status.Closed() {
		err = p.cancelOrphans(ctx, id, d)
	}
	if errors.Is(err, ErrUnread) {
		return true, nil // it is due again soon
	}
	return true, err
}

// cancelOrphans cancels the intents of a closed payment that are not its own: made by a create whose answer was lost, or
// that the provider rolled forward after its own error. They are unconfirmed and nobody has their client secret, so they
// take no money; they are only tidied away.
func (p *Payments) cancelOrphans(ctx context.Context, id domain.BookingID, d dossier) error {
	found, err := p.findIntents(ctx, d)
	if err != nil {
		return err
	}
	for _, orphan := range found {
		if orphan.ID == d.payment.ProviderIntentID || orphan.Status == IntentCanceled {
			continue
		}
		if err := p.cancelOrphan(ctx, id, orphan); err != nil {
			return err
		}
	}
	return nil
}

// cancelOrphan takes a new ordinal each time: it follows a listing that still calls for it, and moves no money.
func (p *Payments) cancelOrphan(ctx context.Context, id domain.BookingID, orphan Intent) error {
	made, err := p.turn(ctx, id, domain.EffectID{}, func(b *pgx.Batch, d dossier) (decision, error) {
		if !d.payment.Status.Closed() || d.payment.ProviderIntentID == orphan.ID {
			return decision{}, nil
		}
		ordinal := 1
		if last := d.last(domain.OpCancel); last != nil {
			ordinal = last.Ordinal + 1
		}
		d.payment.ProviderIntentID = orphan.ID // of the send only: it is never committed as the booking's intent
		return decision{send: p.record(b, d, domain.OpCancel, ordinal)}, nil
	})
	if err != nil || made.send == nil {
		return err
	}
	out := p.transmit(ctx, *made.send)
	_, err = p.turn(ctx, id, domain.EffectID{}, func(b *pgx.Batch, d dossier) (decision, error) {
		save(b, d, *made.send, out)
		return decision{}, nil
	})
	return err
}

// claimWatch takes the payment that has waited longest and sets when it is read next: at the poll interval while the
// customer may act, else at growing intervals until the watch is over. A settle that changes something sets it anew.
func (p *Payments) claimWatch(ctx context.Context) (domain.BookingID, error) {
	var id uuid.UUID
	err := p.pool.QueryRow(ctx, `
		UPDATE payments AS p
		   SET watches = p.watches + 1,
		       watch_at = CASE
		           WHEN p.status NOT IN ('succeeded', 'canceled', 'refused') THEN clock_timestamp() + $1::interval
		           WHEN p.updated_at + $2::interval > clock_timestamp()
		               THEN clock_timestamp() + $3::interval * power(4, least(p.watches, 5)) END
		 WHERE p.id = (SELECT due.id FROM payments AS due
		                WHERE due.watch_at <= clock_timestamp()
		                ORDER BY due.watch_at
		                LIMIT 1
		                  FOR UPDATE SKIP LOCKED)
		RETURNING p.booking_id`, p.config.Poll, p.config.Watch, firstWatch).Scan(&id)
	if err != nil {
		return domain.BookingID{}, fmt.Errorf("claim a payment to watch: %w", err)
	}
	return domain.BookingID{UUID: id}, nil
}

// firstWatch is how long after a booking's end its intent is read for the first time; then four times as long each time.
const firstWatch = time.Minute

// watchAfter says when a payment is first watched after a move; nil: not at all.
func (p *Payments) watchAfter(d dossier, m domain.Move) *time.Duration {
	var after time.Duration
	create := d.last(domain.OpCreate)
	switch {
	case create == nil:
		return nil // the provider has never heard of it
	case m.Payment == domain.PaymentRequiresAction, m.Payment == domain.PaymentDeclined, m.Payment == domain.PaymentProcessing:
		after = p.config.Poll // the customer may act, or the provider is still deciding
	case d.payment.Status == domain.PaymentSucceeded && create.Ordinal == 1:
		return nil // a paid booking is cancelled: there is nothing more to see
	case m.Booking.Ended():
		after = firstWatch // a success may still appear, or an intent that a lost create has made
	case m.Payment == domain.PaymentSucceeded && create.Ordinal > 1:
		after = firstWatch // an earlier create may still have made an intent
	default:
		return nil
	}
	return &after
}
