package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

// Refund is a refund as finance and operators see it.
type Refund struct {
	ID               domain.RefundID  `json:"id" format:"uuid"`
	BookingID        domain.BookingID `json:"booking_id" format:"uuid"`
	Amount           domain.Money     `json:"amount" doc:"Minor units."`
	Status           string           `json:"status"`
	Cause            string           `json:"cause"`
	Reason           string           `json:"reason,omitempty" doc:"In the words of the person who asked for it."`
	Category         string           `json:"category,omitempty" doc:"What the payment provider was told: duplicate, fraudulent or requested_by_customer."`
	RequestedBy      string           `json:"requested_by,omitempty" doc:"Who asked for it."`
	FailureCode      string           `json:"failure_code,omitempty" doc:"Why it failed: the provider's code, refund_exceeds_captured where it was never sent, or discarded where an operator has given it up."`
	ProviderRefundID string           `json:"provider_refund_id,omitempty" doc:"What the provider calls it, once it is known."`
	CreatedAt        domain.Instant   `json:"created_at" format:"date-time"`
	SettledAt        *domain.Instant  `json:"settled_at,omitempty" format:"date-time" doc:"When it was seen to have succeeded or failed."`
}

func refundStatuses() []meaning {
	return []meaning{
		{"pending", "it will be made, or its outcome is being asked for. Its amount counts as given back."},
		{"succeeded", "the provider says that the money went back. It may still fail, up to 30 days later."},
		{"failed", "nothing went back, or it came back to us; failure_code says why. Its amount is left again, and another refund can be asked for."},
	}
}

func refundCauses() []meaning {
	return []meaning{
		{"late_success", "the money was taken although the booking had ended."},
		{"cancellation", "the booking was cancelled."},
		{"requested", "somebody asked for it here; see requested_by and reason."},
		{"dashboard", "somebody made it at the payment provider, and not through this API."},
	}
}

func showRefund(v payments.RefundView) Refund {
	return Refund{
		ID: v.ID, BookingID: v.BookingID, Amount: v.Amount, Status: v.Status, Cause: v.Cause, Reason: v.Reason, Category: v.Category,
		RequestedBy: v.RequestedBy, FailureCode: v.FailureCode, ProviderRefundID: v.ProviderRefundID,
		CreatedAt: domain.Instant(v.CreatedAt), SettledAt: (*domain.Instant)(v.SettledAt),
	}
}

type requestRefundInput struct {
	ID      string `path:"id" doc:"The booking's id."`
	RawBody []byte `contentType:"application/json"`
}

const minRefundReason, maxRefundReason = 3, 500 // characters

// refundRequest is the body, as the OpenAPI document shows it.
type refundRequest struct {
	Amount   int64  `json:"amount,omitempty" minimum:"1" doc:"Minor units of the booking's currency; left out: all that is left." example:"1000"`
	Reason   string `json:"reason" minLength:"3" maxLength:"500" doc:"Why, for whoever reads it later. Kept with who asked." example:"The room was too loud."`
	Category string `json:"category,omitempty" enum:"duplicate,fraudulent,requested_by_customer" doc:"What the payment provider is told."`
}

func decodeRefund(body []byte) (r payments.RefundRequest, err error) {
	value, err := parseJSON(body)
	if err != nil {
		return r, err
	}
	var found faults
	m := readObject(value, "", &found)
	r.Amount = m.integer("amount", 1, math.MaxInt64, false, 0)
	r.Reason = m.text("reason", minRefundReason, maxRefundReason, line())
	if strings.TrimSpace(r.Reason) == "" && r.Reason != "" {
		m.fault("reason", "want words")
	}
	r.Category = m.choice("category", "duplicate", "fraudulent", "requested_by_customer")
	m.end()
	if len(found) > 0 {
		return r, found
	}
	return r, nil
}

