package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
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
	if d.payment.ProviderIntentID == "" {
		err = p.cancelOrphan(ctx, id)
	} else {
		_, err = p.look(ctx, id, nil)
	}
	if err != nil {
		p.logger.WarnContext(ctx, lookTimeout, "booking_id", id, "error", err) // it is due again soon
	}
	return true, nil
}

// cancelOrphan cancels an intent that was made for a booking which ended before the intent's id could be committed. It
// is unconfirmed and nobody has its client secret, so it takes no money; it is only tidied away.
func (p *Payments) cancelOrphan(ctx context.Context, id domain.BookingID) error {
	d, err := p.peek(ctx, id)
	if err != nil {
		return err
	}
	orphan, err := p.findIntent(ctx, d)
	if err != nil || orphan == nil || orphan.Status == IntentCanceled {
		return err
	}
	var s send
	err = postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		d, err := lock(ctx, tx, id)
		if err != nil || !d.payment.Status.Closed() || d.payment.ProviderIntentID != "" {
			return err
		}
		ordinal := 1
		if last := d.last(domain.OpCancel); last != nil {
			ordinal = last.Ordinal
			if !last.open() || last.dead(d.now, p.config.Horizon) {
				ordinal++
			}
		}
		d.payment.ProviderIntentID = orphan.ID // of the send only: it is never committed as the booking's intent
		s, err = p.record(ctx, tx, d, domain.OpCancel, ordinal)
		return err
	})
	if err != nil || s.call.Key == "" {
		return err
	}
	out := p.transmit(ctx, s)
	return postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error { return save(ctx, tx, d, s, out) })
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
	switch {
	case m.Payment == domain.PaymentRequiresAction || m.Payment == domain.PaymentDeclined:
		after = p.config.Poll
	case m.Booking.Ended() && m.Payment == domain.PaymentCanceled && len(d.calls) > 0:
		after = firstWatch // also where no intent is known: a lost create may have made one
	default:
		return nil
	}
	return &after
}
