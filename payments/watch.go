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
	if _, err := p.look(ctx, id, nil); err != nil {
		p.logger.WarnContext(ctx, lookTimeout, "booking_id", id, "error", err) // it is due again after the lease
	}
	return true, nil
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
		                WHERE due.watch_at <= clock_timestamp() AND due.provider_intent_id IS NOT NULL
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
	case m.Booking.Ended() && m.Payment == domain.PaymentCanceled && d.payment.ProviderIntentID != "":
		after = firstWatch
	default:
		return nil
	}
	return &after
}
