package outbox

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/telemetry"
	"holdfast/internal/testdb"
)

// TestForeignJobsAreSeen (G5): jobs that nobody here carries out are counted by kind and state, and alarmed; ours, and those that
// another program has completed, are not among them. Nor does the count read ours, however many there are.
func TestForeignJobsAreSeen(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	b := &testBundle{pool: db.Pool, logger: slog.New(slog.DiscardHandler)}
	made := b.book(t)
	none, err := Foreign(t.Context(), b.pool)
	require.NoError(t, err)
	require.Empty(t, none)
	b.exec(t, `
		INSERT INTO river_job (args, kind, max_attempts, metadata, priority, queue, state, tags, finalized_at)
		SELECT '{}', kind, 25, '{}', 1, 'charge', state, '{}', CASE WHEN state IN ('completed', 'discarded', 'cancelled') THEN now() END
		  FROM unnest(ARRAY['audit', 'charges', 'zoom']) AS kind, unnest(enum_range(NULL::river_job_state)) AS state, generate_series(1, 2)
		 WHERE kind = 'charges' OR state IN ('available', 'completed')`)
	foreign, err := Foreign(t.Context(), b.pool)
	require.NoError(t, err)
	require.Equal(t, []ForeignJobs{
		{"audit", "available", 2},
		{"charges", "available", 2},
		{"charges", "cancelled", 2},
		{"charges", "discarded", 2},
		{"charges", "pending", 2},
		{"charges", "retryable", 2},
		{"charges", "running", 2},
		{"charges", "scheduled", 2},
		{"zoom", "available", 2},
	}, foreign)

	b.exec(t, `UPDATE outbox SET status = 'done', finished_at = now() WHERE id = $1`, made.charge)
	_, err = Pause(t.Context(), b.pool, domain.EffectCharge, "ada", "fraud wave")
	require.NoError(t, err)
	registry := telemetry.NewRegistry()
	registry.MustRegister(NewCollector(b.pool, b.logger))
	got := gather(t, registry)
	require.InDelta(t, 6, got["holdfast_outbox_foreign_jobs available"], 0)
	require.InDelta(t, 2, got["holdfast_outbox_foreign_jobs scheduled"], 0)
	require.NotContains(t, got, "holdfast_outbox_foreign_jobs completed")
	require.InDelta(t, 1, got["holdfast_outbox_paused charge"], 0)
	require.Contains(t, got, "holdfast_outbox_paused publish")
	require.Zero(t, got["holdfast_outbox_paused publish"])

	b.exec(t, `
		INSERT INTO river_job (args, kind, max_attempts, metadata, priority, queue, state, tags, finalized_at)
		SELECT '{}', 'charge', 25, '{}', 1, 'charge', 'completed', '{}', now() FROM generate_series(1, 20000)`)
	b.exec(t, `ANALYZE river_job`)
	db.RequireIndexed(t, countForeign, effectKinds())
}

func counted(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, c.Write(&m))
	return m.GetCounter().GetValue()
}
