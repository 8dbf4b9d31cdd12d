package httpapi

import (
	"context"
	"fmt"
	"time"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments"
)

// Viewer shows a client's own bookings; any other is domain.ErrNotFound, also where a list is to go on after it.
type Viewer interface {
	List(ctx context.Context, client domain.ClientID, f bookings.Filter) ([]payments.View, error)
	View(ctx context.Context, client domain.ClientID, id domain.BookingID) (payments.View, error)
	Cancellation(ctx context.Context, client domain.ClientID, id domain.BookingID) (payments.Cancellation, error)
	Refunds(ctx context.Context, id domain.BookingID) (payments.RefundsView, error)
}

type getBookingInput struct {
	ID string `path:"id" doc:"The booking's id."`
}

type getBookingOutput struct {
	Applied    string `header:"Preference-Applied" doc:"wait=N, if that was preferred: for how many seconds at most the answer was kept back."`
	RetryAfter string `header:"Retry-After" doc:"With next_action_hint: after how many seconds to look again."`
	Body       BookingDetail
}

// getBooking shows one booking. An id that cannot be one, one that does not exist and one of another client's booking
// are answered alike. A client that prefers to wait is answered when there is something to say.
func (s *Server) getBooking(ctx context.Context, x *exchange, in *getBookingInput) (*getBookingOutput, error) {
	id, err := domain.ParseID[domain.BookingID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	x.booking = id.String()
	view, err := s.config.Payments.View(ctx, x.principal.ClientID, id)
	if err != nil {
		return nil, err
	}
	applied := ""
	if x.wait != nil {
		applied = fmt.Sprintf("wait=%d", *x.wait/time.Second)
		if view, err = s.await(ctx, x, view); err != nil {
			return nil, err
		}
	}
	out := s.detail(ctx, x, view)
	out.Applied = applied
	return out, nil
}
