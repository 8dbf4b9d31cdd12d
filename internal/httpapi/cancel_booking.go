package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"holdfast/domain"
	"holdfast/payments"
)

type cancelBookingInput struct {
	ID      string `path:"id" doc:"The booking's id."`
	RawBody []byte `contentType:"application/json"`
}

// cancelRequest is the body: nothing has to be said.
type cancelRequest struct{}

// cancelBooking ends a booking that is held. What was decided is written byte for byte as it was stored.
func (s *Server) cancelBooking(ctx context.Context, x *exchange, in *cancelBookingInput) (*decidedOutput, error) {
	id, err := domain.ParseID[domain.BookingID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	x.booking = id.String()
	value, err := parseJSON(in.RawBody)
	if err != nil {
		return nil, err
	}
	var found faults
	readObject(value, "", &found).end()
	if len(found) > 0 {
		return nil, found
	}
	decided, err := s.config.Desk.Cancel(ctx, x.ask(id), showCancellation)
	if err != nil {
		return nil, err
	}
	return x.decided(decided), nil
}

// showCancellation answers 202 while the provider has yet to prove that the money was not taken.
func showCancellation(v payments.View, done bool) (int, []byte, error) {
	if !done {
		p := newProblem(CodeBookingConfirmed, "The booking is confirmed and paid. A confirmed booking cannot be cancelled here yet.")
		body, err := json.Marshal(p)
		return p.Status, body, err
	}
	status := http.StatusOK
	if !v.Booking.Status.Ended() {
		status = http.StatusAccepted
	}
	body, err := json.Marshal(showBooking(v))
	return status, body, err
}
