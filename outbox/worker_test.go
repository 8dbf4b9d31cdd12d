package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

func settleCharge(t *testing.T, b *testBundle, ctx context.Context, job Job, before func(tx pgx.Tx)) error { //nolint:revive // t first, as everywhere
	t.Helper()
	return postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		if before != nil {
			before(tx)
		}
		e, err := Load(ctx, tx, job.Effect)
		if err != nil {
			return err
		}
		return write(ctx, tx, func(q *pgx.Batch) error {
			job.Complete(q)
			return Finish(q, e.BookingID, e.Kind, domain.EffectDone)
		})
	})
}

// TestJobIsCompletedBySettlement (G3, incident 14): the job's row is completed in the transaction that settles.
func TestJobIsCompletedBySettlement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	state := make(chan string, 1)
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
		domain.EffectCharge: func(ctx context.Context, job Job) (Verdict, error) {
			if job.Effect != made.charge || job.Kind != domain.EffectCharge {
				return Verdict{}, errors.New("not the job's effect")
			}
			if err := settleCharge(t, b, ctx, job, nil); err != nil {
				return Verdict{}, err
			}
			var s string
			err := b.pool.QueryRow(ctx, `SELECT state FROM river_job WHERE id = $1`, job.ID).Scan(&s)
			state <- s
			return Verdict{}, err
		},
	})
	select {
	case s := <-state:
		require.Equal(t, "completed", s)
	case <-time.After(patience):
		require.FailNow(t, "the job never ran")
	}
	require.Equal(t, domain.EffectDone, b.load(t, made.charge).Status)
}

// TestIncident14_LostJobRowNeverUndoesASettlement (G3, G7): the job was deleted, rescued or is locked by somebody while
// its effect settles. Letting that error out would roll back what the provider has done already.
func TestIncident14_LostJobRowNeverUndoesASettlement(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"deleted":   `DELETE FROM river_job WHERE id = $1`,
		"rescued":   `UPDATE river_job SET state = 'retryable' WHERE id = $1`,
		"cancelled": `UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE id = $1`,
		"locked":    `SELECT FROM river_job WHERE id = $1 FOR UPDATE`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			made := b.book(t)
			settled := make(chan error, 10)
			b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
				domain.EffectCharge: func(ctx context.Context, job Job) (Verdict, error) {
					other, err := b.pool.Begin(ctx)
					if err != nil {
						return Verdict{}, err
					}
					defer func() { _ = other.Rollback(context.WithoutCancel(ctx)) }()
					if _, err := other.Exec(ctx, spoil, job.ID); err != nil {
						return Verdict{}, err
					}
					if name != "locked" {
						if err := other.Commit(ctx); err != nil {
							return Verdict{}, err
						}
					}
					err = settleCharge(t, b, ctx, job, func(tx pgx.Tx) { _, _ = tx.Exec(ctx, `SET LOCAL lock_timeout = '50ms'`) })
					settled <- err
					return Verdict{}, err
				},
			})
			select {
			case err := <-settled:
				require.NoError(t, err)
			case <-time.After(patience):
				require.FailNow(t, "the job never ran")
			}
			require.Equal(t, domain.EffectDone, b.load(t, made.charge).Status)
		})
	}
}

// TestIncident17_NothingOfAnErrorReachesRiver (G9): errors and panics may hold anything; River's rows are read by people
// and tools that need none of it. A panic's value stays out of the log, too.
func TestIncident17_NothingOfAnErrorReachesRiver(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]Handler{
		"error": func(context.Context, Job) (Verdict, error) { return Verdict{}, errors.New("pi_1_secret_sentinel") },
		"panic": func(context.Context, Job) (Verdict, error) { panic("pi_1_secret_sentinel") },
		"bug": func(_ context.Context, job Job) (Verdict, error) {
			return Verdict{After: []time.Duration{}[job.Snoozes]}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var log lockedBuffer
			b.logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			b.book(t)
			b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectCharge: handler})
			b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE cardinality(errors) > 0`)
			require.Zero(t, b.count(t, `SELECT count(*) FROM river_job j WHERE to_jsonb(j)::text LIKE '%sentinel%'`))
			require.Equal(t, 1, b.count(t, `SELECT count(*) FROM river_job WHERE errors[1] ->> 'trace' = ''`))
			if name == "panic" {
				require.NotContains(t, log.String(), "sentinel")
			}
			require.Contains(t, log.String(), `"outcome":"`)
		})
	}
}

