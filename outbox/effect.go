package outbox

import (
	"encoding/json"
	"time"

	"holdfast/domain"
)

// Effect is one row of the outbox: something that must happen because it was decided.
type Effect struct {
	ID         domain.EffectID     `json:"id"` // for an event: the event's id, too
	BookingID  domain.BookingID    `json:"booking_id"`
	Kind       domain.EffectKind   `json:"kind"`
	Status     domain.EffectStatus `json:"status"`
	Attempts   int                 `json:"attempts"`
	LastError  string              `json:"last_error,omitempty"`
	DueAt      time.Time           `json:"due_at"` // not before this; for a doubt, when it is looked at next
	CreatedAt  time.Time           `json:"created_at"`
	FinishedAt *time.Time          `json:"finished_at,omitempty"`
	JobID      *int64              `json:"job_id,omitempty"` // the River job that carries it; River may have deleted it

	// Of an event only.
	EventType      domain.EventType `json:"event_type,omitempty"`
	EventSeq       int64            `json:"event_seq,omitempty"`
	Payload        json.RawMessage  `json:"payload,omitempty"`
	Stream         string           `json:"stream,omitempty"`
	StreamSequence int64            `json:"stream_sequence,omitempty"`
	Duplicate      bool             `json:"duplicate,omitempty"` // the stream had it already
}

// effectColumns are the columns of an Effect, for pgx.RowToStructByName.
const effectColumns = `o.id, o.booking_id, o.kind, o.status, o.attempts, coalesce(o.last_error, '') AS last_error,
	o.due_at, o.created_at, o.finished_at, o.job_id,
	coalesce(o.event_type, '') AS event_type, coalesce(o.event_seq, 0) AS event_seq, o.payload,
	coalesce(o.stream, '') AS stream, coalesce(o.stream_sequence, 0) AS stream_sequence,
	coalesce(o.duplicate, false) AS duplicate`
