package simulate

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/outbox"
)

// job is a row of River's.
type job struct {
	ID      int64
	Kind    string
	State   string
	Effect  uuid.UUID
	Snoozes int
}

const jobColumns = `id, kind, state::text AS state, (args->>'effect_id')::uuid AS effect, coalesce((metadata->>'snoozes')::int, 0) AS snoozes`

// jobsInOrder orders jobs by their effects: whoever revives several at once numbers them as it likes.
const jobsInOrder = ` ORDER BY (SELECT (o.created_at, o.id) FROM outbox o WHERE o.id = (args->>'effect_id')::uuid), id`

// jobs are those of River's rows that are in one of the states, oldest effect first; nil means all.
func (s *schedule) jobs(states ...string) []job {
	return rows[job](s, `
		SELECT `+jobColumns+` FROM river_job
		 WHERE $1::text[] IS NULL OR state::text = ANY ($1)`+jobsInOrder, states)
}

func waiting() []string { return []string{"available", "retryable", "scheduled"} }

// take runs a job as River does: it marks the row as running in this process, runs the handler, and writes down what came of
// it. Whoever dies leaves the row running.
func (s *schedule) take(j job) {
	s.workers++
	worker := fmt.Sprintf("worker_%d", s.workers)
	s.exec(`INSERT INTO outbox_workers (id, seen_at) VALUES ($1, clock_timestamp())`, worker)
	s.exec(`UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = clock_timestamp(), attempted_by = array_append(attempted_by, $2)
	         WHERE id = $1`, j.ID, worker)
	s.work("worker", j, func(v outbox.Verdict, err error) {
		switch {
		case err != nil:
			s.exec(`UPDATE river_job SET state = 'retryable', scheduled_at = clock_timestamp() + interval '1 second' WHERE id = $1 AND state = 'running'`, j.ID)
		case v.After > 0:
			s.exec(`UPDATE river_job SET state = 'scheduled', scheduled_at = clock_timestamp() + $2::interval, attempt = attempt - 1,
			               metadata = metadata || jsonb_build_object('snoozes', $3::int)
			         WHERE id = $1 AND state = 'running'`, j.ID, v.After, j.Snoozes+1)
		default:
			s.exec(`UPDATE river_job SET state = 'completed', finalized_at = clock_timestamp() WHERE id = $1 AND state = 'running'`, j.ID)
		}
	})
}

// twin runs a job's handler beside whatever becomes of its row: a rescued run that was not dead, or one that comes much too late.
func (s *schedule) twin(j job) { s.work("twin", j, func(outbox.Verdict, error) {}) }

func (s *schedule) work(who string, j job, after func(outbox.Verdict, error)) {
	s.spawn(fmt.Sprintf("%s(%s)", who, j.Kind), func(a *actor) {
		s.tell("%s takes job of effect %s", a.name, j.Effect)
		handle := s.handler(domain.EffectKind(j.Kind))
		if handle == nil {
			s.fail("jobs", "nobody carries out a %s", j.Kind)
			return
		}
		v, err := handle(s.ctx, outbox.Job{
			ID: j.ID, Effect: domain.EffectID{UUID: j.Effect}, Kind: domain.EffectKind(j.Kind), Snoozes: j.Snoozes,
			Complete: func(b *pgx.Batch) {
				b.Queue(`UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = $1 AND state = 'running'`, j.ID)
			},
		})
		s.outcome(a, err)
		after(v, err)
	})
}

// handler is a process's for a kind of jobs.
func (s *schedule) handler(kind domain.EffectKind) outbox.Handler {
	p := s.process()
	switch kind {
	case domain.EffectCharge:
		return p.Charge
	case domain.EffectCancel:
		return p.Fence
	case domain.EffectRefund:
		return p.Refund
	case domain.EffectPublish:
		return s.drain().Work
	case domain.EffectRefresh:
	}
	return nil
}

// outcome tells how a piece of work ended. An error must have a cause: nothing but a cut connection is one.
func (s *schedule) outcome(a *actor, err error) {
	switch {
	case err == nil:
		s.tell("%s is done", a.name)
	case a.cut:
		s.tell("%s fails: %s", a.name, err)
	default:
		s.fail("errors", "%s fails without a cause: %s", a.name, err)
	}
}

// rows reads rows with the simulation's own connection.
func rows[T any](s *schedule, sql string, args ...any) []T {
	found, err := s.site.db.Query(s.ctx, sql, args...)
	if err != nil {
		s.broken(err)
		return nil
	}
	got, err := pgx.CollectRows(found, pgx.RowToStructByName[T])
	if err != nil {
		s.broken(err)
	}
	return got
}

// scalar reads one value.
func scalar[T any](s *schedule, sql string, args ...any) T {
	var v T
	if err := s.site.db.QueryRow(s.ctx, sql, args...).Scan(&v); err != nil {
		s.broken(err)
	}
	return v
}

func (s *schedule) exec(sql string, args ...any) {
	if _, err := s.site.db.Exec(s.ctx, sql, args...); err != nil {
		s.broken(fmt.Errorf("%s: %w", sql, err))
	}
}
