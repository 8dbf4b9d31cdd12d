package main

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// TestRunsEnd: a run is given up from the command line, once, and each effect says so.
func TestRunsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.spoil(t, `INSERT INTO outbox (id, booking_id, kind, status, last_error, due_at, created_at)
		SELECT gen_random_uuid(), booking_id, 'refresh', 'parked', 'why', now(), now() FROM outbox, generate_series(1, 3) WHERE kind = 'charge'`)
	desk := operator.New(b.pool, nil, nil, nil, operator.Config{}, nil)
	run, err := desk.StartRun(t.Context(), operator.RunOrder{
		ID: uuid.Must(uuid.NewV7()), Act: operator.Discard, Filter: outbox.Filter{Kind: "refresh"}, Cap: 10, By: "ada", Reason: "looked at",
	})
	require.NoError(t, err)
	id := run.ID.String()
	code, _, said := b.run(t, nil, "runs", "end", id)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, said, "--reason")
	for range 2 {
		code, shown, said := b.run(t, nil, "runs", "end", id, "--reason", "the wrong filter", "--actor", "bob")
		require.Equal(t, cli.ExitDone, code, said)
		require.Contains(t, shown, "3: bob ended the run: the wrong filter")
	}
	require.Equal(t, 1, b.audits(t))
	code, shown, _ := b.run(t, nil, "runs", "resume", id)
	require.Equal(t, cli.ExitProblem, code, "not all was done")
	require.Contains(t, shown, "left_out")
	require.Contains(t, shown, "nothing was done: bob ended the run: the wrong filter")
	code, shown, _ = b.run(t, nil, "runs")
	require.Equal(t, cli.ExitDone, code)
	require.Contains(t, shown, "ended by bob, with 3 left out: the wrong filter")
	code, _, said = b.run(t, nil, "runs", "end", uuid.NewString(), "--reason", "why")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, said, "there is nothing of this id")
}
