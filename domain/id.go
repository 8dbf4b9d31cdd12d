package domain

import (
	"fmt"

	"github.com/google/uuid"
)

// The ids are distinct types, so that a payment's id cannot be passed where a booking's is meant. Each is a UUIDv7,
// made before the transaction that stores it, and prints, parses, and travels through JSON and SQL as its text.
type (
	// BookingID identifies a booking.
	BookingID struct{ uuid.UUID }
	// PaymentID identifies the one payment of a booking; provider keys derive from it.
	PaymentID struct{ uuid.UUID }
	// RefundID identifies a refund; its provider keys derive from it.
	RefundID struct{ uuid.UUID }
	// EffectID identifies an outbox row. For an event it is the event's id, too.
	EffectID struct{ uuid.UUID }
	// ResourceID identifies something that can be booked.
	ResourceID struct{ uuid.UUID }
	// ClientID identifies an authenticated API client, the owner of its bookings and keys.
	ClientID struct{ uuid.UUID }
)

// NewID makes an id of any of the types above: domain.NewID[domain.BookingID]().
func NewID[T ~struct{ uuid.UUID }]() T {
	return T{uuid.Must(uuid.NewV7())} // fails only where the system has no randomness, and then nothing else works
}

// ParseID reads an id from its canonical text.
func ParseID[T ~struct{ uuid.UUID }](s string) (T, error) {
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s {
		return T{}, fmt.Errorf("%q is not an id: want a lower-case UUID", s)
	}
	return T{id}, nil
}
