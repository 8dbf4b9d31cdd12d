package outbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// running lets a job be taken by a process, ten minutes ago.
const running = `UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = now() - interval '10 minutes', attempted_by = `

// fates are what can become of a job while its effect is pending, and what is said of the effect then.
var fates = map[string]struct{ spoil, reason string }{
	"deleted":         {lost["deleted"], "its job is gone"},
	"cancelled":       {lost["cancelled"], "its job is cancelled"},
	"discarded":       {lost["discarded"], "its job is discarded"},
	"completed":       {`UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = $1`, "its job is completed"},
	"pending":         {`UPDATE river_job SET state = 'pending' WHERE id = $1`, "its job is pending"},
	"dead process":    {running + `'{alive,dead}' WHERE id = $1`, "its job runs in a process that is not heard of"},
	"silent process":  {running + `'{silent}' WHERE id = $1`, "its job runs in a process that is not heard of"},
	"no process":      {running + `'{}' WHERE id = $1`, "its job runs in a process that is not heard of"},
	"unknown process": {running + `NULL WHERE id = $1`, "its job runs in a process that is not heard of"},
	"another kind":    {`UPDATE river_job SET kind = 'teleport' WHERE id = $1`, "its job is of the kind teleport, which this version does not know"},
	"another of ours": {`UPDATE river_job SET kind = 'refresh' WHERE id = $1`, "its job is of the kind refresh, which"},
	"another queue":   {`UPDATE river_job SET queue = 'attic' WHERE id = $1`, "its job is in the queue attic, which nobody works"},
}

// pending makes a booking whose only unfinished effect is one of a kind, with a job.
func (b *testBundle) pending(t *testing.T, kind domain.EffectKind) domain.EffectID {
	t.Helper()
	made := b.book(t)
	if kind == domain.EffectCharge {
		b.exec(t, `DELETE FROM outbox WHERE id = $1`, made.held)
		return made.charge
	}
	b.exec(t, `DELETE FROM river_job WHERE id = (SELECT job_id FROM outbox WHERE id = $1)`, made.charge)
	b.exec(t, `DELETE FROM outbox WHERE booking_id = $1`, made.booking)
	if kind == domain.EffectPublish {
		return b.event(t, made.booking, domain.EventConfirmed)
	}
	var id domain.EffectID
	require.NoError(t, write(t.Context(), b.pool, func(q *pgx.Batch) error {
		id = Append(q, made.booking, kind)
		return nil
	}))
	return id
}

// stuck are the effects that the operators' list shows, with why.
func (b *testBundle) stuck(t *testing.T) map[domain.EffectID]string {
	t.Helper()
	page, err := List(t.Context(), b.pool, Filter{Stuck: true, Limit: maxPage})
	require.NoError(t, err)
	found := map[domain.EffectID]string{}
	for _, row := range page.Rows {
		found[row.ID] = row.Reason
	}
	return found
}

var carriedKinds = []domain.EffectKind{domain.EffectCharge, domain.EffectCancel, domain.EffectRefund, domain.EffectPublish}

func (b *testBundle) carriers(t *testing.T) *carrier {
	t.Helper()
	c := &carrier{b: b}
	handlers := map[domain.EffectKind]Handler{}
	for _, kind := range carriedKinds {
		handlers[kind] = c.work
	}
	b.workers(t, WorkersConfig{}, handlers)
	return c
}

