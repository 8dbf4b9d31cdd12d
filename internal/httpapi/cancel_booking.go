package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"holdfast/domain"
	"holdfast/payments"
)

type cancelBookingInput struct {
	ID      string `path:"id" doc:"The booking's id."`
	RawBody []byte `contentType:"application/json"`
}

// cancelRequest is the body: nothing has to be said.
type cancelRequest struct {
	ExpectedRefund *moneyRequest `json:"expected_refund,omitempty" doc:"The refund that you have shown to the customer, as GET …/cancellation tells it. If it is another by now, nothing is cancelled: 409 refund_changed."`
}

func decodeCancellation(body []byte) (expected *domain.Money, err error) {
	value, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	var found faults
	m := readObject(value, "", &found)
	m.object("expected_refund", false, func(m members) { expected = m.money() })
	m.end()
	if len(found) > 0 {
		return nil, found
	}
	return expected, nil
}

// cancelBooking ends a booking for its customer. What was decided is written byte for byte as it was stored.
func (s *Server) cancelBooking(ctx context.Context, x *exchange, in *cancelBookingInput) (*decidedOutput, error) {
	id, err := domain.ParseID[domain.BookingID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	x.booking = id.String()
	expected, err := decodeCancellation(in.RawBody)
	if err != nil {
		return nil, err
	}
	decided, err := s.config.Desk.Cancel(ctx, x.ask(id), expected, showCancelled)
	if err != nil {
		return nil, err
	}
	return x.decided(decided), nil
}

// showCancelled answers 202 while the provider has yet to prove what became of the money.
func showCancelled(v payments.View, c payments.Cancellation) (int, []byte, error) {
	switch c.Outcome {
	case payments.CancelTooLate:
		return refuseToCancel(CodeBookingOver, "The booking is paid, and its time was over at "+domain.Instant(v.Booking.End).String()+". It stays as it is.")
	case payments.CancelRefused:
		return refuseToCancel(CodeRefundChanged, fmt.Sprintf("Cancelling gives back %s (minor units), not what was expected. "+
			"Look at it again, and if it is accepted, cancel with a new key.", c.Refund))
	case payments.CancelNow, payments.CancelEnding, payments.CancelUnchanged:
	}
	status := http.StatusOK
	if !v.Booking.Status.Ended() {
		status = http.StatusAccepted
	}
	body, err := json.Marshal(showBooking(v))
	return status, body, err
}

func refuseToCancel(code Code, detail string) (int, []byte, error) {
	p := newProblem(code, detail)
	body, err := json.Marshal(p)
	return p.Status, body, err
}
