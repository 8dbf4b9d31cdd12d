package operator

import (
	"context"

	"holdfast/domain"
)

// Timeline is all that has happened to a booking, from our own tables: River forgets.
type Timeline struct {
	Booking TimelineBooking `json:"booking"`
	Entries []Entry         `json:"entries"` // oldest first
}

// TimelineBooking is the booking itself. It holds nothing personal.
type TimelineBooking struct {
	ID            domain.BookingID     `json:"id"`
	Client        string               `json:"client"`
	Resource      string               `json:"resource"`
	Status        domain.BookingStatus `json:"status"`
	EndingReason  domain.EndingReason  `json:"ending_reason,omitempty"`
	PaymentStatus domain.PaymentStatus `json:"payment_status"`
	Total         domain.Money         `json:"total"`
	Start         domain.Instant       `json:"start"`
	End           domain.Instant       `json:"end"`
	HoldExpiresAt domain.Instant       `json:"hold_expires_at"`
}

// Entry is one thing that happened.
type Entry struct {
	At     domain.Instant `json:"at"`
	What   string         `json:"what"`  // key, booking, effect, send, intent, charge, refund, dispute, webhook, event, act
	Title  string         `json:"title"` // such as "confirm sent"
	Detail string         `json:"detail,omitempty"`
	ID     string         `json:"id,omitempty"` // of the thing: an effect's, the provider's
	Facts  []Fact         `json:"facts"`
}

// Fact is a detail of an entry: a key, a request id, whether it was replayed.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Timeline reads it as of one moment. It returns domain.ErrNotFound if there is no such booking.
func (d *Desk) Timeline(ctx context.Context, id domain.BookingID) (Timeline, error) {
	return Timeline{}, errNotBuilt
}
