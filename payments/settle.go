package payments

import (
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// alarmLateSuccess is logged when money that was taken for a booking that is over has to go back.
const alarmLateSuccess = "the money was taken although the booking has ended: it is refunded in full"

// alarmOtherSum is logged when the provider has taken another sum than was asked for: somebody has changed the intent there.
const alarmOtherSum = "another sum was taken than was asked for: look at it in the provider's dashboard"

// settle is the single door: everybody who has seen something of the provider's brings it here, under the booking's
// lock, and the payment, its booking, the effects and the event change in this one transaction, or not at all.
// What may change is decided by domain.Settle alone.
func (p *Payments) settle(b *pgx.Batch, d dossier, o domain.Observation, seen *Intent) (domain.Move, error) {
	m := domain.Settle(d.state(), o)
	if m.Stale {
		return m, nil
	}
	if o.Fact == domain.FactDeclined || o.Fact == domain.FactAction {
		// Whatever the sends themselves answered, the newest card's confirm is known to have run.
		conclude(b, d, domain.OpConfirm, d.payment.Card, Executed)
	}
	return m, p.apply(b, d, m, seen)
}

// end begins the end of a held booking (domain.End) under its lock.
func (p *Payments) end(b *pgx.Batch, d dossier, reason domain.EndingReason) (domain.Move, error) {
	m := domain.End(d.state(), reason)
	return m, p.apply(b, d, m, nil)
}

// apply queues the writing of a move.
func (p *Payments) apply(b *pgx.Batch, d dossier, m domain.Move, seen *Intent) error {
	if m.Changed {
		if err := p.applyChange(b, d, m, seen); err != nil {
			return err
		}
	}
	if m.Charge != "" {
		if err := outbox.Finish(b, d.booking.ID, domain.EffectCharge, m.Charge); err != nil {
			return err
		}
	}
	if m.Cancel != "" {
		if err := outbox.Finish(b, d.booking.ID, domain.EffectCancel, m.Cancel); err != nil {
			return err
		}
	}
	if m.Fence {
		outbox.Append(b, d.booking.ID, domain.EffectCancel)
	}
	return nil
}

func (p *Payments) applyChange(b *pgx.Batch, d dossier, m domain.Move, seen *Intent) error {
	var failure, decline string
	var received int64
	if seen != nil {
		received = seen.AmountReceived
		taken := domain.Money{Amount: received, Currency: seen.Amount.Currency}
		if m.Payment == domain.PaymentSucceeded && taken != d.charge().Total {
			p.logger.Error(alarmOtherSum, "booking_id", d.booking.ID, "payment_id", d.id(), "taken", taken.String(), "total", d.charge().Total.String())
		}
		if seen.LastError != nil && (m.Payment == domain.PaymentDeclined || m.Payment == domain.PaymentRefused) {
			failure, decline = seen.LastError.Code, seen.LastError.DeclineCode
		}
	}
	postgres.ExecAnd(b, "settle a payment", oneRow, `
		UPDATE payments
		   SET status = $3, version = version + 1, updated_at = clock_timestamp(),
		       failure_code = CASE WHEN status = $3 THEN failure_code ELSE nullif($4, '') END,
		       decline_code = CASE WHEN status = $3 THEN decline_code ELSE nullif($5, '') END,
		       amount_received = greatest(amount_received, $6),
		       watch_at = clock_timestamp() + $7::interval, watches = 0
		 WHERE id = $1 AND version = $2`,
		d.payment.ID, d.payment.Version, m.Payment, failure, decline, received, p.watchAfter(d, m))
	if m.Payment == domain.PaymentSucceeded {
		ledger.Bring(b, d.payment.ID)
	}
	refund := giveBack(b, d, m)
	if m.Event == "" && m.Booking == d.booking.Status && m.Reason == d.booking.EndingReason {
		return nil
	}
	return tell(b, d, m, domain.EventData{DeclineCode: decline, Refund: refund})
}

// tell queues the move of a booking and the event that tells of it, if any. data is what the event tells beside the booking
// and its payment.
func tell(b *pgx.Batch, d dossier, m domain.Move, data domain.EventData) error {
	booking := bookings.Apply(b, d.booking, m)
	if m.Event == "" {
		return nil
	}
	data.BookingID, data.PaymentID, data.ResourceID = booking.ID, d.id(), booking.ResourceID
	data.Status, data.EndingReason, data.PaymentStatus = booking.Status, booking.EndingReason, m.Payment
	data.Start, data.End, data.Quantity = domain.Instant(booking.Start), domain.Instant(booking.End), booking.Quantity
	data.Total, data.HoldExpiresAt = booking.Total, domain.Instant(booking.HoldExpiresAt)
	return outbox.AppendEvent(b, booking.ID, booking.EventSeq, m.Event, data)
}

// woken tells the workers what a committed move has left for them.
func (p *Payments) woken(m domain.Move) {
	if m.Event != "" {
		p.waker.Wake(domain.EffectPublish)
	}
	if m.Fence {
		p.waker.Wake(domain.EffectCancel)
	}
	if m.Refund != "" {
		p.waker.Wake(domain.EffectRefund)
	}
}
