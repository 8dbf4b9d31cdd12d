package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Replayed is what became of one of many effects.
type Replayed struct {
	EffectID domain.EffectID
	Result   ReplayResult
	Refused  *RefusedError
}

// ReplayMany is Replay of many effects as they stand, in the caller's transaction and a few statements, each with its row in
// operator_actions. may refuses one more than their states do. The effects are locked in the order of their ids, so that two who do
// this do not wait for each other in a circle.
func ReplayMany(
	ctx context.Context, tx pgx.Tx, ids []domain.EffectID, actor Actor, reason string, may func(all []Effect) (map[domain.EffectID]*RefusedError, error),
) ([]Replayed, error) {
	if err := Demand(actor, reason); err != nil {
		return nil, err
	}
	locked, err := many(ctx, tx, ids, ` ORDER BY o.id FOR UPDATE`)
	if err != nil {
		return nil, err
	}
	forbidden, err := may(locked)
	if err != nil {
		return nil, err
	}
	var all []Replayed
	var ready []Effect
	for _, e := range locked {
		refused := forbidden[e.ID]
		if _, err := Replayable(e); err != nil && !errors.As(err, &refused) {
			return nil, err
		}
		if refused != nil {
			all = append(all, Replayed{EffectID: e.ID, Refused: refused})
			continue
		}
		ready = append(ready, e)
	}
	done, err := replayAll(ctx, tx, ready, func(Effect) Signature {
		return Signature{ID: uuid.Must(uuid.NewV7()), Actor: actor, Reason: reason}
	})
	for _, result := range done {
		all = append(all, Replayed{EffectID: result.EffectID, Result: result})
	}
	return all, err
}

// replayAll does the replays of locked effects that allow it, and records each.
func replayAll(ctx context.Context, tx pgx.Tx, effects []Effect, sign func(Effect) Signature) ([]ReplayResult, error) {
	var jobs []*int64
	var requeued, doubts []uuid.UUID
	for _, e := range effects {
		if e.Status == domain.EffectInDoubt {
			doubts = append(doubts, e.ID.UUID)
			continue
		}
		requeued, jobs = append(requeued, e.ID.UUID), append(jobs, e.JobID)
	}
	var after []Effect
	var b pgx.Batch
	// The old job, if it still waits, is cancelled, so that replaying often does not pile up jobs; one that runs is left alone.
	postgres.Exec(&b, "cancel old jobs", `
		UPDATE river_job SET state = 'cancelled', finalized_at = now()
		 WHERE id = ANY ($1) AND state IN ('available', 'pending', 'retryable', 'scheduled')`, jobs)
	postgres.Exec(&b, "replay effects", `
		UPDATE outbox
		   SET status = 'pending', attempts = 0, due_at = clock_timestamp(), job_id = enqueue_job(kind, id, now())
		 WHERE id = ANY ($1) AND status IN ('pending', 'parked')`, requeued)
	postgres.Exec(&b, "replay doubts", `
		UPDATE outbox SET due_at = clock_timestamp() WHERE id = ANY ($1) AND status = 'in_doubt'`, doubts)
	postgres.All(&b, "read what was replayed", &after,
		`SELECT `+effectColumns+` FROM outbox o WHERE o.id = ANY ($1)`, append(requeued, doubts...))
	pauses := map[domain.EffectKind]bool{}
	b.Queue(`SELECT kind FROM outbox_pauses`).Query(func(rows pgx.Rows) error {
		kinds, err := pgx.CollectRows(rows, pgx.RowTo[domain.EffectKind])
		for _, kind := range kinds {
			pauses[kind] = true
		}
		return err
	})
	if err := postgres.Send(ctx, tx, &b); err != nil {
		return nil, err
	}
	is := make(map[domain.EffectID]Effect, len(after))
	for _, e := range after {
		is[e.ID] = e
	}
	results := make([]ReplayResult, 0, len(effects))
	audits := make([]audit, 0, len(effects))
	for _, e := range effects {
		by, action := sign(e), Requeued
		if e.Status == domain.EffectInDoubt {
			action = ReconcileNow
		}
		result := ReplayResult{
			ActionID: by.ID, EffectID: e.ID, BookingID: e.BookingID, Kind: e.Kind, Action: action, Paused: pauses[e.Kind],
			Before: SnapshotOf(e), After: SnapshotOf(is[e.ID]),
		}
		results = append(results, result)
		audits = append(audits, audit{
			id: by.ID, actor: by.Actor, action: "replay", effect: &result.EffectID, booking: &result.BookingID, reason: by.Reason,
			before: result.Before, after: result.After,
		})
	}
	return results, recordAll(ctx, tx, audits)
}

// recordAll writes many acts' rows in one statement.
func recordAll(ctx context.Context, tx pgx.Tx, audits []audit) error {
	var ids, effects, bookings []uuid.UUID
	var actors, actions, reasons, befores, afters []string
	for _, a := range audits {
		before, err := json.Marshal(a.before)
		if err != nil {
			return fmt.Errorf("encode the state before: %w", err)
		}
		after, err := json.Marshal(a.after)
		if err != nil {
			return fmt.Errorf("encode the state after: %w", err)
		}
		ids, effects, bookings = append(ids, a.id), append(effects, a.effect.UUID), append(bookings, a.booking.UUID)
		actors, actions, reasons = append(actors, string(a.actor)), append(actions, a.action), append(reasons, a.reason)
		befores, afters = append(befores, string(before)), append(afters, string(after))
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO operator_actions (id, actor, action, effect_id, booking_id, reason, before, after)
		SELECT id, actor, action, effect_id, booking_id, reason, before, after
		  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[]::jsonb[], $8::text[]::jsonb[])
		    AS acts (id, actor, action, effect_id, booking_id, reason, before, after)`,
		ids, actors, actions, effects, bookings, reasons, befores, afters)
	if err != nil {
		return fmt.Errorf("record what was done: %w", err)
	}
	return nil
}

// many reads effects by their ids; how, is the rest of the statement.
func many(ctx context.Context, q postgres.Querier, ids []domain.EffectID, how string) ([]Effect, error) {
	raw := make([]uuid.UUID, 0, len(ids))
	for _, id := range ids {
		raw = append(raw, id.UUID)
	}
	rows, err := q.Query(ctx, `SELECT `+effectColumns+` FROM outbox o WHERE o.id = ANY ($1)`+how, raw)
	if err != nil {
		return nil, fmt.Errorf("read effects: %w", err)
	}
	effects, err := pgx.CollectRows(rows, pgx.RowToStructByName[Effect])
	if err != nil {
		return nil, fmt.Errorf("read effects: %w", err)
	}
	return effects, nil
}
