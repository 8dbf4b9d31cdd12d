package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
)

// Gap is an event that the stream has acknowledged and does not have.
type Gap struct {
	EventID   uuid.UUID
	BookingID uuid.UUID
	Type      string
	CreatedAt time.Time
	Sequence  int64
	Why       string
}

// Gaps compares the events that were made in [from, to) and acknowledged with what the stream holds at the sequences that it gave them.
// What is older than the oldest event that the stream keeps is not looked for. An error means that nobody knows.
func (j *JetStream) Gaps(ctx context.Context, pool *pgxpool.Pool, from, to time.Time) ([]Gap, error) {
	stream, err := j.js.Stream(ctx, StreamName)
	if err != nil {
		return nil, fmt.Errorf("look at the stream %s: %w", StreamName, err)
	}
	state := stream.CachedInfo().State
	var gaps []Gap
	for last := uuid.Nil; ; {
		acknowledged, err := acknowledged(ctx, pool, from, to, last)
		if err != nil {
			return nil, err
		}
		for _, e := range acknowledged {
			last = e.EventID
			sequence := uint64(e.Sequence) //nolint:gosec // given by the stream
			switch {
			case sequence < state.FirstSeq:
				continue
			case sequence > state.LastSeq:
				e.Why = fmt.Sprintf("the stream has lost what came after %d", state.LastSeq)
			default:
				if e.Why, err = lookFor(ctx, stream, sequence, e.EventID); err != nil {
					return nil, err
				}
			}
			if e.Why != "" {
				gaps = append(gaps, e)
			}
		}
		if len(acknowledged) < gapsPage {
			return gaps, nil
		}
	}
}

const gapsPage = 1000

// lookFor tells why an event is not at its sequence; empty: it is.
func lookFor(ctx context.Context, stream jetstream.Stream, sequence uint64, id uuid.UUID) (why string, err error) {
	msg, err := stream.GetMsg(ctx, sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return fmt.Sprintf("the stream has nothing at %d", sequence), nil
	case err != nil:
		return "", fmt.Errorf("read the stream %s: %w", StreamName, err)
	case msg.Header.Get(jetstream.MsgIDHeader) != id.String():
		return fmt.Sprintf("the stream has another event at %d", sequence), nil
	}
	return "", nil
}

func acknowledged(ctx context.Context, pool *pgxpool.Pool, from, to time.Time, after uuid.UUID) ([]Gap, error) {
	rows, err := pool.Query(ctx, `
		SELECT id AS event_id, booking_id, event_type AS type, created_at, stream_sequence AS sequence, '' AS why FROM outbox
		 WHERE id > $3 AND kind = 'publish' AND status = 'done' AND created_at >= $1 AND created_at < $2 ORDER BY id LIMIT $4`, from, to, after, gapsPage)
	if err != nil {
		return nil, fmt.Errorf("read acknowledged events: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Gap])
	if err != nil {
		return nil, fmt.Errorf("read acknowledged events: %w", err)
	}
	return found, nil
}
