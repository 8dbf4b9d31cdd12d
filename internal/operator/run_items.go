package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
)

const (
	mostTries     = 5               // of an act on one effect that neither is accepted nor refused
	tryAgainAfter = 5 * time.Second // after the first failed try; after the second, twice as long
)

// claimFor is how long an item is left to whoever is at it outside of a transaction.
const claimFor = time.Minute

const itemColumns = `position, effect_id, status, coalesce(said, '') AS said, tries, action_id`

// nextItems locks the next items that wait and that nobody else has.
func nextItems(ctx context.Context, tx pgx.Tx, run uuid.UUID, n int) ([]RunItem, error) {
	return readItems(ctx, tx, `
		SELECT `+itemColumns+` FROM operator_run_items
		 WHERE run_id = $1 AND status = 'waiting' ORDER BY position LIMIT $2 FOR UPDATE SKIP LOCKED`, run, n)
}

// claimItem takes the next item that waits and that nobody is at. One that could not be done before comes after all others, and not at
// once: it does not hold them up. Of a run that was ended there is none.
func claimItem(ctx context.Context, q postgres.Querier, run uuid.UUID) (RunItem, bool, error) {
	items, err := readItems(ctx, q, `
		UPDATE operator_run_items SET claimed_until = clock_timestamp() + $2::interval
		 WHERE run_id = $1 AND position = (
		       SELECT position FROM operator_run_items
		        WHERE run_id = $1 AND status = 'waiting' AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
		          AND (try_at IS NULL OR try_at <= clock_timestamp())
		          AND EXISTS (SELECT FROM operator_runs r WHERE r.id = $1 AND r.ended_by IS NULL)
		        ORDER BY try_at NULLS FIRST, claimed_until NULLS FIRST, position LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING `+itemColumns, run, claimFor)
	if err != nil || len(items) == 0 {
		return RunItem{}, false, err
	}
	return items[0], true, nil
}

// unclaimItem gives an item back that could not be done for now, behind the others.
func unclaimItem(ctx context.Context, q postgres.Querier, run uuid.UUID, item RunItem) error {
	_, err := q.Exec(ctx, `
		UPDATE operator_run_items SET claimed_until = clock_timestamp() WHERE run_id = $1 AND position = $2 AND status = 'waiting'`, run, item.Position)
	if err != nil {
		return fmt.Errorf("give back an item of run %s: %w", run, err)
	}
	return nil
}

// failItem counts a try that has failed. The next one is later the more have failed, and after mostTries there is none; nor is there
// if the run was ended.
func failItem(ctx context.Context, q postgres.Querier, run uuid.UUID, item RunItem, why string) error {
	_, err := q.Exec(ctx, `
		UPDATE operator_run_items i
		   SET tries = i.tries + 1, said = $3 || CASE i.tries WHEN 0 THEN '' ELSE format('; tried %s times', i.tries + 1) END, claimed_until = NULL,
		       status = CASE WHEN i.tries + 1 >= $4 OR r.ended_by IS NOT NULL THEN 'failed' ELSE 'waiting' END,
		       try_at = clock_timestamp() + (i.tries + 1) * $5::interval
		  FROM operator_runs r
		 WHERE r.id = $1 AND i.run_id = $1 AND i.position = $2 AND i.status = 'waiting' AND i.tries = $6`,
		run, item.Position, why, mostTries, tryAgainAfter, item.Tries)
	if err != nil {
		return fmt.Errorf("count a failed try of run %s: %w", run, err)
	}
	return nil
}

// stillWaiting locks an item and tells whether it is still to be done: a claim may have ended before its owner.
func stillWaiting(ctx context.Context, tx pgx.Tx, run uuid.UUID, item RunItem) (bool, error) {
	items, err := readItems(ctx, tx, `
		SELECT `+itemColumns+` FROM operator_run_items WHERE run_id = $1 AND position = $2 AND status = 'waiting' FOR UPDATE`, run, item.Position)
	return len(items) == 1, err
}

// settleItems writes down what became of items, which the caller has locked.
func settleItems(ctx context.Context, tx pgx.Tx, run uuid.UUID, items []RunItem) error {
	var positions []int
	var statuses, said []string
	var actions []*uuid.UUID
	for _, item := range items {
		positions, statuses = append(positions, item.Position), append(statuses, item.Status)
		said, actions = append(said, item.Said), append(actions, item.ActionID)
	}
	_, err := tx.Exec(ctx, `
		UPDATE operator_run_items i SET status = came.status, said = came.said, action_id = came.action_id, claimed_until = NULL
		  FROM unnest($2::int[], $3::text[], $4::text[], $5::uuid[]) AS came (position, status, said, action_id)
		 WHERE i.run_id = $1 AND i.position = came.position AND i.status = 'waiting'`, run, positions, statuses, said, actions)
	if err != nil {
		return fmt.Errorf("write down what became of the items of run %s: %w", run, err)
	}
	return nil
}

func readItems(ctx context.Context, q postgres.Querier, sql string, args ...any) ([]RunItem, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read the items of a run: %w", err)
	}
	items, err := pgx.CollectRows(rows, pgx.RowToStructByName[RunItem])
	if err != nil {
		return nil, fmt.Errorf("read the items of a run: %w", err)
	}
	return items, nil
}