// choice takes one of several words, or nothing where the member is absent.
func (m members) choice(name string, words ...string) string {
	v, ok := m.take(name, false)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok || !slices.Contains(words, s) {
		m.fault(name, "want one of "+strings.Join(words, ", "))
	}
	return s
}

// requestRefund begins a refund of any client's booking. What was decided is written byte for byte as it was stored.
func (s *Server) requestRefund(ctx context.Context, x *exchange, in *requestRefundInput) (*decidedOutput, error) {
	id, err := domain.ParseID[domain.BookingID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	x.booking = id.String()
	request, err := decodeRefund(in.RawBody)
	if err != nil {
		return nil, err
	}
	meaning := struct {
		Amount   int64  `json:"amount"`
		Reason   string `json:"reason"`
		Category string `json:"category"`
	}{request.Amount, request.Reason, request.Category}
	key := bookings.Keyed{Client: x.principal.ClientID, Route: "/v1/ops/bookings/" + id.String() + "/refunds", Key: x.key, Meaning: meaning}
	order := operator.Order{
		Act: operator.Refund, On: operator.Target{Booking: id}, By: x.actor(), Reason: request.Reason, Amount: request.Amount, Category: request.Category,
	}
	decided, err := s.config.Operators.DoOnce(ctx, key, order, showRefundDecision)
	if err != nil {
		return nil, err
	}
	return x.decided(decided), nil
}

// showRefundDecision answers 202 where a second person has yet to agree.
func showRefundDecision(r operator.Result, refused *outbox.RefusedError) (int, []byte, error) {
	d := r.Refund
	if refused != nil && d != nil && d.Refusal != "" {
		p := newProblem(Code(d.Refusal), whyNoRefund(*d))
		body, err := json.Marshal(p)
		return p.Status, body, err
	}
	if refused != nil || r.Request != nil || d == nil || d.Refund == nil {
		return showAct(r, refused)
	}
	body, err := json.Marshal(showRefund(*d.Refund))
	return http.StatusCreated, body, err
}

func whyNoRefund(d payments.RefundDecision) string {
	switch d.Refusal {
	case payments.RefundNotPaid:
		return "No money was taken for this booking, so none can go back."
	case payments.RefundDisputed:
		return "The cardholder's bank disputes the charge, and the provider refunds nothing while it does. Answer the dispute instead."
	default:
		return fmt.Sprintf("Of %d %s that were taken, %d are left to go back: the rest went back, is on its way back, or was taken by a dispute. "+
			"List the refunds, and ask for no more than is left with a new key.", d.Balance.Captured, d.Currency, d.Balance.Refundable)
	}
}

type listRefundsInput struct {
	ID string `path:"id" doc:"The booking's id."`
}

type listRefundsOutput struct {
	Body struct {
		Refunds    []Refund     `json:"refunds" nullable:"false"`
		Captured   domain.Money `json:"captured" doc:"What was taken."`
		Refundable domain.Money `json:"refundable" doc:"What is left to go back: less what went back, is on its way back, or was taken by disputes."`
		Disputed   bool         `json:"disputed" doc:"Whether an open dispute keeps everything from going back."`
	}
}

// listRefunds shows all refunds of any client's booking.
func (s *Server) listRefunds(ctx context.Context, x *exchange, in *listRefundsInput) (*listRefundsOutput, error) {
	id, err := domain.ParseID[domain.BookingID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	x.booking = id.String()
	v, err := s.config.Payments.Refunds(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &listRefundsOutput{}
	out.Body.Captured = domain.Money{Amount: v.Balance.Captured, Currency: v.Currency}
	out.Body.Refundable = domain.Money{Amount: v.Balance.Refundable, Currency: v.Currency}
	out.Body.Disputed = v.Balance.Contested
	out.Body.Refunds = make([]Refund, 0, len(v.Refunds))
	for _, refund := range v.Refunds {
		out.Body.Refunds = append(out.Body.Refunds, showRefund(refund))
	}
	return out, nil
}
