package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// claim writes the run's row, unless there is one of that id; it waits for whoever is writing it.
func (o RunOrder) claim(ctx context.Context, tx pgx.Tx) (fresh bool, err error) {
	filter, err := json.Marshal(filterOf(o.Filter))
	if err != nil {
		return false, fmt.Errorf("encode a filter: %w", err)
	}
	made, err := tx.Exec(ctx, `
		INSERT INTO operator_runs (id, act, filter, cap, actor, reason, total, more)
		VALUES ($1, $2, $3::text::jsonb, $4, $5, $6, 0, false)
		ON CONFLICT ON CONSTRAINT operator_runs_pkey DO NOTHING`, o.ID, o.Act, string(filter), o.Cap, o.By, o.Reason)
	if err != nil {
		return false, fmt.Errorf("start run %s: %w", o.ID, err)
	}
	return made.RowsAffected() == 1, nil
}

// writeItems writes down what a run is to be done to. One of nothing is finished.
func writeItems(ctx context.Context, tx pgx.Tx, run uuid.UUID, effects []outbox.Effect, more bool) error {
	ids := make([]uuid.UUID, 0, len(effects))
	for _, e := range effects {
		ids = append(ids, e.ID.UUID)
	}
	var b pgx.Batch
	postgres.Exec(&b, "write down the items of a run", `
		INSERT INTO operator_run_items (run_id, position, effect_id)
		SELECT $1, chosen.position, chosen.id FROM unnest($2::uuid[]) WITH ORDINALITY AS chosen (id, position)`, run, ids)
	postgres.Exec(&b, "write down how many", `
		UPDATE operator_runs SET total = $2, more = $3, finished_at = CASE WHEN $2 = 0 THEN clock_timestamp() END WHERE id = $1`,
		run, len(ids), more)
	return postgres.Send(ctx, tx, &b)
}

type runRow struct {
	ID         uuid.UUID
	Act        Act
	Filter     RunFilter
	Cap        int
	Actor      outbox.Actor
	Reason     string
	StartedAt  time.Time
	FinishedAt *time.Time
	Total      int
	Refused    int
	Failed     int
	LeftOut    int
	Waiting    int
	More       bool

	EndedBy     outbox.Actor
	EndedReason string
}

// readRuns reads runs; which, and in what order, is the rest of the statement.
func readRuns(ctx context.Context, q postgres.Querier, which string, args ...any) ([]Run, error) {
	rows, err := q.Query(ctx, `
		SELECT r.id, r.act, r.filter, r.cap, r.actor, r.reason, r.started_at, r.finished_at, r.total, r.more,
		       coalesce(r.ended_by, '') AS ended_by, coalesce(r.ended_reason, '') AS ended_reason,
		       (SELECT count(*) FROM operator_run_items i WHERE i.run_id = r.id AND i.status = 'refused') AS refused,
		       (SELECT count(*) FROM operator_run_items i WHERE i.run_id = r.id AND i.status = 'failed') AS failed,
		       (SELECT count(*) FROM operator_run_items i WHERE i.run_id = r.id AND i.status = 'left_out') AS left_out,
		       (SELECT count(*) FROM operator_run_items i WHERE i.run_id = r.id AND i.status = 'waiting') AS waiting
		  FROM operator_runs r `+which, args...)
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[runRow])
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	runs := make([]Run, 0, len(found))
	for _, r := range found {
		run := Run{
			ID: r.ID, Act: r.Act, Filter: r.Filter, By: r.Actor, Reason: r.Reason, StartedAt: domain.Instant(r.StartedAt), Total: r.Total,
			Done: r.Total - r.Refused - r.Failed - r.LeftOut - r.Waiting, Refused: r.Refused, Failed: r.Failed, LeftOut: r.LeftOut,
			Left: r.Waiting, More: r.More, EndedBy: r.EndedBy, EndedReason: r.EndedReason, cap: r.Cap,
		}
		if r.FinishedAt != nil {
			at := domain.Instant(*r.FinishedAt)
			run.FinishedAt = &at
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func oneRun(ctx context.Context, q postgres.Querier, id uuid.UUID) (Run, error) {
	runs, err := readRuns(ctx, q, `WHERE r.id = $1`, id)
	if err == nil && len(runs) == 0 {
		err = domain.ErrNotFound
	}
	if err != nil {
		return Run{}, err
	}
	return runs[0], nil
}
