package payments

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/outbox"
)

// reasonLateSuccess parks the refund of money that was taken for a booking that is over.
const reasonLateSuccess = "the money was taken although the booking has ended: refund it in full"

// settle is the single door: everybody who has seen something of the provider's brings it here, under the booking's
// lock, and the payment, its booking, the effects and the event change in this one transaction, or not at all.
// What may change is decided by domain.Settle alone.
func (p *Payments) settle(ctx context.Context, tx pgx.Tx, d dossier, o domain.Observation, seen *Intent) (domain.Move, error) {
	m := domain.Settle(d.state(), o)
	if m.Stale {
		return m, nil
	}
	if o.Fact == domain.FactDeclined || o.Fact == domain.FactAction {
		// Whatever the sends themselves answered, the newest card's confirm is known to have run.
		if err := conclude(ctx, tx, d, domain.OpConfirm, d.payment.Card, Executed); err != nil {
			return m, err
		}
	}
	return m, p.apply(ctx, tx, d, m, seen)
}

// end begins the end of a held booking (domain.End) under its lock.
func (p *Payments) end(ctx context.Context, tx pgx.Tx, d dossier, reason domain.EndingReason) (domain.Move, error) {
	m := domain.End(d.state(), reason)
	return m, p.apply(ctx, tx, d, m, nil)
}

// apply writes a move.
func (p *Payments) apply(ctx context.Context, tx pgx.Tx, d dossier, m domain.Move, seen *Intent) error {
	if m.Changed {
		if err := p.applyChange(ctx, tx, d, m, seen); err != nil {
			return err
		}
	}
	if m.Charge != "" {
		if err := outbox.Finish(ctx, tx, d.booking.ID, domain.EffectCharge, m.Charge); err != nil {
			return err
		}
	}
	if m.Cancel != "" {
		if err := outbox.Finish(ctx, tx, d.booking.ID, domain.EffectCancel, m.Cancel); err != nil {
			return err
		}
	}
	if m.Fence {
		if _, err := outbox.Append(ctx, tx, outbox.NewEffect{BookingID: d.booking.ID, Kind: domain.EffectCancel}); err != nil {
			return err
		}
	}
	if m.Refund {
		p.logger.ErrorContext(ctx, reasonLateSuccess, "booking_id", d.booking.ID, "payment_id", d.id())
		return outbox.AppendParked(ctx, tx, d.booking.ID, domain.EffectRefund, reasonLateSuccess)
	}
	return nil
}

func (p *Payments) applyChange(ctx context.Context, tx pgx.Tx, d dossier, m domain.Move, seen *Intent) error {
	var failure, decline string
	var received int64
	if seen != nil {
		received = seen.AmountReceived
		if seen.LastError != nil && (m.Payment == domain.PaymentDeclined || m.Payment == domain.PaymentRefused) {
			failure, decline = seen.LastError.Code, seen.LastError.DeclineCode
		}
	}
	tag, err := tx.Exec(ctx, `
		UPDATE payments
		   SET status = $3, version = version + 1, updated_at = clock_timestamp(),
		       failure_code = nullif($4, ''), decline_code = nullif($5, ''),
		       amount_received = greatest(amount_received, $6),
		       watch_at = clock_timestamp() + $7::interval, watches = 0
		 WHERE id = $1 AND version = $2`,
		d.payment.ID, d.payment.Version, m.Payment, failure, decline, received, p.watchAfter(d, m))
	if err != nil {
		return fmt.Errorf("settle payment %s: %w", d.id(), err)
	}
	if tag.RowsAffected() != 1 {
		return fmt.Errorf("settle payment %s: its version moved under the booking's lock", d.id())
	}
	if m.Event == "" && m.Booking == d.booking.Status {
		return nil
	}
	booking, err := bookings.Apply(ctx, tx, d.booking, m)
	if err != nil {
		return err
	}
	if m.Event == "" {
		return nil
	}
	return outbox.AppendEvent(ctx, tx, booking.ID, booking.EventSeq, m.Event, domain.EventData{
		BookingID: booking.ID, PaymentID: d.id(), ResourceID: booking.ResourceID,
		Status: booking.Status, EndingReason: booking.EndingReason, PaymentStatus: m.Payment, DeclineCode: decline,
		Start: domain.Instant(booking.Start), End: domain.Instant(booking.End), Quantity: booking.Quantity,
		Total: booking.Total, HoldExpiresAt: domain.Instant(booking.HoldExpiresAt),
	})
}

// woken tells the workers what a committed move has left for them.
func (p *Payments) woken(m domain.Move) {
	if m.Event != "" {
		p.waker.Wake(domain.EffectPublish)
	}
	if m.Fence {
		p.waker.Wake(domain.EffectCancel)
	}
}
