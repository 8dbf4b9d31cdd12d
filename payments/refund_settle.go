package payments

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// lookForRefund lists the intent's refunds and settles what they show. Only a complete listing that lacks ours lets the
// refund be sent again.
func (p *Payments) lookForRefund(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	before, err := p.peek(ctx, e.BookingID) // the version first, then the question
	if err != nil {
		return progress{}, err
	}
	found, unread := p.gateway.Refunds(ctx, before.payment.ProviderIntentID)
	made, err := p.refundTurn(ctx, e, r, nil, func(b *pgx.Batch, d dossier, f refund) (decision, error) {
		switch {
		case unread != nil:
			return p.doubtRefund(b, d, r, "the provider's refunds could not be listed", 0)
		case d.payment.Version != before.payment.Version:
			return decision{at: progress{again: true}}, nil
		}
		return p.refundListed(b, d, f, r, found)
	})
	if err != nil {
		return progress{}, err
	}
	return p.sendRefund(ctx, e, r, made)
}

// refundListed settles what a complete listing of the intent's refunds shows.
func (p *Payments) refundListed(b *pgx.Batch, d dossier, f refund, r role, found []ProviderRefund) (decision, error) {
	last := d.last(domain.OpRefund)
	var ours, others *ProviderRefund
	var byHand int64
	for i, x := range found {
		switch {
		case x.RefundID != f.ID.String():
			if x.Status == RefundSucceeded {
				byHand += x.Amount.Amount
				others = &found[i]
			}
		case x.Status == RefundSucceeded:
			return p.refundShown(b, d, f, r, x)
		case ours == nil && last != nil && x.Ordinal == strconv.Itoa(last.Ordinal):
			ours = &found[i]
		}
	}
	switch {
	case byHand >= f.Amount:
		p.logger.Warn("a refund was made by hand at the provider before ours", "booking_id", d.booking.ID, "refund_id", f.ID)
		outbox.Note(b, d.effect.ID, "refunded by hand at the provider", 0)
		return p.refunded(b, d, f, r, others.ID, true)
	case ours != nil:
		return p.refundShown(b, d, f, r, *ours)
	}
	return p.refundAbsent(b, d, f, r, last)
}

// refundShown settles what the provider says of our refund.
func (p *Payments) refundShown(b *pgx.Batch, d dossier, f refund, r role, x ProviderRefund) (decision, error) {
	switch {
	case x.Amount != f.total() || x.RefundID != f.ID.String():
		return p.parkRefund(b, d, f, r, "the provider's refund differs from what was sent: amount, currency or our id")
	case x.Status == RefundSucceeded:
		return p.refunded(b, d, f, r, x.ID, false)
	case x.Status == RefundFailed || x.Status == RefundCanceled:
		return p.refundFailed(b, d, f, r, x.ID, x.FailureCode)
	default:
		return p.doubtRefund(b, d, r, "the provider has accepted the refund and not made it yet", p.config.Poll)
	}
}

// refundAbsent decides what follows from a complete listing without our refund.
func (p *Payments) refundAbsent(b *pgx.Batch, d dossier, f refund, r role, last *call) (decision, error) {
	if last == nil || f.Status == refundFailed {
		return p.nextRefund(b, d, f, r)
	}
	rejected := last.HTTPStatus == http.StatusBadRequest || last.HTTPStatus == http.StatusNotFound || last.HTTPStatus == http.StatusPaymentRequired
	forgotten := p.config.KeyRetention - d.now.Sub(last.LastSentAt)
	switch {
	case last.ErrorCode == codeAlreadyRefunded:
		return p.doubtRefund(b, d, r, "the provider says that the money went back, and lists no refund of it", p.config.Poll)
	case rejected && !last.StoredError && last.Outcome != KeyMismatch.String():
		return p.refundFailed(b, d, f, r, "", last.ErrorCode)
	case last.Outcome == Executed.String():
		return p.doubtRefund(b, d, r, "the provider has accepted the refund and does not list it yet", p.config.Poll)
	case !last.dead(d.now, p.config.Horizon):
		if rest := p.backoff(d.effect.Attempts) - d.now.Sub(last.LastSentAt); rest > 0 {
			return p.doubtRefund(b, d, r, "no answer to the refund so far; its key is sent again", rest)
		}
		return p.recordRefund(b, d, f, last.Ordinal), nil
	case forgotten > 0:
		return p.doubtRefund(b, d, r, "the refund's key can be sent no more, and may still bring it; the next key follows", min(forgotten, time.Hour))
	default: // it is not there, and nothing that was sent can bring it any more
		conclude(b, d, domain.OpRefund, last.Ordinal, Rejected)
		return p.recordRefund(b, d, f, last.Ordinal+1), nil
	}
}

// codeAlreadyRefunded is the provider's refusal of a refund of what was refunded in full.
const codeAlreadyRefunded = "charge_already_refunded"

// refunded settles a refund that the provider has made, and tells of it.
func (p *Payments) refunded(b *pgx.Batch, d dossier, f refund, r role, providerID string, byHand bool) (decision, error) {
	postgres.ExecAnd(b, "settle a refund", oneRow, `
		UPDATE refunds SET status = 'succeeded', provider_refund_id = $2, by_hand = $3, failure_code = NULL, updated_at = clock_timestamp()
		 WHERE id = $1 AND status <> 'succeeded'`, f.ID, providerID, byHand)
	outbox.Done(b, d.effect.ID)
	r.done(b)
	return p.tellOfRefund(b, d, f, domain.EventRefunded, "")
}

// refundFailed settles a refund that the provider has refused or failed to make: the money is still with us, and a person
// has to see to it. A replay takes the next key.
func (p *Payments) refundFailed(b *pgx.Batch, d dossier, f refund, r role, providerID, code string) (decision, error) {
	postgres.ExecAnd(b, "settle a refund", oneRow, `
		UPDATE refunds SET status = 'failed', provider_refund_id = nullif($2, ''), failure_code = nullif($3, ''), updated_at = clock_timestamp()
		 WHERE id = $1 AND status = 'pending'`, f.ID, providerID, code)
	conclude(b, d, domain.OpRefund, d.last(domain.OpRefund).Ordinal, Rejected)
	why := "the provider did not make the refund"
	if code != "" {
		why += ": " + code
	}
	if made, err := p.parkRefund(b, d, f, r, why); err != nil {
		return made, err
	}
	return p.tellOfRefund(b, d, f, domain.EventRefundFailed, code)
}

func (p *Payments) tellOfRefund(b *pgx.Batch, d dossier, f refund, event domain.EventType, code string) (decision, error) {
	m := domain.Move{Booking: d.booking.Status, Reason: d.booking.EndingReason, Payment: d.payment.Status, Event: event}
	return decision{move: m}, tell(b, d, m, "", &domain.RefundData{RefundID: f.id(), Amount: f.total(), Reason: f.Reason, FailureCode: code})
}