// TestOneLinePerRun: the canonical line names effect, job, outcome and duration, and what the handler added.
func TestOneLinePerRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var log lockedBuffer
	b.logger = slog.New(slog.NewJSONHandler(&log, nil))
	made := b.book(t)
	w := b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
		domain.EffectCharge: func(_ context.Context, job Job) (Verdict, error) {
			job.Annotate(slog.String("booking_id", made.booking.String()))
			return Verdict{}, nil
		},
	})
	b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE state = 'completed'`)
	require.NoError(t, w.Stop(t.Context()))
	var lines []map[string]any
	for line := range bytes.Lines([]byte(log.String())) {
		var m map[string]any
		require.NoError(t, json.Unmarshal(line, &m))
		if m["msg"] == "job" {
			lines = append(lines, m)
		}
	}
	require.Len(t, lines, 1)
	require.Equal(t, made.booking.String(), lines[0]["booking_id"])
	require.Equal(t, made.charge.String(), lines[0]["effect_id"])
	require.Equal(t, "done", lines[0]["outcome"])
	require.Contains(t, lines[0], "job_id")
	require.Contains(t, lines[0], "duration_ms")
}

// TestRetriesAreOurs: River's own schedule waits for days and outlives the provider's key; ours stays within half a
// minute, and a job that was put off counts its turns.
func TestRetriesAreOurs(t *testing.T) {
	t.Parallel()
	job := &rivertype.JobRow{Attempt: 25}
	for n, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second} {
		job.Errors = make([]rivertype.AttemptError, n)
		before := time.Now()
		require.WithinRange(t, retryPolicy{}.NextRetry(job), before.Add(want), time.Now().Add(want))
	}
	job.Errors = make([]rivertype.AttemptError, 10_000)
	before := time.Now()
	require.WithinRange(t, retryPolicy{}.NextRetry(job), before.Add(maxRetry), time.Now().Add(maxRetry))
	require.Equal(t, 3, snoozes([]byte(`{"snoozes":3}`)))
	require.Zero(t, snoozes([]byte(`{"snoozes":"x"}`)))
}

// TestRetriesFollowOurSchedule: after six failures River would wait for more than half an hour.
func TestRetriesFollowOurSchedule(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.exec(t, `
		UPDATE river_job SET attempt = 6, errors = array_fill('{"at":"2030-01-01T00:00:00Z","attempt":1,"error":"x","trace":""}'::jsonb, ARRAY[6])
		 WHERE id = (SELECT job_id FROM outbox WHERE id = $1)`, made.charge)
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
		domain.EffectCharge: func(context.Context, Job) (Verdict, error) { return Verdict{}, errors.New("down") },
	})
	b.eventually(t, 1, `
		SELECT count(*) FROM river_job
		 WHERE state = 'retryable' AND attempt = 7 AND scheduled_at - attempted_at BETWEEN interval '29 seconds' AND interval '1 minute'`)
}

// TestSnoozeUsesUpNoAttempt (G6, incident 10): putting a job off is no failure, however often.
func TestSnoozeUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.book(t)
	var last atomic.Int64
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
		domain.EffectCharge: func(_ context.Context, job Job) (Verdict, error) {
			last.Store(int64(job.Snoozes))
			if job.Snoozes < 30 { // more than River's 25 attempts
				return Verdict{After: time.Millisecond}, nil
			}
			return Verdict{}, nil
		},
	})
	b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE state = 'completed' AND attempt = 1 AND errors IS NULL`)
	require.EqualValues(t, 30, last.Load())
}