// TestIncident14_WhateverBecomesOfAJob (G3, G5, G6): every fate of a job, for every kind of effect. The effect is listed as
// stuck with what is the matter, one look of the sweep gives it one job that workers take, and it is carried out once.
func TestIncident14_WhateverBecomesOfAJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO outbox_workers VALUES ('alive', now() + interval '1 hour'), ('silent', now() - interval '16 seconds')`)
	want := map[domain.EffectID]string{}
	for _, name := range slices.Sorted(maps.Keys(fates)) {
		for _, kind := range carriedKinds {
			id := b.pending(t, kind)
			b.exec(t, fates[name].spoil, b.load(t, id).JobID)
			want[id] = "no live job carries it: " + fates[name].reason
		}
	}
	fine := b.pending(t, domain.EffectCharge)

	stuck := b.stuck(t)
	require.Len(t, stuck, len(want))
	for id, reason := range want {
		require.Contains(t, stuck[id], reason)
		require.Contains(t, stuck[id], "; the sweep will give it a new one")
		shown, err := Show(t.Context(), b.pool, id, DeadAfter)
		require.NoError(t, err)
		require.True(t, shown.Effect.Stuck)
		require.Equal(t, stuck[id], shown.Effect.Reason)
	}
	revived := NewRevivedCounter()
	n, err := NewSweeper(b.pool, SweepConfig{Revived: revived}).Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, len(want), n)
	require.InDelta(t, len(want), counted(t, revived), 0)
	b.exec(t, `UPDATE outbox SET created_at = now()`) // a busy machine takes longer than a service level to come to this
	require.Empty(t, b.stuck(t))
	require.Zero(t, b.sweep(t))

	c := b.carriers(t)
	b.eventually(t, len(want)+1, `SELECT count(*) FROM outbox WHERE status = 'done'`)
	for id := range want {
		require.Equal(t, 1, c.acted(id), want[id])
	}
	require.Equal(t, 1, c.acted(fine))
}

// TestIncident14_RiversOwnActs (G3, G7): River's client, and so its pages and tools, can cancel, delete and retry any job. What is
// cancelled or deleted is made again; what is retried after it was carried out does nothing.
func TestIncident14_RiversOwnActs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	client, err := river.NewClient(riverpgxv5.New(b.pool), &river.Config{})
	require.NoError(t, err)
	acts := map[string]func(id int64) error{
		"cancel": func(id int64) error { _, err := client.JobCancel(t.Context(), id); return err },
		"delete": func(id int64) error { _, err := client.JobDelete(t.Context(), id); return err },
		"cancel, then retry": func(id int64) error {
			_, err := client.JobCancel(t.Context(), id)
			if err == nil {
				_, err = client.JobRetry(t.Context(), id)
			}
			return err
		},
		"retry": func(id int64) error { _, err := client.JobRetry(t.Context(), id); return err },
	}
	var made []domain.EffectID
	lost := 0
	for name, act := range acts {
		for _, kind := range carriedKinds {
			id := b.pending(t, kind)
			made = append(made, id)
			require.NoError(t, act(*b.load(t, id).JobID))
			gone := name == "cancel" || name == "delete"
			require.Equal(t, gone, b.stuck(t)[id] != "", name)
			if gone {
				lost++
			}
		}
	}
	require.Equal(t, lost, b.sweep(t))
	c := b.carriers(t)
	const waiting = `SELECT count(*) FROM river_job WHERE state IN ('available', 'running', 'retryable', 'scheduled')`
	b.eventually(t, len(made), `SELECT count(*) FROM outbox WHERE status = 'done'`)
	b.eventually(t, 0, waiting)

	// Everything that River still has is retried, the cancelled ones beside those that took their place: all of it is done.
	jobs, err := client.JobList(t.Context(), river.NewJobListParams().First(1000))
	require.NoError(t, err)
	require.Len(t, jobs.Jobs, len(made)+len(carriedKinds), "the deleted ones are gone, the cancelled ones are still here")
	for _, job := range jobs.Jobs {
		require.NoError(t, acts["retry"](job.ID))
	}
	b.eventually(t, len(jobs.Jobs), `SELECT count(*) FROM river_job WHERE state = 'completed' AND attempt BETWEEN 1 AND 2`)
	for _, id := range made {
		require.Equal(t, 1, c.acted(id))
	}
	require.Zero(t, b.sweep(t))
}

// TestIncident14_RiversPausedQueue (G5): River's tools can pause a queue, which no list of ours knows. What waits in it is shown
// as late, is not given job after job, and goes on when the queue does.
func TestIncident14_RiversPausedQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	client, err := river.NewClient(riverpgxv5.New(b.pool), &river.Config{})
	require.NoError(t, err)
	c := b.carriers(t)
	require.NoError(t, client.QueuePause(t.Context(), string(domain.EffectCharge), nil))
	b.eventually(t, 1, `SELECT count(*) FROM river_queue WHERE name = 'charge' AND paused_at IS NOT NULL`)
	var id domain.EffectID
	require.Eventually(t, func() bool { // the worker hears of the pause within a poll
		id = b.pending(t, domain.EffectCharge)
		b.exec(t, `UPDATE outbox SET created_at = created_at - interval '6 minutes' WHERE id = $1`, id)
		return b.stuck(t)[id] != "" && c.acted(id) == 0
	}, patience, patience/1000)
	require.Equal(t, "late: older than its service level", b.stuck(t)[id])
	require.Zero(t, b.sweep(t))
	require.NoError(t, client.QueueResume(t.Context(), string(domain.EffectCharge), nil))
	b.eventually(t, 1, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'done'`, id)
	require.Equal(t, 1, c.acted(id))
}

