package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
)

// StuckEvent is a receipt that needs time or a person.
type StuckEvent struct {
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Status     string    `json:"status"`
	IntentID   string    `json:"intent_id"`
	BookingID  string    `json:"booking_id"`
	Why        string    `json:"why"`
	ReceivedAt time.Time `json:"received_at"`
	AgeSeconds float64   `json:"age_seconds"`
}

// String is a line for people.
func (e StuckEvent) String() string {
	return fmt.Sprintf("event %s (%s) of intent %s, %s since %s: %s", e.ID, e.Type, e.IntentID, e.Status,
		time.Duration(e.AgeSeconds*float64(time.Second)).Round(time.Second), e.Why)
}

// stuckAfter is how long a receipt may wait before it is listed: longer than any transaction that it may wait for.
const stuckAfter = 10 * time.Minute

// StuckEvents lists the receipts that are parked, or have waited for more than ten minutes, oldest first.
func StuckEvents(ctx context.Context, q postgres.Querier, limit int) ([]StuckEvent, error) {
	rows, err := q.Query(ctx, `
		SELECT id, type, status, intent_id, booking_id, coalesce(last_error, '') AS why, received_at,
		       extract(epoch FROM clock_timestamp() - received_at)::float8 AS age_seconds
		  FROM provider_events
		 WHERE status = 'parked' OR status = 'pending' AND received_at < clock_timestamp() - $1::interval
		 ORDER BY received_at LIMIT $2`, stuckAfter, limit)
	if err != nil {
		return nil, fmt.Errorf("list stuck events: %w", err)
	}
	stuck, err := pgx.CollectRows(rows, pgx.RowToStructByName[StuckEvent])
	if err != nil {
		return nil, fmt.Errorf("list stuck events: %w", err)
	}
	return stuck, nil
}

// CountStuckEvents queues the counting of the receipts that StuckEvents would list, up to a number.
func CountStuckEvents(b *pgx.Batch, most int, into *int64) {
	postgres.One(b, "count stuck events", func(row struct{ Count int64 }) { *into = row.Count }, `
		SELECT (SELECT count(*) FROM (SELECT FROM provider_events WHERE status = 'parked' LIMIT $2) AS e)
		     + (SELECT count(*) FROM (
		           SELECT FROM provider_events WHERE status = 'pending' AND received_at < clock_timestamp() - $1::interval LIMIT $2) AS e) AS count`,
		stuckAfter, most)
}
