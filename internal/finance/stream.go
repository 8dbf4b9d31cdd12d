package finance

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// Stream is the stream that events go to.
type Stream interface {
	// Gaps lists the acknowledged events of [from, to) that the stream does not have. An error means that nobody knows.
	Gaps(ctx context.Context, pool *pgxpool.Pool, from, to time.Time) ([]outbox.Gap, error)
}

// SweepStream compares what was published in a window with the stream. What it lacks is listed as an exception by the next matching, and
// is no longer once a sweep finds it there: republished under its own id, say.
func (d *Desk) SweepStream(ctx context.Context, stream Stream, w Window) error {
	gaps, err := stream.Gaps(ctx, d.pool, w.From, w.To)
	if err != nil {
		return err
	}
	return postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		postgres.Exec(b, "forget older sweeps", `DELETE FROM stream_gaps WHERE occurred_at >= $1 AND occurred_at < $2`, w.From, w.To)
		for _, g := range gaps {
			postgres.Exec(b, "note a gap in the stream", `
				INSERT INTO stream_gaps (event_id, booking_id, occurred_at, why) VALUES ($1, $2, $3, $4)
				    ON CONFLICT ON CONSTRAINT stream_gaps_pkey DO UPDATE SET why = $4`, g.EventID, g.BookingID, g.CreatedAt, g.Type+": "+g.Why)
		}
		return postgres.Send(ctx, tx, b)
	})
}