// TestIncident14_ADiscardedJobAfterItsLastAttempt (G3, G5): the run fails for the twenty-fifth time, and River gives the job up.
// The effect does not.
func TestIncident14_ADiscardedJobAfterItsLastAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.pending(t, domain.EffectRefund)
	b.exec(t, `
		UPDATE river_job SET attempt = 24, errors = array_fill('{"at":"2030-01-01T00:00:00Z","attempt":1,"error":"x","trace":""}'::jsonb, ARRAY[24])
		 WHERE id = $1`, b.load(t, id).JobID)
	var fails atomic.Bool
	fails.Store(true)
	c := &carrier{b: b}
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
		domain.EffectRefund: func(ctx context.Context, job Job) (Verdict, error) {
			if fails.Load() {
				return Verdict{}, errors.New("the database is away")
			}
			return c.work(ctx, job)
		},
	})
	b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE state = 'discarded' AND attempt = 25 AND array_length(errors, 1) = 25`)
	require.Contains(t, b.stuck(t)[id], "its job is discarded")
	fails.Store(false)
	require.Equal(t, 1, b.sweep(t))
	b.eventually(t, 1, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'done'`, id)
	require.Equal(t, 1, c.acted(id))
}

// TestIncident14_StuckInRunning (G3, G5): the process lives, but nothing runs the job any more. River's rescue comes for it; whether
// it retries the job or discards it, its attempts spent, the effect is carried out once. A job of a kind that nobody knows is
// discarded, and stays to be seen.
func TestIncident14_StuckInRunning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO outbox_workers VALUES ('alive', now() + interval '1 hour')`)
	tired, spent := b.pending(t, domain.EffectCharge), b.pending(t, domain.EffectCancel)
	b.exec(t, `UPDATE river_job SET attempt = 24 WHERE id = $1`, b.load(t, spent).JobID)
	for _, id := range []domain.EffectID{tired, spent} {
		b.exec(t, running+`'{alive}' WHERE id = $1`, b.load(t, id).JobID)
		b.exec(t, `UPDATE outbox SET created_at = created_at - interval '10 minutes' WHERE id = $1`, id)
	}
	b.exec(t, `
		INSERT INTO river_job (args, kind, max_attempts, metadata, priority, queue, state, tags, attempt, attempted_at, attempted_by)
		VALUES ('{}', 'teleport', 25, '{}', 1, 'charge', 'running', '{}', 1, now() - interval '10 minutes', '{alive}')`)
	require.Equal(t, "late: older than its service level", b.stuck(t)[tired])
	require.Zero(t, b.sweep(t), "for all that can be known, it runs")

	c := b.carriers(t)
	b.eventually(t, 1, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'done'`, tired)
	b.eventually(t, 2, `SELECT count(*) FROM river_job WHERE state = 'discarded'`)
	require.Contains(t, b.stuck(t)[spent], "its job is discarded")
	foreign, err := Foreign(t.Context(), b.pool)
	require.NoError(t, err)
	require.Equal(t, []ForeignJobs{{Kind: "teleport", State: "discarded", Count: 1}}, foreign)
	require.Equal(t, 1, b.sweep(t))
	b.eventually(t, 1, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'done'`, spent)
	require.Equal(t, 1, c.acted(tired))
	require.Equal(t, 1, c.acted(spent))
}
