package outbox

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// lost is what can become of a job's row while its effect is pending: by hand, by another version, by River itself.
var lost = map[string]string{
	"deleted":   `DELETE FROM river_job WHERE id = $1`,
	"cancelled": `UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE id = $1`,
	"discarded": `UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE id = $1`,
}

// TestIncident14_ALostWaitingJobIsMadeAgain (G3, G5): the job is lost before anybody took it. Nothing happens until the
// sweep, whose first look gives the effect one new job; that carries it out, once, and nothing else is touched.
func TestIncident14_ALostWaitingJobIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, spoil := range lost {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			made, other := b.book(t), b.book(t)
			b.young(t)
			b.exec(t, spoil, b.load(t, made.charge).JobID)
			handler := &carrier{b: b}
			b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectCharge: handler.work})
			b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE state = 'completed'`)
			require.Zero(t, handler.acted(made.charge))
			require.Equal(t, domain.EffectPending, b.load(t, made.charge).Status)

			require.Equal(t, 1, b.sweep(t))
			b.eventually(t, 2, `SELECT count(*) FROM river_job WHERE state = 'completed'`)
			require.Zero(t, b.sweep(t))
			for _, id := range []domain.EffectID{made.charge, other.charge} {
				require.Equal(t, 1, handler.acted(id))
				require.Equal(t, domain.EffectDone, b.load(t, id).Status)
			}
			require.Zero(t, b.count(t, `SELECT count(*) FROM river_job WHERE state IN ('available', 'running', 'retryable')`))
		})
	}
}

// TestIncident14_AJobLostWhileItRuns (G3, G5): the row is lost under a run that stands still. The sweep cannot know of the
// run and starts another, which carries the effect out; the first wakes up, finds that, and does nothing.
func TestIncident14_AJobLostWhileItRuns(t *testing.T) {
	t.Parallel()
	for name, spoil := range lost {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			made := b.book(t)
			b.young(t)
			first := *b.load(t, made.charge).JobID
			var runs atomic.Int64
			standing, wake, woken := make(chan struct{}), make(chan struct{}), make(chan struct{})
			handler := &carrier{b: b, before: func(ctx context.Context, _ Job) error {
				if runs.Add(1) > 1 {
					return nil
				}
				close(standing)
				select {
				case <-wake:
				case <-ctx.Done():
				}
				return ctx.Err()
			}}
			b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
				domain.EffectCharge: func(ctx context.Context, job Job) (Verdict, error) {
					v, err := handler.work(ctx, job)
					if job.ID == first {
						close(woken)
					}
					return v, err
				},
			})
			wait(t, standing)
			require.Zero(t, b.sweep(t), "a job that runs in a living process is not lost")
			b.exec(t, spoil, first)
			require.Equal(t, 1, b.sweep(t))
			b.eventually(t, 1, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'done'`, made.charge)
			b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE state = 'completed'`)
			close(wake)
			wait(t, woken)
			require.EqualValues(t, 2, runs.Load())
			require.Equal(t, 1, handler.acted(made.charge))
			require.Zero(t, b.sweep(t))
			require.Equal(t, 1, b.count(t, `SELECT count(*) FROM river_job WHERE id <> $1`, first))
		})
	}
}

// cancelRunning cancels a running job as River's own tools do, again until the run hears of it: River may not listen yet.
func cancelRunning(t *testing.T, b *testBundle, id int64, heard <-chan error) error {
	t.Helper()
	client, err := river.NewClient(riverpgxv5.New(b.pool), &river.Config{})
	require.NoError(t, err)
	var cause error
	require.Eventually(t, func() bool {
		if _, err := client.JobCancel(t.Context(), id); err != nil {
			return false
		}
		select {
		case cause = <-heard:
			return true
		default:
			return false
		}
	}, patience, patience/1000)
	return cause
}

// TestIncident14_ACancelledRunLosesNoEffect (G3, G5): somebody cancels the job of a charge while it is carried out. The
// run's context ends, River never runs the job again, and the effect is carried out by the job that the sweep makes.
func TestIncident14_ACancelledRunLosesNoEffect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.young(t)
	var runs atomic.Int64
	begun, heard := make(chan struct{}), make(chan error, 1)
	handler := &carrier{b: b, before: func(ctx context.Context, _ Job) error {
		if runs.Add(1) == 1 {
			close(begun)
			<-ctx.Done()
			heard <- context.Cause(ctx)
		}
		return ctx.Err()
	}}
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectCharge: handler.work})
	wait(t, begun)
	job := *b.load(t, made.charge).JobID
	require.ErrorIs(t, cancelRunning(t, b, job, heard), rivertype.ErrJobCancelledRemotely)
	b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE id = $1 AND state = 'cancelled'`, job)
	require.Equal(t, domain.EffectPending, b.load(t, made.charge).Status)
	require.Zero(t, handler.acted(made.charge))

	require.Equal(t, 1, b.sweep(t))
	b.eventually(t, 1, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'done'`, made.charge)
	require.Equal(t, 1, handler.acted(made.charge))
	require.Zero(t, b.sweep(t))
}

// TestIncident14_ACancelledPublishIsToldOnce (G6): the job of two events is cancelled when the stream has the first and the
// drain has not heard of it. Neither is lost or parked, the order holds, and the stream drops the repeat.
func TestIncident14_ACancelledPublishIsToldOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	made := b.book(t)
	confirmed := b.event(t, made.booking, domain.EventConfirmed)
	var sends atomic.Int64
	begun, heard := make(chan struct{}), make(chan error, 1)
	publisher := publisherFunc(func(ctx context.Context, m Message) (Ack, error) {
		ack, err := js.Publish(ctx, m)
		if sends.Add(1) > 1 {
			return ack, err
		}
		close(begun)
		<-ctx.Done()
		heard <- context.Cause(ctx)
		return Ack{}, errors.New("no acknowledgement in time")
	})
	drain := NewDrain(b.pool, publisher, DrainConfig{Timeout: patience}, b.logger)
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectPublish: drain.Work})
	wait(t, begun)
	job := *b.load(t, confirmed).JobID
	require.ErrorIs(t, cancelRunning(t, b, job, heard), rivertype.ErrJobCancelledRemotely)
	b.eventually(t, 1, `SELECT count(*) FROM river_job WHERE id = $1 AND state = 'cancelled'`, job)
	e := b.load(t, made.held)
	require.Equal(t, domain.EffectPending, e.Status)
	require.Zero(t, e.Attempts)

	b.exec(t, `UPDATE outbox SET created_at = created_at - interval '16 seconds' WHERE kind = 'publish'`) // no longer young
	require.Equal(t, 1, b.sweep(t), "one job for the booking's events")
	b.eventually(t, 2, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done'`)
	require.True(t, b.load(t, made.held).Duplicate)
	require.False(t, b.load(t, confirmed).Duplicate)
	requireInOrder(t, told(t, js), 1)
	copies := requireToldWhereTheRowsSay(t, b, js)
	require.Equal(t, 1, copies[made.held.String()])
	require.Zero(t, b.sweep(t))
}
