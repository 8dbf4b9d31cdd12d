package httpapi

import (
	"context"
	"errors"

	"holdfast/domain"
	"holdfast/payments"
)

// Prompter tells what the customer of a booking has to do at this moment: payments.ErrNoAction if nothing, and any
// other error if that could not be learned in a few seconds.
type Prompter interface {
	Next(ctx context.Context, v payments.View) (payments.NextAction, error)
}

// BookingDetail is a booking as its owner reads that one alone. Lists, streams and stored answers show a Booking, which
// has no place for a next action.
type BookingDetail struct {
	Booking

	NextAction     *NextAction `json:"next_action,omitempty" doc:"What your customer has to do now; only while payment.status is requires_action. It is read from the provider each time: do not store or log it."`
	NextActionHint string      `json:"next_action_hint,omitempty" doc:"Why next_action is missing although payment.status is requires_action, and what to do. Retry-After says when."`
}

// NextAction shows what the customer has to do. It is the one document that holds a client secret.
type NextAction struct {
	Type         payments.ActionType `json:"type"`
	URL          disclosed           `json:"url,omitempty" format:"uri" doc:"The bank's page, with redirect_to_url only. Open it in the customer's browser; it works for this customer and this payment."`
	ClientSecret disclosed           `json:"client_secret" doc:"Lets whoever holds it pay this booking. For the customer's browser alone."`
}

// disclosed is a secret that JSON shows, since it is written for its owner. Formatting hides it all the same: whatever
// else is done with the document, it stays out of logs and errors.
type disclosed string

// String hides the secret.
func (disclosed) String() string { return domain.Secret("").String() }

// GoString hides the secret from %#v.
func (disclosed) GoString() string { return domain.Secret("").GoString() }

const (
	hintUnread       = "The payment provider could not be asked in time what the customer has to do. Nothing is lost: read the booking again."
	hintRetryAfter   = "2"
	hintNotAvailable = "This deployment does not show what the customer has to do: its API has no key of the payment provider."
)

// detail completes a booking with what its customer has to do. Trouble with the provider never keeps the booking from
// being shown; it is noted for the log.
func (s *Server) detail(ctx context.Context, x *exchange, v payments.View) *getBookingOutput {
	out := &getBookingOutput{Body: BookingDetail{Booking: showBooking(v)}}
	if v.Booking.Status != domain.BookingHeld || v.Payment.Status != domain.PaymentRequiresAction {
		return out
	}
	if s.config.Actions == nil {
		out.Body.NextActionHint = hintNotAvailable
		return out
	}
	next, err := s.config.Actions.Next(ctx, v)
	switch {
	case errors.Is(err, payments.ErrNoAction): // the customer has acted, and the payment will soon say so
	case err != nil:
		x.unprompted = err
		out.RetryAfter, out.Body.NextActionHint = hintRetryAfter, hintUnread
	default:
		out.Body.NextAction = &NextAction{
			Type: next.Type, URL: disclosed(next.URL.Reveal()), ClientSecret: disclosed(next.ClientSecret.Reveal()),
		}
	}
	return out
}
