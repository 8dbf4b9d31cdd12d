package payments_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
)

// lostJobs are what can become of the job of an effect that is pending, and how often it can be run after all: once, or, retried
// by a River tool beside the job that took its place, by two workers at once.
var lostJobs = map[string]string{
	"deleted":          `DELETE FROM river_job WHERE id = $1`,
	"cancelled":        `UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE id = $1`,
	"discarded":        `UPDATE river_job SET state = 'discarded', finalized_at = now(), attempt = 25 WHERE id = $1`,
	"completed":        `UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = $1`,
	"in a dead worker": `UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{dead}' WHERE id = $1`,
	"of another kind":  `UPDATE river_job SET kind = 'teleport', queue = 'teleport' WHERE id = $1`,
	"then retried":     `UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE id = $1`,
}

// pendingMoney makes a booking with one effect of a kind that has not been carried out yet.
func (b *bed) pendingMoney(kind domain.EffectKind) domain.BookingID {
	b.Helper()
	switch kind {
	case domain.EffectCancel: // its customer must authenticate, and its hold is over
		id := b.book("pm_card_threeDSecure2Required")
		b.work(b.engine(), id, domain.EffectCharge)
		b.expire(id)
		worked, err := b.engine().SweepHold(b.ctx)
		require.NoError(b, err)
		require.True(b, worked)
		return id
	case domain.EffectRefund: // confirmed, then cancelled by its customer
		id := b.confirmed()
		require.Equal(b, 200, b.cancel(id, "stop"))
		return id
	case domain.EffectCharge, domain.EffectRefresh, domain.EffectPublish:
	}
	return b.book("pm_card_visa")
}

// TestIncident14_LostJobsMoveNoMoneyTwice (G3, G5): every effect that moves money or proves that none moved, its job lost in every
// way. The sweep makes the job anew, River's own tools retry whatever they find, finished jobs too, and the provider's ledger has
// what it would have without all that: one charge, no charge, one refund.
func TestIncident14_LostJobsMoveNoMoneyTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	kinds := []domain.EffectKind{domain.EffectCharge, domain.EffectCancel, domain.EffectRefund}
	made := map[domain.EffectKind][]domain.BookingID{}
	var lost, retried []int64
	for _, fate := range slices.Sorted(maps.Keys(lostJobs)) {
		for _, kind := range kinds {
			id := b.pendingMoney(kind)
			made[kind] = append(made[kind], id)
			job := b.jobOf(id, kind)
			b.exec(lostJobs[fate], job)
			lost = append(lost, job)
			if fate == "then retried" {
				retried = append(retried, job)
			}
			shown, err := outbox.Show(b.ctx, b.db.Pool, b.effect(id, kind), outbox.DeadAfter)
			require.NoError(t, err)
			require.True(t, shown.Effect.Stuck)
			require.Contains(t, shown.Effect.Reason, "no live job carries it", fate)
		}
	}
	_, err := outbox.NewSweeper(b.db.Pool, outbox.SweepConfig{}).Sweep(b.ctx)
	require.NoError(t, err)
	client, err := river.NewClient(riverpgxv5.New(b.db.Pool), &river.Config{})
	require.NoError(t, err)
	for _, job := range retried {
		_, err := client.JobRetry(b.ctx, job)
		require.NoError(t, err)
	}
	for kind, ids := range made {
		for _, id := range ids {
			require.NotContains(t, lost, b.jobOf(id, kind), "a new job")
		}
	}
	b.runWorkers(t)
	const open = `SELECT count(*) FROM river_job WHERE queue IN ('charge', 'cancel', 'refund') AND state NOT IN ('completed', 'cancelled', 'discarded') AND NOT coalesce(attempted_by = '{dead}', false)`
	b.until(open, 0)

	// The dead worker is not dead after all, and somebody retries all that is finished.
	b.exec(`UPDATE river_job SET state = 'retryable' WHERE state = 'running' AND attempted_by = '{dead}'`)
	jobs, err := client.JobList(b.ctx, river.NewJobListParams().First(1000).Queues("charge", "cancel", "refund"))
	require.NoError(t, err)
	for _, job := range jobs.Jobs {
		_, err := client.JobRetry(b.ctx, job.ID)
		require.NoError(t, err)
	}
	b.until(open, 0)

	for kind, ids := range made {
		for _, id := range ids {
			var unfinished int
			b.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind <> 'publish' AND status <> 'done'`, &unfinished, id)
			require.Zero(t, unfinished, b.tale(id))
			if kind == domain.EffectRefund {
				b.cancelled(id, 2500)
				require.Len(t, b.charges(id), 1)
				require.Len(t, b.refunds(id), 1)
				continue
			}
			b.agree(id)
			require.Len(t, b.charges(id), map[domain.EffectKind]int{domain.EffectCharge: 1}[kind], b.tale(id))
		}
	}
	require.NoError(t, b.sim.Ledger().Check())
}

// jobOf is the job that an effect names.
func (b *bed) jobOf(id domain.BookingID, kind domain.EffectKind) (job int64) {
	b.Helper()
	b.scan(`SELECT job_id FROM outbox WHERE id = $1`, &job, b.effect(id, kind))
	return job
}

// until waits for a count.
func (b *bed) until(sql string, want int) {
	b.Helper()
	got := -1
	for deadline := time.Now().Add(time.Minute); got != want; b.pause(10 * time.Millisecond) {
		b.scan(sql, &got)
		require.True(b, time.Now().Before(deadline), "%s: %d, want %d", sql, got, want)
	}
}

// runWorkers starts a worker process of the money's kinds, and stops it with the test.
func (b *bed) runWorkers(t *testing.T) {
	t.Helper()
	p := b.engine()
	w, err := outbox.NewWorkers(b.db.Pool, outbox.WorkersConfig{FetchPollInterval: 20 * time.Millisecond}, map[domain.EffectKind]outbox.Handler{
		domain.EffectCharge: p.Charge, domain.EffectCancel: p.Fence, domain.EffectRefund: p.Refund,
	}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, w.Start(b.ctx))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), time.Minute)
		defer cancel()
		require.NoError(t, w.Stop(ctx))
	})
}
