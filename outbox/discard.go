package outbox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Discardable returns nil, or a *RefusedError that says why an effect's state does not let it be discarded. Whether money forbids it
// is package payments' to say.
func Discardable(e Effect) error {
	switch {
	case e.Status.Finished():
		return &RefusedError{Code: RefusedFinished, Reason: fmt.Sprintf("the %s is %s: there is nothing left to discard", e.Kind, e.Status)}
	case e.Status != domain.EffectParked:
		return &RefusedError{
			Code: RefusedInapplicable, Reason: fmt.Sprintf("only what is parked can be discarded; the %s is %s, and goes on by itself", e.Kind, e.Status),
		}
	default:
		return nil
	}
}

// Discard ends a parked effect for good, which the caller has locked (LockSeen): it will never happen. An event leaves its place in the
// booking's order to a marker of type skipped, which is published in its turn and lets the later events go on. The act's row in
// operator_actions is written with it.
func Discard(ctx context.Context, tx pgx.Tx, e Effect, by Signature) (before, after Effect, err error) {
	if err := Demand(by.Actor, by.Reason); err != nil {
		return e, after, err
	}
	if err := Discardable(e); err != nil {
		return e, after, err
	}
	var b pgx.Batch
	postgres.Exec(&b, "discard an effect", `
		UPDATE outbox SET status = 'discarded', finished_at = clock_timestamp() WHERE id = $1 AND status = 'parked'`, e.ID)
	if e.Kind == domain.EffectPublish {
		if err := appendSkipped(&b, e); err != nil {
			return e, after, err
		}
	}
	postgres.One(&b, "read what was discarded", func(row Effect) { after = row }, selectEffect, e.ID)
	if err := postgres.Send(ctx, tx, &b); err != nil {
		return e, after, err
	}
	if after.Status != domain.EffectDiscarded {
		return e, after, fmt.Errorf("discard effect %s: it is %s, although it was locked", e.ID, after.Status)
	}
	return e, after, record(ctx, tx, audit{
		id: by.ID, actor: by.Actor, action: "discard", effect: &e.ID, booking: &e.BookingID, reason: by.Reason,
		before: SnapshotOf(e), after: SnapshotOf(after),
	})
}

// appendSkipped queues the marker in the place of a discarded event. Nobody has published a later event yet: drains stop at what is
// parked, and from here on at the marker.
func appendSkipped(b *pgx.Batch, e Effect) error {
	payload, err := json.Marshal(domain.SkippedData{BookingID: e.BookingID, EventID: e.ID, EventType: e.EventType})
	if err != nil {
		return fmt.Errorf("encode the marker of event %s: %w", e.ID, err)
	}
	postgres.Exec(b, "append a marker", `
		INSERT INTO outbox (id, booking_id, kind, event_type, event_seq, payload, due_at, job_id, created_at)
		VALUES ($1, $2, 'publish', $3, $4, $5::text::jsonb, clock_timestamp(), enqueue_job('publish', $1, now()), clock_timestamp())`,
		domain.NewID[domain.EffectID](), e.BookingID, domain.EventSkipped, e.EventSeq, string(payload))
	return nil
}
