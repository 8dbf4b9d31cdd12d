package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// runBatch is how many replays of a run are one commit.
const runBatch = 200

// ContinueRun does the act to the next effects of a run, at most n, each once whoever continues it and however often: what is done
// to an effect and that it is done are one commit. Several may continue one run at once. It returns the run as it stands then, also
// with an error: what was done by then is done, and the run can be continued. An effect that somebody was at when their process died
// is left for a minute.
func (d *Desk) ContinueRun(ctx context.Context, id uuid.UUID, n int) (Run, error) {
	run, err := d.Run(ctx, id)
	if err != nil {
		return Run{}, err
	}
	step := d.doOne
	if run.Act == Replay {
		step = d.replayNext
	}
	var failed error
	for n > 0 && run.FinishedAt == nil && failed == nil {
		var did int
		if did, failed = step(ctx, run, min(n, runBatch)); did == 0 {
			break // nothing waits that nobody is at
		}
		n -= did
	}
	if run.FinishedAt == nil && failed == nil {
		failed = d.finish(ctx, id)
	}
	now, err := d.Run(context.WithoutCancel(ctx), id)
	if err != nil {
		return run, errors.Join(busy(failed), err)
	}
	return now, busy(failed)
}

// replayNext replays the next n effects in one transaction.
func (d *Desk) replayNext(ctx context.Context, run Run, n int) (did int, err error) {
	err = postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		items, err := nextItems(ctx, tx, run.ID, n)
		if err != nil || len(items) == 0 {
			return err
		}
		did = len(items)
		ids := make([]domain.EffectID, 0, len(items))
		for _, item := range items {
			ids = append(ids, item.EffectID)
		}
		done, err := outbox.ReplayMany(ctx, tx, ids, run.By, run.reason(), func(all []outbox.Effect) (map[domain.EffectID]*outbox.RefusedError, error) {
			return d.forbidden(ctx, tx, Replay, all)
		})
		if err != nil {
			return err
		}
		came := make(map[domain.EffectID]outbox.Replayed, len(done))
		for _, r := range done {
			came[r.EffectID] = r
		}
		for i := range items {
			r := came[items[i].EffectID]
			if items[i].Status = "refused"; r.Refused != nil {
				items[i].Said = r.Refused.Reason
				continue
			}
			items[i].Status, items[i].Said, items[i].ActionID = "done", saidOfReplay(r.Result), &r.Result.ActionID
		}
		return settleItems(ctx, tx, run.ID, items)
	})
	if err != nil {
		return 0, fmt.Errorf("continue run %s: %w", run.ID, err)
	}
	return did, nil
}

// doOne does the act to the next effect. What it must know of the world outside is read while the item is claimed and no transaction is
// open; the item and the act are one commit.
func (d *Desk) doOne(ctx context.Context, run Run, _ int) (did int, err error) {
	item, found, err := claimItem(ctx, d.pool, run.ID)
	if err != nil || !found {
		return 0, err
	}
	r, err := d.prepare(ctx, Order{Act: run.Act, On: Target{Effect: item.EffectID}, By: run.By, Reason: run.reason()})
	refused := r.refused
	if err != nil && !errors.As(err, &refused) || refused != nil && refused.Code == outbox.RefusedUnavailable {
		if unclaim := unclaimItem(context.WithoutCancel(ctx), d.pool, run.ID, item); unclaim != nil {
			return 0, errors.Join(err, unclaim)
		}
		return 0, err
	}
	r.second = alone
	err = postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		if still, err := stillWaiting(ctx, tx, run.ID, item); err != nil || !still {
			return err // somebody else was faster
		}
		item.Status = "refused"
		var done Result
		if refused == nil {
			err := postgres.InTx(ctx, tx, func(tx pgx.Tx) (err error) { // a savepoint
				done, err = d.carryOut(ctx, tx, r)
				return err
			})
			if err != nil && !errors.As(err, &refused) {
				return err
			}
		}
		if refused != nil {
			item.Said = refused.Reason
		} else {
			item.Status, item.Said, item.ActionID = "done", done.Said, &done.ActionID
		}
		return settleItems(ctx, tx, run.ID, []RunItem{item})
	})
	if err != nil {
		return 0, fmt.Errorf("continue run %s: %w", run.ID, err)
	}
	return 1, nil
}

// reason stands in the audit of each act of a run.
func (r Run) reason() string { return fmt.Sprintf("%s (run %s)", r.Reason, r.ID) }

// finish ends a run of which nothing waits. Whoever does the last of it sees that.
func (d *Desk) finish(ctx context.Context, id uuid.UUID) error {
	_, err := d.pool.Exec(ctx, `
		UPDATE operator_runs r SET finished_at = clock_timestamp()
		 WHERE id = $1 AND finished_at IS NULL
		   AND NOT EXISTS (SELECT FROM operator_run_items i WHERE i.run_id = r.id AND i.status = 'waiting')`, id)
	if err != nil {
		return fmt.Errorf("finish run %s: %w", id, err)
	}
	return nil
}
