package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// RefundRequest is what a person asks to be given back.
type RefundRequest struct {
	Amount   int64        // minor units; 0: all that is left
	Reason   string       // in the person's words
	Category string       // the provider's word for it: duplicate, fraudulent, requested_by_customer; may be empty
	By       outbox.Actor // who asks
}

// RefundView is a refund as finance and operators see it.
type RefundView struct {
	ID               domain.RefundID
	BookingID        domain.BookingID
	Amount           domain.Money
	Status           string // pending, succeeded, failed
	Cause            string // late_success, cancellation, requested, dashboard
	Reason           string // of a request
	Category         string // likewise
	RequestedBy      string // likewise
	FailureCode      string
	ProviderRefundID string
	CreatedAt        time.Time
	SettledAt        *time.Time
}

// Why a request for a refund is refused.
const (
	RefundNotPaid  = "booking_not_paid"
	RefundDisputed = CodeDisputed
	RefundExceeds  = codeExceeds
)

// RefundDecision is what a request for a refund has led to.
type RefundDecision struct {
	Refund   *RefundView // nil: refused
	Refusal  string      // then, why
	Balance  Balance     // before it
	Currency string

	Effect        domain.EffectID // that makes it
	Before, After Left            // what the act has changed, for its audit row
}

// ShowRefund puts what was decided into the caller's words. What it returns is stored under the key, and replayed byte for byte.
type ShowRefund func(RefundDecision) (status int, body []byte, err error)

// Refund begins a refund that a person asks for, of any client's booking, once for the person's key. What is left is decided under
// the payment's lock, from its rows, so that requests at once never give back more than was taken. One row of the audit says who
// has asked and why. The operators' desk does the same under its rule of two persons. It answers as bookings.Service.Once does; domain.ErrNotFound and *domain.ValidationError decide nothing.
func (k *Desk) Refund(ctx context.Context, a Ask, r RefundRequest, show ShowRefund) (bookings.Response, error) {
	route := "/v1/ops/bookings/" + a.Booking.String() + "/refunds"
	meaning := struct {
		Amount   int64  `json:"amount"`
		Reason   string `json:"reason"`
		Category string `json:"category"`
	}{r.Amount, r.Reason, r.Category}
	begun := false
	answer, err := k.service.Once(ctx, bookings.Keyed{Client: a.Client, Route: route, Key: a.Key, Meaning: meaning},
		func(ctx context.Context, tx pgx.Tx) (bookings.Decided, error) {
			answer := bookings.Decided{Booking: a.Booking, Location: route}
			decided, err := decideRefund(ctx, tx, a.Booking, r)
			if err != nil {
				return answer, err
			}
			begun = decided.Refund != nil
			answer.Status, answer.Body, err = show(decided)
			return answer, err
		})
	if err == nil && begun {
		k.engine.waker.Wake(domain.EffectRefund)
	}
	return answer, err
}

// decideRefund begins a refund, and records who has asked for it.
func decideRefund(ctx context.Context, tx pgx.Tx, id domain.BookingID, r RefundRequest) (RefundDecision, error) {
	made, err := BeginRefund(ctx, tx, id, r)
	if err != nil || made.Refund == nil {
		return made, err
	}
	return made, outbox.RecordAct(ctx, tx, outbox.Act{
		Actor: r.By, Action: "refund", Effect: &made.Effect, Booking: &id, Reason: r.Reason, Before: made.Before, After: made.After,
	})
}

// BeginRefund decides on a request under the booking's lock, in the caller's transaction, and begins what it may. Whoever calls it
// records the act, with what it has changed. A request that is refused has written nothing.
func BeginRefund(ctx context.Context, tx pgx.Tx, id domain.BookingID, r RefundRequest) (RefundDecision, error) {
	d, err := lockMoney(ctx, tx, id, domain.EffectID{})
	if err != nil {
		return RefundDecision{}, err
	}
	var step int64
	var read pgx.Batch
	bookings.ReadStep(&read, d.payment.Currency, &step)
	if err := postgres.Send(ctx, tx, &read); err != nil {
		return RefundDecision{}, err
	}
	if r.Amount%step != 0 {
		return RefundDecision{}, &domain.ValidationError{
			Field: "amount", Reason: fmt.Sprintf("%s goes back in multiples of %d minor units", d.payment.Currency, step), Code: "amount_too_fine",
		}
	}
	made := RefundDecision{Balance: d.balance, Currency: d.payment.Currency}
	left := d.balance.Refundable
	switch {
	case d.balance.Captured == 0:
		made.Refusal = RefundNotPaid
	case d.balance.Contested:
		made.Refusal = RefundDisputed
	case left == 0, r.Amount > left:
		made.Refusal = RefundExceeds
	}
	if made.Refusal != "" {
		return made, nil
	}
	if r.Amount == 0 {
		r.Amount = left
	}
	var b pgx.Batch
	var after dossier
	_, made.Effect = beginRefund(&b, d, order{amount: r.Amount, reason: reasonRequested, category: r.Category, by: r.By, words: r.Reason})
	readRefunds(&b, id, &after.refunds)
	ReadBalance(&b, id, &after.balance)
	if err := postgres.Send(ctx, tx, &b); err != nil {
		return made, err
	}
	made.Refund = after.refundOf(made.Effect).view(id)
	made.Before, made.After = Left{Refundable: left}, Left{Refundable: after.balance.Refundable, RefundID: made.Refund.ID.String()}
	return made, nil
}

// Left is what a request changes, as the audit keeps it.
type Left struct {
	Refundable int64  `json:"refundable"`
	RefundID   string `json:"refund_id,omitempty"`
}

func (f refund) view(booking domain.BookingID) *RefundView {
	return &RefundView{
		ID: f.id(), BookingID: booking, Amount: f.total(), Status: f.Status, Cause: f.Reason, Reason: f.RequestReason, Category: f.Category,
		RequestedBy: f.RequestedBy, FailureCode: f.FailureCode, ProviderRefundID: f.ProviderRefundID, CreatedAt: f.CreatedAt, SettledAt: f.SettledAt,
	}
}

// RefundsView is what became of a payment's money.
type RefundsView struct {
	Refunds  []RefundView // oldest first
	Balance  Balance
	Currency string
}

// Refunds reads all refunds of any client's booking and what is left, as of one moment. It returns domain.ErrNotFound if there is
// no such booking.
func (w *Viewer) Refunds(ctx context.Context, id domain.BookingID) (RefundsView, error) {
	var v RefundsView
	err := w.asOfOneMoment(ctx, func(tx pgx.Tx) error {
		var rows []refund
		var paid payment
		var b pgx.Batch
		readPayment(&b, id, ``, &paid)
		readRefunds(&b, id, &rows)
		ReadBalance(&b, id, &v.Balance)
		if err := postgres.Send(ctx, tx, &b); err != nil {
			return err
		}
		if paid.ID == uuid.Nil {
			return domain.ErrNotFound
		}
		v.Currency, v.Refunds = paid.Currency, make([]RefundView, 0, len(rows))
		for _, row := range rows {
			v.Refunds = append(v.Refunds, *row.view(id))
		}
		return nil
	})
	if err != nil {
		return RefundsView{}, fmt.Errorf("show the refunds of booking %s: %w", id, err)
	}
	return v, nil
}
