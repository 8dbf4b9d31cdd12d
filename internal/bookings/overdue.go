package bookings

import (
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
)

// Overdue is what ought to have moved on by itself, by the database's clock. Ages are in seconds, 0 if there is none.
type Overdue struct {
	Held         int64   // bookings that are held although their hold is over
	OldestHeld   float64 // since the end of its hold
	Ending       int64   // bookings that have been ending for more than a minute: the provider has proved nothing yet
	OldestEnding float64 // since it began to end, also if that is less than a minute ago
}

// ReadOverdue queues the reading of it. Each half has an index of its own, which holds only what is held or ending.
func ReadOverdue(b *pgx.Batch, into *Overdue) {
	postgres.One(b, "read what is overdue", func(row Overdue) { *into = row }, overdue)
}

const overdue = `
	SELECT held.n AS held, held.age AS oldest_held, ending.n AS ending, ending.age AS oldest_ending
	  FROM (SELECT count(*) AS n,
	               coalesce(extract(epoch FROM clock_timestamp() - min(hold_expires_at)), 0)::float8 AS age
	          FROM bookings WHERE status = 'held' AND hold_expires_at < statement_timestamp()) AS held,
	       (SELECT count(*) FILTER (WHERE updated_at < statement_timestamp() - interval '1 minute') AS n,
	               greatest(coalesce(extract(epoch FROM clock_timestamp() - min(updated_at)), 0), 0)::float8 AS age
	          FROM bookings WHERE status = 'ending') AS ending`

// ReadHoldsEnding queues the counting of the holds that end within a time, up to a number.
func ReadHoldsEnding(b *pgx.Batch, within time.Duration, most int, into *int64) {
	postgres.One(b, "count the holds that end", func(row struct{ Count int64 }) { *into = row.Count }, `
		SELECT count(*) FROM (
		    SELECT FROM bookings WHERE status = 'held' AND hold_expires_at < clock_timestamp() + $1::interval LIMIT $2) AS b`, within, most)
}
