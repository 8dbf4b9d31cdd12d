package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
)

// Happened is an event of one booking, as whoever follows the booking needs it.
type Happened struct {
	EventSeq  int64
	EventType domain.EventType
}

// Events reads what is committed, whether the stream has it yet or not. It changes nothing.
type Events struct{ pool *pgxpool.Pool }

// NewEvents makes a reader of events.
func NewEvents(pool *pgxpool.Pool) *Events { return &Events{pool: pool} }

// After reads what has happened to a booking after one of its events, in order. None turns up in between later: a
// booking's events are committed under its lock; the marker in the place of a discarded event is told to whoever has not come so far.
func (e *Events) After(ctx context.Context, booking domain.BookingID, seq int64) ([]Happened, error) {
	rows, err := e.pool.Query(ctx, `
		SELECT event_seq, event_type FROM outbox WHERE booking_id = $1 AND event_seq > $2 AND status <> 'discarded' ORDER BY event_seq`, booking, seq)
	if err != nil {
		return nil, fmt.Errorf("read the events of booking %s: %w", booking, err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByName[Happened])
	if err != nil {
		return nil, fmt.Errorf("read the events of booking %s: %w", booking, err)
	}
	return events, nil
}

// Newest tells the number of the newest event of each of the bookings, at the cost of one statement and, for each, one
// look into an index. A booking without events is left out.
func (e *Events) Newest(ctx context.Context, of []domain.BookingID) (map[domain.BookingID]int64, error) {
	ids := make([]uuid.UUID, 0, len(of))
	for _, id := range of {
		ids = append(ids, id.UUID)
	}
	rows, err := e.pool.Query(ctx, `
		SELECT b.id, e.event_seq
		  FROM unnest($1::uuid[]) AS b (id),
		       LATERAL (SELECT event_seq FROM outbox WHERE booking_id = b.id AND event_seq IS NOT NULL AND status <> 'discarded'
		                 ORDER BY event_seq DESC LIMIT 1) AS e`, ids)
	if err != nil {
		return nil, fmt.Errorf("read the newest events: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Booking uuid.UUID
		Seq     int64
	}])
	if err != nil {
		return nil, fmt.Errorf("read the newest events: %w", err)
	}
	newest := make(map[domain.BookingID]int64, len(found))
	for _, row := range found {
		newest[domain.BookingID{UUID: row.Booking}] = row.Seq
	}
	return newest, nil
}
