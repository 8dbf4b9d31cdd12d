package httpapi

import (
	"context"
	"net/http"
	"time"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments"
)

// Desk decides what a customer asks of a booking, each (client, booking, key) once.
type Desk interface {
	ChangeCard(ctx context.Context, a payments.Ask, paymentMethod string, show payments.Show) (bookings.Response, error)
	Cancel(ctx context.Context, a payments.Ask, expected *domain.Money, show payments.ShowCancellation) (bookings.Response, error)
}

func (x *exchange) ask(id domain.BookingID) payments.Ask {
	return payments.Ask{Client: x.principal.ClientID, Booking: id, Key: x.key}
}

// decidedOutput is a stored answer of a keyed request.
type decidedOutput struct {
	Status      int
	ContentType string `header:"Content-Type" hidden:"true"`
	Location    string `header:"Location" doc:"Where the booking is."`
	Replayed    string `header:"Idempotency-Replayed" doc:"true if this is the stored answer of an earlier request."`
	KeyExpires  string `header:"Idempotency-Key-Expires" doc:"Until when this answer is kept and replayed, RFC 3339."`
	Body        []byte
}

// decided answers with what was committed, byte for byte, a refusal of the business included.
func (x *exchange) decided(r bookings.Response) *decidedOutput {
	out := &decidedOutput{
		Status: r.Status, ContentType: "application/json", Location: r.Location,
		KeyExpires: r.KeyExpires.UTC().Format(time.RFC3339), Body: r.Body,
	}
	if r.Status >= http.StatusBadRequest {
		out.ContentType = problemContentType
		x.problem = codeOf(r.Body)
	}
	if r.Replayed {
		out.Replayed, x.replayed = "true", true
	}
	return out
}
