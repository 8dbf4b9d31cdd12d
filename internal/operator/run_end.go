package operator

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// EndRun ends a run before all of it is done: its effects that wait are left out, and nothing is done to them. An effect that somebody
// is at now is not: what becomes of it is written down, and then the run is finished. Of a run that is finished or ended already nothing
// changes. It returns the run as it stands then.
func (d *Desk) EndRun(ctx context.Context, id uuid.UUID, by outbox.Actor, reason string) (Run, error) {
	if err := outbox.Demand(by, reason); err != nil {
		return Run{}, err
	}
	var run Run
	err := postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		ended, err := tx.Exec(ctx, `
			UPDATE operator_runs SET ended_by = $2, ended_reason = $3 WHERE id = $1 AND finished_at IS NULL AND ended_by IS NULL`, id, by, reason)
		if err != nil {
			return fmt.Errorf("end run %s: %w", id, err)
		}
		before, err := oneRun(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := leaveOut(ctx, tx, id); err != nil {
			return err
		}
		if err := finish(ctx, tx, id); err != nil {
			return err
		}
		if run, err = oneRun(ctx, tx, id); err != nil || ended.RowsAffected() == 0 {
			return err
		}
		before.EndedBy, before.EndedReason = "", ""
		return outbox.RecordAct(ctx, tx, outbox.Act{Actor: by, Action: "end_run", Reason: reason, Before: before, After: run})
	})
	if err != nil {
		return Run{}, busy(err)
	}
	return run, nil
}

// leaveOut gives up what waits of a run that was ended, and that nobody is at.
func leaveOut(ctx context.Context, q postgres.Querier, id uuid.UUID) error {
	_, err := q.Exec(ctx, `
		UPDATE operator_run_items i
		   SET status = 'left_out', claimed_until = NULL,
		       said = 'nothing was done: ' || r.ended_by || ' ended the run: ' || r.ended_reason || coalesce('; tried before: ' || i.said, '')
		  FROM operator_runs r
		 WHERE r.id = $1 AND r.ended_by IS NOT NULL AND i.run_id = r.id AND i.status = 'waiting'
		   AND (i.claimed_until IS NULL OR i.claimed_until < clock_timestamp())`, id)
	if err != nil {
		return fmt.Errorf("leave out the rest of run %s: %w", id, err)
	}
	return nil
}

// finish ends a run of which nothing waits. Whoever does the last of it sees that.
func finish(ctx context.Context, q postgres.Querier, id uuid.UUID) error {
	_, err := q.Exec(ctx, `
		UPDATE operator_runs r SET finished_at = clock_timestamp()
		 WHERE id = $1 AND finished_at IS NULL
		   AND NOT EXISTS (SELECT FROM operator_run_items i WHERE i.run_id = r.id AND i.status = 'waiting')`, id)
	if err != nil {
		return fmt.Errorf("finish run %s: %w", id, err)
	}
	return nil
}
