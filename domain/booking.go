package domain

import (
	"slices"
	"time"
)

// BookingStatus is where a booking stands.
type BookingStatus string

// The states of a booking: held → confirmed; held → ending → expired, cancelled or failed; ending → confirmed when the
// fence finds that the money was taken; confirmed → cancelled.
const (
	BookingHeld      BookingStatus = "held"
	BookingConfirmed BookingStatus = "confirmed"
	BookingEnding    BookingStatus = "ending" // the slot is still taken until the provider proves that no money can move
	BookingExpired   BookingStatus = "expired"
	BookingCancelled BookingStatus = "cancelled"
	BookingFailed    BookingStatus = "failed"
)

// BookingStatuses lists every state.
func BookingStatuses() []BookingStatus {
	return []BookingStatus{BookingHeld, BookingConfirmed, BookingEnding, BookingExpired, BookingCancelled, BookingFailed}
}

// Ended tells whether the booking is over: its slot is free.
func (s BookingStatus) Ended() bool {
	return slices.Contains([]BookingStatus{BookingExpired, BookingCancelled, BookingFailed}, s)
}

// Final tells whether the booking stays as it is by itself: paid for, or over. Somebody may still cancel a paid one.
func (s BookingStatus) Final() bool { return s == BookingConfirmed || s.Ended() }

// EndingReason is why a booking is ending, or has ended.
type EndingReason string

// The reasons. Each leads to one end.
const (
	EndExpire EndingReason = "expire" // the hold is over
	EndCancel EndingReason = "cancel" // the customer asked
	EndRefuse EndingReason = "refuse" // the provider refused for a reason that no other card cures
	EndDoubt  EndingReason = "doubt"  // the outcome of a send cannot be learned in any other way
)

// EndingReasons lists every reason.
func EndingReasons() []EndingReason {
	return []EndingReason{EndExpire, EndCancel, EndRefuse, EndDoubt}
}

// End is the state that a booking ends in for this reason.
func (r EndingReason) End() BookingStatus {
	switch r {
	case EndExpire:
		return BookingExpired
	case EndCancel:
		return BookingCancelled
	case EndRefuse, EndDoubt:
		return BookingFailed
	default:
		return BookingFailed
	}
}

// Booking is a customer's claim on places of a resource for a time.
type Booking struct {
	ID            BookingID
	ClientID      ClientID
	ResourceID    ResourceID
	Start         time.Time // included
	End           time.Time // excluded
	Quantity      int
	Total         Money
	CustomerName  string
	CustomerEmail string
	Metadata      map[string]string
	Status        BookingStatus
	EndingReason  EndingReason  // empty unless ending or ended
	HoldExpiresAt time.Time     // the earliest release
	EventSeq      int64         // of its newest event
	RefundPolicy  RefundPolicy  // the resource's when it was accepted
	Cancellation  *Cancellation // nil: the customer has not asked for it
	CreatedAt     time.Time
	EndedAt       *time.Time
}

// Cancellation is a customer's wish to cancel, as of the moment at which it was first uttered.
type Cancellation struct {
	RequestedAt time.Time
	Refund      Money // what goes back of the total, if it was or is paid
}

// Resource is something that can be booked.
type Resource struct {
	ID          ResourceID
	Name        string
	TimeZone    string // IANA
	Places      int
	UnitMinutes int
	Price       Money // for one place and one unit
	Hold        time.Duration
	Refunds     RefundPolicy // of cancelled bookings
}
