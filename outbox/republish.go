package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Span is a half-open stretch of time, by when events were committed.
type Span struct {
	From time.Time `json:"from"` // included
	To   time.Time `json:"to"`   // excluded
}

// Republished counts what a Republish has sent so far.
type Republished struct {
	Published int `json:"published"` // acknowledged again
	Stored    int `json:"stored"`    // of them, those that the stream had lost, or no longer knew for repeats
}

// Republish sends the finished events of a span to the stream once more, oldest first, as the same bytes under the same
// ids: for a broker that has lost what it had acknowledged. Acknowledged is not yet on disk, which is why rows stay. The
// stream drops what it has within its window; beyond that consumers see a repeat, which they drop by the event's id.
// Unfinished events are left to their own jobs. The provider is never touched.
//
// Its audit row is written first. It ends at the first trouble with the broker, with what it has done until then; it may
// be run again.
func Republish(
	ctx context.Context, pool *pgxpool.Pool, publisher Publisher, span Span, actor Actor, reason string,
) (Republished, error) {
	var done Republished
	if err := Demand(actor, reason); err != nil {
		return done, err
	}
	err := postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		return record(ctx, tx, audit{
			id: uuid.Must(uuid.NewV7()), actor: actor, action: "republish", reason: reason, before: span, after: span,
		})
	})
	if err != nil {
		return done, err
	}
	for after := (Effect{CreatedAt: span.From}); ; {
		events, err := finishedEvents(ctx, pool, after, span.To)
		if err != nil || len(events) == 0 {
			return done, err
		}
		for _, e := range events {
			m, err := message(e)
			if err != nil {
				return done, fmt.Errorf("republish event %s: %w", e.ID, err)
			}
			ack, err := publisher.Publish(ctx, m)
			if err != nil {
				return done, fmt.Errorf("republish event %s: %w", e.ID, err)
			}
			if err := renewAck(ctx, pool, e.ID, ack); err != nil {
				return done, err
			}
			done.Published++
			if !ack.Duplicate {
				done.Stored++
			}
		}
		after = events[len(events)-1]
	}
}

// Republishable returns nil, or a *RefusedError that says why an effect cannot be republished, and what to do instead.
func Republishable(e Effect) error {
	no := func(code Refusal, format string, args ...any) error {
		return &RefusedError{Code: code, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case e.Kind != domain.EffectPublish:
		return no(RefusedInapplicable, "only an event can be republished, and this is a %s", e.Kind)
	case e.Status == domain.EffectDone:
		return nil
	case e.Status == domain.EffectParked:
		return no(RefusedInapplicable, "the stream never had it, and it is parked: replay it, or discard it")
	case e.Status.Finished():
		return no(RefusedFinished, "it is %s, and was never told", e.Status)
	default:
		return no(RefusedInapplicable, "the stream has not acknowledged it yet, and it is on its way: replay it, if it takes too long")
	}
}

// PublishAgain sends an event to the stream once more, as the same bytes under the same id, for RepublishIn to record. Of any trouble
// with the broker nobody knows whether the stream has it now.
func PublishAgain(ctx context.Context, publisher Publisher, e Effect) (Ack, error) {
	if err := Republishable(e); err != nil {
		return Ack{}, err
	}
	m, err := message(e)
	if err != nil {
		return Ack{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return publisher.Publish(ctx, m)
}

// RepublishIn records in the caller's transaction that the stream has acknowledged an event once more, which was seen before. It
// writes nothing if it refuses.
func RepublishIn(ctx context.Context, tx pgx.Tx, id domain.EffectID, as Seen, ack Ack, by Signature) (before, after Effect, err error) {
	if before, err = LockSeen(ctx, tx, id, as); err != nil {
		return before, after, err
	}
	if err = Republishable(before); err != nil {
		return before, after, err
	}
	if err = renewAck(ctx, tx, id, ack); err != nil {
		return before, after, err
	}
	if after, err = Load(ctx, tx, id); err != nil {
		return before, after, err
	}
	return before, after, record(ctx, tx, audit{
		id: by.ID, actor: by.Actor, action: "republish", effect: &id, booking: &before.BookingID, reason: by.Reason,
		before: SnapshotOf(before), after: SnapshotOf(after),
	})
}

// finishedEvents reads a page of acknowledged events that were committed before to, from after's place on.
func finishedEvents(ctx context.Context, pool *pgxpool.Pool, after Effect, to time.Time) ([]Effect, error) {
	rows, err := pool.Query(ctx, `
		SELECT `+effectColumns+`
		  FROM outbox o
		 WHERE o.kind = 'publish' AND o.status = 'done'
		   AND (o.created_at, o.id) > ($1, $2) AND o.created_at >= $1 AND o.created_at < $3
		 ORDER BY o.created_at, o.id
		 LIMIT 500`, after.CreatedAt, after.ID, to)
	if err != nil {
		return nil, fmt.Errorf("read the events to republish: %w", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByName[Effect])
	if err != nil {
		return nil, fmt.Errorf("read the events to republish: %w", err)
	}
	return events, nil
}

// renewAck writes down where the stream keeps the event now.
func renewAck(ctx context.Context, q postgres.Querier, id domain.EffectID, ack Ack) error {
	_, err := q.Exec(ctx, `
		UPDATE outbox SET stream = $2, stream_sequence = $3, duplicate = $4 WHERE id = $1 AND status = 'done'`,
		id, ack.Stream, int64(ack.Sequence), ack.Duplicate) //nolint:gosec // a stream has fewer than 2^63 messages
	if err != nil {
		return fmt.Errorf("record the acknowledgement of event %s: %w", id, err)
	}
	return nil
}
