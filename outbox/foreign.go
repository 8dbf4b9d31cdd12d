package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"holdfast/internal/postgres"
)

// ForeignJobs counts River jobs of a kind that this build has no worker for.
type ForeignJobs struct {
	Kind  string `json:"kind"`
	State string `json:"state"`
	Count int64  `json:"count"` // of the 10,000 of its kind that are looked at
}

// Foreign counts River jobs of kinds that this build does not know, by kind and state, but for completed ones, which another
// program has taken care of. Nobody here carries them out: they are a newer version's, or another program's. At most a
// hundred kinds are told.
func Foreign(ctx context.Context, q postgres.Querier) ([]ForeignJobs, error) {
	rows, err := q.Query(ctx, countForeign, effectKinds())
	if err != nil {
		return nil, fmt.Errorf("count foreign jobs: %w", err)
	}
	foreign, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ForeignJobs])
	if err != nil {
		return nil, fmt.Errorf("count foreign jobs: %w", err)
	}
	return foreign, nil
}

// countForeign goes from one kind to the next by one look into the index each, however many jobs there are of ours.
const countForeign = `
	WITH RECURSIVE met AS (
		(SELECT j.kind FROM river_job j ORDER BY j.kind LIMIT 1)
		UNION ALL
		SELECT (SELECT j.kind FROM river_job j WHERE j.kind > met.kind ORDER BY j.kind LIMIT 1)
		  FROM met WHERE met.kind IS NOT NULL
	), foreign_kinds AS (
		SELECT met.kind FROM met WHERE met.kind <> ALL ($1::text[]) LIMIT 100
	)
	SELECT k.kind, j.state::text, count(*)
	  FROM foreign_kinds k,
	       LATERAL (SELECT r.state FROM river_job r WHERE r.kind = k.kind ORDER BY r.kind LIMIT 10000) AS j
	 WHERE j.state <> 'completed'
	 GROUP BY k.kind, j.state
	 ORDER BY k.kind, j.state`

// foreignStates lists the states in which a foreign job is counted.
func foreignStates() []rivertype.JobState {
	return []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStateCancelled, rivertype.JobStateDiscarded, rivertype.JobStatePending,
		rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}
}
