package httpapi

import (
	"context"
	"time"

	"holdfast/domain"
	"holdfast/payments"
)

// CancellationPreview is what cancelling a booking now would do.
type CancellationPreview struct {
	BookingID domain.BookingID       `json:"booking_id" format:"uuid"`
	AsOf      domain.Instant         `json:"as_of" format:"date-time" doc:"Now, by the clock that judges."`
	Outcome   payments.CancelOutcome `json:"outcome"`
	Refund    domain.Money           `json:"refund" doc:"What goes back of the total if it is paid, less what would be more than is left of it; nothing goes back of what was not paid. Minor units. Send it as expected_refund. Where cancelling was asked for already, it is what was decided then."`
	Percent   int                    `json:"percent" doc:"Of the total, by the policy that the booking was made under."`
	Until     *domain.Instant        `json:"until,omitempty" format:"date-time" doc:"The last moment at which this holds. Not there: it holds for good."`
	Then      []CancellationTerm     `json:"then" nullable:"false" doc:"What follows, each on the one before it."`
}

// CancellationTerm is what cancelling gives back later on.
type CancellationTerm struct {
	Refund  domain.Money    `json:"refund"`
	Percent int             `json:"percent"`
	Until   *domain.Instant `json:"until,omitempty" format:"date-time" doc:"The last moment at which it holds. Not there: it holds for good."`
}

type previewCancellationOutput struct {
	Body CancellationPreview
}

// previewCancellation shows what cancelling would do. It changes nothing.
func (s *Server) previewCancellation(ctx context.Context, x *exchange, in *getBookingInput) (*previewCancellationOutput, error) {
	id, err := domain.ParseID[domain.BookingID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	x.booking = id.String()
	c, err := s.config.Payments.Cancellation(ctx, x.principal.ClientID, id)
	if err != nil {
		return nil, err
	}
	return &previewCancellationOutput{Body: showPreview(c)}, nil
}

func showPreview(c payments.Cancellation) CancellationPreview {
	p := CancellationPreview{
		BookingID: c.Booking, AsOf: domain.Instant(c.At), Outcome: c.Outcome,
		Refund: c.Refund, Percent: c.Percent, Until: until(c.Until), Then: make([]CancellationTerm, 0, len(c.Then)),
	}
	for _, t := range c.Then {
		p.Then = append(p.Then, CancellationTerm{Refund: t.Refund, Percent: t.Percent, Until: until(t.Until)})
	}
	return p
}

// until leaves out a moment that never comes.
func until(t time.Time) *domain.Instant {
	if t.IsZero() {
		return nil
	}
	return (*domain.Instant)(&t)
}