// TestOneKindThatHangsHoldsUpNoOther (incident 14): each kind has its own queue and its own slots.
func TestOneKindThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.event(t, made.booking, domain.EventConfirmed)
	done := make(chan struct{})
	hangs := func(ctx context.Context, _ Job) (Verdict, error) {
		<-ctx.Done()
		return Verdict{}, ctx.Err()
	}
	w := b.workers(t, WorkersConfig{MaxWorkers: 1}, map[domain.EffectKind]Handler{
		domain.EffectCharge:  hangs,
		domain.EffectPublish: func(context.Context, Job) (Verdict, error) { close(done); return Verdict{}, nil },
	})
	wait(t, done)
	b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE kind = 'charge' AND state = 'running'`)
	// A stop that runs out of time cancels what runs, and the job is free at once for another process.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, w.Stop(ctx))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM river_job WHERE kind = 'charge' AND state = 'available' AND attempt = 0`))
}

// TestHeartbeat: a process is known as alive before it takes a job and no longer when it has stopped.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.book(t)
	seen := make(chan int, 1)
	w := b.workers(t, WorkersConfig{ID: "w1"}, map[domain.EffectKind]Handler{
		domain.EffectCharge: func(ctx context.Context, job Job) (Verdict, error) {
			var n int
			err := b.pool.QueryRow(ctx, `
				SELECT count(*) FROM outbox_workers w JOIN river_job j ON w.id = j.attempted_by[array_upper(j.attempted_by, 1)]
				 WHERE j.id = $1`, job.ID).Scan(&n)
			seen <- n
			return Verdict{}, err
		},
	})
	require.Equal(t, "w1", w.ID())
	select {
	case n := <-seen:
		require.Equal(t, 1, n)
	case <-time.After(patience):
		require.FailNow(t, "the job never ran")
	}
	var first time.Time
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT seen_at FROM outbox_workers WHERE id = 'w1'`).Scan(&first))
	b.eventually(t, 1, `SELECT count(*) FROM outbox_workers WHERE seen_at > $1`, first)
	require.NoError(t, w.Stop(t.Context()))
	require.Zero(t, b.count(t, `SELECT count(*) FROM outbox_workers`))
}

// TestWakerWakesWorkersThatHardlyPoll: River listens under the schema's name; a notification under any other topic is
// lost in silence, and only the polling would hide it.
func TestWakerWakesWorkersThatHardlyPoll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ran := make(chan domain.EffectID, 10)
	b.workers(t, WorkersConfig{FetchPollInterval: time.Hour}, map[domain.EffectKind]Handler{
		domain.EffectCharge: func(_ context.Context, job Job) (Verdict, error) { ran <- job.Effect; return Verdict{}, nil },
	})
	waker := NewWaker(b.pool, b.logger)
	defer waker.Close()
	made := b.book(t)
	again := time.NewTicker(10 * time.Millisecond) // River may not listen yet
	defer again.Stop()
	for timeout := time.After(patience); ; {
		waker.Wake(domain.EffectCharge)
		waker.Wake(domain.EffectCancel)
		select {
		case id := <-ran:
			require.Equal(t, made.charge, id)
			return
		case <-again.C:
		case <-timeout:
			require.FailNow(t, "nobody was woken")
		}
	}
}

// TestWorkersRefuseWhatHasNoJob: a handler for a kind without arguments would never be called.
func TestWorkersRefuseWhatHasNoJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, kind := range []domain.EffectKind{domain.EffectRefresh, "x"} {
		_, err := NewWorkers(b.pool, WorkersConfig{}, map[domain.EffectKind]Handler{kind: nil}, b.logger)
		require.Error(t, err)
	}
}

// lockedBuffer is a log that many goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
