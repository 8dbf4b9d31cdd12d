package bookings

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Story is what our tables tell of a booking, whoever's it is, and of the keys under which it was made and asked about. It
// holds nothing personal, and of a key only how it begins.
type Story struct {
	Booking StoryBooking
	Keys    []StoryKey // newest first, at most so many as were asked for
}

// StoryBooking is the booking.
type StoryBooking struct {
	ID                uuid.UUID
	ClientID          uuid.UUID
	Resource          string // its name
	Status            domain.BookingStatus
	EndingReason      domain.EndingReason
	Amount            int64
	Currency          string
	StartsAt          time.Time
	EndsAt            time.Time
	HoldExpiresAt     time.Time
	CancelRequestedAt *time.Time
	CancelRefund      int64
	CreatedAt         time.Time
	EndedAt           *time.Time
}

// StoryKey is a keyed request about the booking.
type StoryKey struct {
	Method    string
	Route     string
	Begins    string // the key's first eight characters
	Whole     bool   // and that is all of it
	Status    int    // of the stored answer
	CreatedAt time.Time
}

// Tell queues the reading of a booking's story into s. Without such a booking s stays as it is.
func Tell(b *pgx.Batch, id domain.BookingID, most int, s *Story) {
	postgres.One(b, "read a booking's story", func(row StoryBooking) { s.Booking = row }, `
		SELECT b.id, b.client_id, coalesce(r.name, '') AS resource, b.status, coalesce(b.ending_reason, '') AS ending_reason, b.amount, b.currency,
		       lower(b.during) AS starts_at, upper(b.during) AS ends_at, b.hold_expires_at, b.cancel_requested_at,
		       coalesce(b.cancel_refund, 0) AS cancel_refund, b.created_at, b.ended_at
		  FROM bookings b LEFT JOIN resources r ON r.id = b.resource_id
		 WHERE b.id = $1`, id)
	postgres.All(b, "read the keys of a booking", &s.Keys, `
		SELECT method, route, left(key, 8) AS begins, char_length(key) <= 8 AS whole, coalesce(response_status, 0) AS status, created_at
		  FROM idempotency_keys
		 WHERE booking_id = $1
		 ORDER BY created_at DESC LIMIT $2`, id, most)
}
