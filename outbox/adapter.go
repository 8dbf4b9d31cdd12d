package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/internal/telemetry"
)

const (
	firstRetry = time.Second
	maxRetry   = 30 * time.Second
)

// What River stores of a run that failed. The texts are constant: an error's own text goes to the log only, since it may
// come from anywhere, and River's rows are read by people and tools that need no more.
var (
	errTrouble  = errors.New("the run failed; see the log")
	errPanicked = errors.New("the handler panicked; see the log")
)

// adapter makes a River worker of a Handler.
type adapter[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	kind   domain.EffectKind
	handle Handler
	effect func(T) domain.EffectID
	logger *slog.Logger
}

func newAdapter[T river.JobArgs](
	kind domain.EffectKind, handle Handler, logger *slog.Logger, effect func(T) domain.EffectID,
) *adapter[T] {
	return &adapter[T]{kind: kind, handle: handle, effect: effect, logger: logger}
}

// line is what a handler adds to the one line that is logged for a run.
type line struct{ attrs []slog.Attr }

// Work runs the handler and logs one line.
func (a *adapter[T]) Work(ctx context.Context, rjob *river.Job[T]) error {
	start := time.Now()
	ctx = telemetry.WithTrace(ctx, telemetry.NewTrace()) // joins this run's line and those of the sends that it makes
	job := Job{
		ID:       rjob.ID,
		Effect:   a.effect(rjob.Args),
		Kind:     a.kind,
		Snoozes:  snoozes(rjob.Metadata),
		Complete: func(b *pgx.Batch) { complete(b, rjob.ID) },
		line:     &line{},
	}
	verdict, err := a.run(ctx, job)
	outcome, result := judge(ctx, verdict, err)
	attrs := append([]slog.Attr{
		slog.String("kind", string(a.kind)),
		slog.String("effect_id", job.Effect.String()),
		slog.Int64("job_id", job.ID),
		slog.String("outcome", outcome),
		slog.Float64("duration_ms", float64(time.Since(start).Microseconds())/1000),
	}, job.line.attrs...)
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	if verdict.After > 0 {
		attrs = append(attrs, slog.Float64("after_ms", float64(verdict.After.Milliseconds())))
	}
	a.logger.LogAttrs(ctx, level, "job", attrs...)
	return result
}

// run keeps a panic from reaching River, which would store the panic's value and trace.
func (a *adapter[T]) run(ctx context.Context, job Job) (verdict Verdict, err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		what := fmt.Sprintf("%T", v) // not its value: it may hold anything
		if e, ok := v.(runtime.Error); ok {
			what = e.Error()
		}
		job.Annotate(slog.String("stack", string(debug.Stack())))
		verdict, err = Verdict{}, fmt.Errorf("%w: %s", errPanicked, what)
	}()
	return a.handle(ctx, job)
}

// judge tells what a run is called in the log, and what River is told.
func judge(ctx context.Context, v Verdict, err error) (string, error) {
	switch {
	case err == nil && v.After > 0:
		return "snoozed", river.JobSnooze(v.After)
	case err == nil:
		return "done", nil
	case errors.Is(err, errPanicked):
		return "panicked", errPanicked
	case errors.Is(ctx.Err(), context.Canceled):
		return "stopped", context.Canceled // River makes the job available at once, without counting the attempt
	default:
		return "failed", errTrouble
	}
}

// complete queues what River's own JobCompleteTx does (a contract test compares the two), without waiting for the row
// and without failing: whatever is wrong with it is no reason to undo what the transaction settles. River's takes one
// large statement behind a savepoint, which was the dearest of the path after the commits.
func complete(b *pgx.Batch, id int64) {
	postgres.Exec(b, "complete a job", `
		UPDATE river_job SET state = 'completed', finalized_at = now()
		 WHERE id = (SELECT id FROM river_job WHERE id = $1 AND state = 'running' FOR UPDATE SKIP LOCKED)`, id)
}

// snoozes reads how often River has put a job off. What cannot be read counts as never: it only makes the next wait
// shorter.
func snoozes(metadata []byte) int {
	var m struct {
		Snoozes int `json:"snoozes"`
	}
	_ = json.Unmarshal(metadata, &m)
	return m.Snoozes
}

// retryPolicy is the schedule after a failed run: from one second, doubling, to half a minute. It ends with River's
// attempts; the sweep then gives the effect a new job.
type retryPolicy struct{}

// NextRetry says when a job runs again after it failed.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	return time.Now().Add(backoff(firstRetry, maxRetry, len(job.Errors)))
}

// backoff is first, doubled n times, but never more than limit.
func backoff(first, limit time.Duration, n int) time.Duration {
	d := first
	for range n {
		if d >= limit {
			break
		}
		d *= 2
	}
	return min(d, limit)
}
