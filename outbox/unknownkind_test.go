package outbox

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// TestIncident14_AnUnknownKindHoldsUpNothing (G3, G5): a newer or a foreign program puts jobs into one of our queues whose
// kind this build does not know, in front of ours and with one slot for all. They fail and are put off, so ours go on; the
// log and their rows say which kind it was, and the rows stay when their attempts are spent.
func TestIncident14_AnUnknownKindHoldsUpNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var log lockedBuffer
	b.logger = slog.New(slog.NewJSONHandler(&log, nil))
	b.exec(t, `
		INSERT INTO river_job (args, kind, max_attempts, metadata, priority, queue, scheduled_at, state, tags, attempt)
		SELECT '{"effect_id": "0193b7a4-0000-7000-8000-000000000000"}', 'teleport', 25, '{}', 1, 'charge',
		       now() - interval '1 hour', 'available', '{}', CASE WHEN n <= 2 THEN 24 ELSE 0 END
		  FROM generate_series(1, 5) AS n`)
	made := b.books(t, 10)
	b.young(t)
	handler := &carrier{b: b}
	b.workers(t, WorkersConfig{MaxWorkers: 1}, map[domain.EffectKind]Handler{domain.EffectCharge: handler.work})
	b.eventually(t, len(made), `SELECT count(*) FROM outbox WHERE kind = 'charge' AND status = 'done'`)
	for _, m := range made {
		require.Equal(t, 1, handler.acted(m.charge))
	}
	const teleports = `
		SELECT count(*) FROM river_job
		 WHERE kind = 'teleport' AND (state = 'discarded') = $1 AND errors[1] ->> 'error' LIKE '%teleport%'
		   AND (state = 'discarded' OR scheduled_at - attempted_at > interval '900 milliseconds')`
	b.eventually(t, 2, teleports, true)
	b.eventually(t, 3, teleports, false)
	require.Contains(t, log.String(), "Unhandled job kind")
	require.Contains(t, log.String(), `"kind":"teleport"`)
	require.Zero(t, b.sweep(t), "a job that belongs to no effect is none of the sweep's")
}

// TestIncident14_AnEffectUnderAnUnknownKind (G5): the effect's own job has a kind that nobody here knows. When its attempts
// are spent the sweep gives the effect a job of its own kind, and it is carried out once.
func TestIncident14_AnEffectUnderAnUnknownKind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.young(t)
	b.exec(t, `UPDATE river_job SET kind = 'teleport', attempt = max_attempts - 1`)
	handler := &carrier{b: b}
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectCharge: handler.work})
	b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE kind = 'teleport' AND state = 'discarded'`)
	shown, err := Show(t.Context(), b.pool, made.charge, DeadAfter)
	require.NoError(t, err)
	require.True(t, shown.Effect.Stuck)
	require.Contains(t, shown.Effect.Reason, "no live job carries it")
	require.Zero(t, handler.acted(made.charge))

	require.Equal(t, 1, b.sweep(t))
	b.eventually(t, 1, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'done'`, made.charge)
	require.Equal(t, 1, handler.acted(made.charge))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM river_job WHERE kind = 'teleport'`), "it stays to be seen")
}
