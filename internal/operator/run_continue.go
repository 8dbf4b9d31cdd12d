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
	"holdfast/payments"
)

// runBatch is how many replays of a run are one commit.
const runBatch = 200

// inARow is how many effects, one after the other, fail at their first try before it is taken that what failed is away for all.
const inARow = 3

// tryError is a try of an act on one effect that was neither accepted nor refused.
type tryError struct {
	first bool
	err   error
}

func (e *tryError) Error() string { return e.err.Error() }
func (e *tryError) Unwrap() error { return e.err }

// ContinueRun does the act to the next effects of a run, at most n, each once whoever continues it and however often: what is done
// to an effect and that it is done are one commit. Several may continue one run at once. It returns the run as it stands then, also
// with an error: what was done by then is done, and the run can be continued. An effect that somebody was at when their process died
// is left for a minute.
//
// An effect on which the act fails is tried again later, five times in all, and then given up, so that each run comes to its end. If
// several in a row fail at their first try, provider or broker are away: that is the error, and the others wait.
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
	streak := 0
	for n > 0 && run.FinishedAt == nil && run.EndedBy == "" && failed == nil {
		var did int
		did, failed = step(ctx, run, min(n, runBatch))
		var try *tryError
		switch {
		case errors.As(failed, &try):
			if try.first {
				streak++
			}
			if streak < inARow {
				failed = nil
			}
		case did == 0:
			n = 0 // nothing waits that nobody is at
		default:
			streak = 0
		}
		n -= did
	}
	if run.FinishedAt == nil && failed == nil {
		failed = errors.Join(leaveOut(ctx, d.pool, id), finish(ctx, d.pool, id))
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
	if errors.As(err, &refused) {
		err = nil
	}
	if refused != nil && refused.Code == outbox.RefusedUnavailable {
		return 0, errors.Join(refused, unclaimItem(context.WithoutCancel(ctx), d.pool, run.ID, item))
	}
	r.second = alone
	if err == nil {
		err = d.settleOne(ctx, run, item, r, refused)
	}
	switch {
	case err == nil:
		return 1, nil
	case ctx.Err() != nil || errors.Is(busy(err), domain.ErrBusy): // that says nothing of the effect
		return 0, errors.Join(err, unclaimItem(context.WithoutCancel(ctx), d.pool, run.ID, item))
	default:
		if err := failItem(ctx, d.pool, run.ID, item, d.whyFailed(run, item, err)); err != nil {
			return 0, err
		}
		return 1, &tryError{first: item.Tries == 0, err: fmt.Errorf("continue run %s: %w", run.ID, err)}
	}
}

// settleOne does the act, unless it is refused, and writes down what became of it.
func (d *Desk) settleOne(ctx context.Context, run Run, item RunItem, r ready, refused *outbox.RefusedError) error {
	return postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
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
}

// whyFailed says in plain words why a try has failed. What the provider or a driver has said stays in the log.
func (d *Desk) whyFailed(run Run, item RunItem, err error) string {
	switch {
	case errors.Is(err, ErrBroker):
		return "the broker did not acknowledge the event"
	case errors.Is(err, payments.ErrUnread):
		return "the provider could not be read"
	case errors.Is(err, domain.ErrNotFound):
		return "what the act is about is not there"
	default:
		d.logger.Error("an act of a run has failed", "run_id", run.ID, "effect_id", item.EffectID, "error", err)
		return "the act itself has failed; the log of the process that tried it says why"
	}
}

// reason stands in the audit of each act of a run.
func (r Run) reason() string { return fmt.Sprintf("%s (run %s)", r.Reason, r.ID) }
