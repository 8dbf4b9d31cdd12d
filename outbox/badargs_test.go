package outbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// shapes are arguments that a job of ours never has, and that a hand or another version may write.
var shapes = []string{
	`{}`, `{"effect_id": null}`, `{"effect_id": ""}`, `{"effect_id": "x"}`, `{"effect_id": 7}`, `{"effect_id": {}}`,
	`{"effect_id": "00000000-0000-0000-0000-000000000000"}`, `{"effect_id": "0193b7a4-0000-7000-8000-000000000000"}`,
	`{"other": 1}`, `[]`, `"x"`, `7`, `null`,
}

// TestIncident14_ArgumentsThatNameNoEffect (G3, G5, G6): such a job acts on nothing and crashes nothing; it ends as a job
// that failed or found nothing to do, its effect is listed as carried by none, and the sweep makes it a proper one.
func TestIncident14_ArgumentsThatNameNoEffect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	made := b.books(t, len(shapes), domain.EventConfirmed)
	for i, args := range shapes {
		b.exec(t, `
			UPDATE river_job SET args = $2::jsonb, attempt = max_attempts - 1
			 WHERE id IN (SELECT job_id FROM outbox WHERE booking_id = $1)`, made[i].booking, args)
	}
	whole := b.books(t, 1, domain.EventConfirmed)[0]
	handler := &carrier{b: b}
	b.workers(t, WorkersConfig{MaxWorkers: 1}, map[domain.EffectKind]Handler{
		domain.EffectCharge: handler.work, domain.EffectPublish: b.drain(js).Work,
	})
	b.eventually(t, 2*len(shapes)+2, `SELECT count(*) FROM river_job WHERE state IN ('completed', 'discarded')`)
	require.Equal(t, 1, handler.acted(whole.charge), "what stands behind them goes on")
	require.Equal(t, 3, b.count(t, `SELECT count(*) FROM outbox WHERE status = 'done'`))
	require.Equal(t, 3, b.count(t, `SELECT count(*) FROM outbox WHERE booking_id = $1 AND status = 'done'`, whole.booking))
	for _, kind := range []domain.EffectKind{domain.EffectCharge, domain.EffectPublish} {
		rows, err := b.pool.Query(t.Context(), `
			SELECT DISTINCT args::text FROM river_job WHERE queue = $1 AND state = 'discarded' AND errors IS NOT NULL`, kind)
		require.NoError(t, err)
		failed, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		for _, args := range []string{`{"effect_id": "x"}`, `{"effect_id": 7}`, `{"effect_id": {}}`, `[]`, `"x"`, `7`} {
			require.True(t, slices.Contains(failed, args), "%s with %s leaves no trace", kind, args)
		}
	}

	b.exec(t, `UPDATE outbox SET created_at = created_at - interval '16 seconds' WHERE kind = 'publish'`) // no longer young
	page, err := List(t.Context(), b.pool, Filter{Stuck: true})
	require.NoError(t, err)
	reasons := map[string]int{}
	for _, row := range page.Rows {
		reason, _, _ := strings.Cut(row.Reason, ":") // its job is discarded, or completed, or, of a first event, it had none
		reasons[reason]++
	}
	require.Equal(t, map[string]int{
		"no live job carries it":                    2 * len(shapes), // charges, and first events
		"waits for an earlier event of its booking": len(shapes),
	}, reasons)
	require.Equal(t, 2*len(shapes), b.sweep(t), "one for each charge, and one for each booking's events")
	b.eventually(t, 3*(len(shapes)+1), `SELECT count(*) FROM outbox WHERE status = 'done'`)
	for _, m := range made {
		require.Equal(t, 1, handler.acted(m.charge))
	}
	requireInOrder(t, told(t, js), len(shapes)+1)
	require.Zero(t, b.sweep(t))
}
