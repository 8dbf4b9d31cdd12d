package domain

import "time"

// EventType is what happened to a booking, in the past tense. The subject of an event is "bookings.v1." and its type.
type EventType string

// The events.
const (
	EventHeld            EventType = "held"
	EventActionRequired  EventType = "action_required"
	EventPaymentDeclined EventType = "payment_declined"
	EventConfirmed       EventType = "confirmed"
	EventExpired         EventType = "expired"
	EventCancelled       EventType = "cancelled"
	EventFailed          EventType = "failed"
	EventRefunded        EventType = "refunded"      // the provider says that the money went back, or a part of it
	EventRefundFailed    EventType = "refund_failed" // the provider says that it did not, maybe days after it said that it did
	EventDisputed        EventType = "disputed"      // a cardholder's bank disputes the money, or such a dispute has moved on
	EventSkipped         EventType = "skipped"       // a person has discarded the event that had this place in the booking's order
)

// EventData is what every event tells of its booking, as it stood when the event was committed. It holds no personal
// data, no client secret and no token.
type EventData struct {
	BookingID     BookingID     `json:"booking_id"`
	PaymentID     PaymentID     `json:"payment_id"`
	ResourceID    ResourceID    `json:"resource_id"`
	Status        BookingStatus `json:"status"`
	EndingReason  EndingReason  `json:"ending_reason,omitempty"`
	PaymentStatus PaymentStatus `json:"payment_status"`
	DeclineCode   string        `json:"decline_code,omitempty"`
	Start         Instant       `json:"start"`
	End           Instant       `json:"end"`
	Quantity      int           `json:"quantity"`
	Total         Money         `json:"total"`
	HoldExpiresAt Instant       `json:"hold_expires_at"`
	Refund        *RefundData   `json:"refund,omitempty"`  // of refunded and refund_failed alone
	Dispute       *DisputeData  `json:"dispute,omitempty"` // of disputed alone
}

// RefundData is what an event tells of a refund.
type RefundData struct {
	RefundID    RefundID `json:"refund_id"`
	Amount      Money    `json:"amount"`
	Reason      string   `json:"reason"`                 // late_success, cancellation, requested, dashboard
	FailureCode string   `json:"failure_code,omitempty"` // the provider's, of refund_failed
	Refunded    Money    `json:"refunded"`               // of the booking in all, this refund counted or no more
}

// DisputeData is what an event tells of a dispute. Its words are the provider's.
type DisputeData struct {
	DisputeID string        `json:"dispute_id"` // the provider's
	Status    DisputeStatus `json:"status"`
	Amount    Money         `json:"amount"`
	Reason    string        `json:"reason"`
}

// SkippedData is what a skipped event tells, and all that it tells: of the event that will never come.
type SkippedData struct {
	BookingID BookingID `json:"booking_id"`
	EventID   EffectID  `json:"event_id"`
	EventType EventType `json:"event_type"`
}

// Instant is a moment as it leaves the system: RFC 3339, UTC, always microseconds, so that equal instants are equal
// bytes whether Go or PostgreSQL wrote them.
type Instant time.Time

const instantLayout = "2006-01-02T15:04:05.000000Z"

// MarshalText writes the instant in UTC.
func (i Instant) MarshalText() ([]byte, error) {
	return []byte(time.Time(i).UTC().Format(instantLayout)), nil
}

// UnmarshalText reads any RFC 3339 time.
func (i *Instant) UnmarshalText(b []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return err
	}
	*i = Instant(t.UTC())
	return nil
}

// String shows the instant in UTC.
func (i Instant) String() string { return time.Time(i).UTC().Format(instantLayout) }
