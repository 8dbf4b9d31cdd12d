package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Cancellation is a customer's cancellation, as it was decided when it was asked for.
type Cancellation struct {
	RequestedAt time.Time `json:"requested_at"`
	Refund      Money     `json:"refund"` // what goes back of the total; while the booking is ending: if it turns out to be paid
}

// CancellationPreview is what cancelling a booking would do at the moment AsOf.
type CancellationPreview struct {
	BookingID string             `json:"booking_id"`
	AsOf      time.Time          `json:"as_of"`
	Outcome   CancelOutcome      `json:"outcome"`
	Refund    Money              `json:"refund"`  // what goes back of the total, if it is paid; send it as the expected refund
	Percent   int                `json:"percent"` // of the total
	Until     *time.Time         `json:"until"`   // the last moment at which this holds; nil: for good
	Then      []CancellationTerm `json:"then"`    // what follows, each on the one before it
}

// CancellationTerm is what cancelling gives back later on.
type CancellationTerm struct {
	Refund  Money      `json:"refund"`
	Percent int        `json:"percent"`
	Until   *time.Time `json:"until"` // nil: for good
}

// CancelOutcome is what cancelling does to a booking.
type CancelOutcome string

// Every outcome.
const (
	CancelNow       CancelOutcome = "cancelled"    // over at once, and the slot is free
	CancelEnding    CancelOutcome = "ending"       // the slot stays taken until the provider has proved what became of the money
	CancelUnchanged CancelOutcome = "unchanged"    // it is over, or being cancelled, already
	CancelTooLate   CancelOutcome = "booking_over" // refused: it is paid, and its end has passed
)

// PreviewCancellation tells what cancelling a booking of this client now would do. It changes and promises nothing.
func (c *Client) PreviewCancellation(ctx context.Context, id string) (CancellationPreview, error) {
	var p CancellationPreview
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: "/v1/bookings/" + url.PathEscape(id) + "/cancellation", want: http.StatusOK,
		read: read(&p, func(p *CancellationPreview) bool { return p.BookingID != "" && p.Outcome != "" }),
	})
	if err != nil {
		return CancellationPreview{}, fmt.Errorf("preview cancellation: %w", err)
	}
	return p, nil
}

// CancelBooking cancels a booking under a key; an empty one is replaced by a new one. A paid booking is over at once, and what
// its refund policy gives back goes back by itself. The booking that it returns is over, or ending: then the provider has yet
// to prove what became of the money, and if it was taken, the policy holds as of now.
//
// expected is the refund that was shown to the customer, as PreviewCancellation tells it; nil takes any. Of the errors what
// CreateBooking says holds. On refund_changed and booking_over nothing was cancelled, and the key is spent.
func (c *Client) CancelBooking(ctx context.Context, key Key, id string, expected *Money) (Created, error) {
	body, err := json.Marshal(struct {
		ExpectedRefund *Money `json:"expected_refund,omitempty"`
	}{expected})
	if err != nil {
		return Created{}, fmt.Errorf("cancel booking: nothing was sent: %w", err)
	}
	return c.decide(ctx, "cancel booking", key, call{
		path: "/v1/bookings/" + url.PathEscape(id) + "/cancel", body: body, want: http.StatusOK, orWant: http.StatusAccepted,
	})
}
