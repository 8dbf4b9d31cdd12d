package outbox

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// DeadAfter is how long nothing must be heard of a worker process before it counts as dead, unless a setting says
// otherwise.
const DeadAfter = 15 * time.Second

const (
	sweepLock   = 0x486f6c64_73776570 // an advisory lock: any number that nobody else uses
	sweepBatch  = 1000
	sweepBudget = 20_000
)

// live is an SQL condition: job j waits, or runs in a process that was seen within @dead_after; and it is a job that
// workers of this version take, which one of another kind or in another queue is not. River's state pending means that
// somebody else will set the job going, and nobody does. A CASE, since a job is to be found by its id: the planner must not
// think of the index of kinds.
const live = `CASE WHEN j.kind = o.kind AND j.queue = o.kind THEN (
	j.state IN ('available', 'retryable', 'scheduled')
	OR j.state = 'running' AND EXISTS (
		SELECT FROM outbox_workers w
		 WHERE w.id = j.attempted_by[array_upper(j.attempted_by, 1)]
		   AND w.seen_at > clock_timestamp() - @dead_after::interval)) ELSE false END`

// carried is an SQL condition: a live job carries effect o. Its own job comes first, since that is one look into an
// index and answers for almost all. An event is carried by a job of any event of its booking, since each drains them
// all; the held event, which has no job of its own, is given 15 s to be.
const carried = `(
	EXISTS (SELECT FROM river_job j WHERE j.id = o.job_id AND ` + live + `)
	OR o.kind = 'publish' AND (
		o.job_id IS NULL AND o.created_at > clock_timestamp() - interval '15 seconds'
		OR EXISTS (
			SELECT FROM outbox c
			  JOIN river_job j ON j.id = c.job_id
			 WHERE c.booking_id = o.booking_id AND c.kind = 'publish' AND ` + live + `)))`

// fate is an SQL expression: in words, why no live job carries the pending effect o; empty if one does.
const fate = `
	CASE WHEN o.status <> 'pending' OR ` + carried + ` THEN ''
	     WHEN o.job_id IS NULL THEN 'it never had one'
	     ELSE coalesce((
		SELECT CASE WHEN j.kind <> o.kind THEN 'its job is of the kind ' || left(j.kind, 60) || ', which this version does not know'
		            WHEN j.queue <> o.kind THEN 'its job is in the queue ' || left(j.queue, 60) || ', which nobody works'
		            WHEN j.state = 'running' THEN 'its job runs in a process that is not heard of: killed, or stalled'
		            ELSE 'its job is ' || j.state END
		  FROM river_job j WHERE j.id = o.job_id), 'its job is gone') END`

// heldBack is an SQL condition: an earlier event of the same booking is unfinished.
const heldBack = `(o.kind = 'publish' AND EXISTS (
	SELECT FROM outbox b
	 WHERE b.booking_id = o.booking_id AND b.kind = 'publish' AND b.event_seq < o.event_seq
	   AND b.status IN ('pending', 'in_doubt', 'parked')))`

// SweepConfig sets up a sweep. Zero values take the defaults.
type SweepConfig struct {
	DeadAfter time.Duration      // a process not seen for so long is dead; default 15 s
	Budget    int                // most effects that one call looks at; default 20,000
	Revived   prometheus.Counter // of NewRevivedCounter; counts the jobs that were made anew; default: nobody counts
}

// Sweeper gives a new job to pending effects that no live job carries: the job's row is gone, it was completed, cancelled
// or discarded, it runs in a process that has died, or it is none that workers of this version take. Of a booking's events only the lowest unfinished one gets a job,
// which drains the rest; if that one is parked, none does.
//
// It may be wrong, and that is harmless: a process taken for dead may only be stalled, and a job may be committed as the
// sweep looks. Then an effect has two jobs. Both read the effect's row before they act, a charge is sent under the same
// stored key, an event under the same id, and the second finds the effect finished.
//
// A Sweeper is for one goroutine.
type Sweeper struct {
	pool *pgxpool.Pool
	cfg  SweepConfig
	at   position
}

// position is how far a sweep has come. It is only a place to go on from: a lost effect stays where it is, so losing the
// position means nothing but a new start.
type position struct {
	due time.Time
	id  domain.EffectID
}

// NewSweeper sets up a sweeper, which begins with what is due for longest.
func NewSweeper(pool *pgxpool.Pool, cfg SweepConfig) *Sweeper {
	cfg.DeadAfter = cmp.Or(cfg.DeadAfter, DeadAfter)
	cfg.Budget = cmp.Or(cfg.Budget, sweepBudget)
	return &Sweeper{pool: pool, cfg: cfg}
}

// Sweep looks at pending effects, the oldest due first, and revives those that are lost; it returns how many. It looks
// at no more than its budget, however many wait behind a broker that is away: the next call goes on from there, and
// begins anew after the last. While another process sweeps it does nothing.
func (s *Sweeper) Sweep(ctx context.Context) (revived int, err error) {
	for looked := 0; looked < s.cfg.Budget; looked += sweepBatch {
		n, more, err := s.batch(ctx, min(sweepBatch, s.cfg.Budget-looked))
		revived += n
		if s.cfg.Revived != nil {
			s.cfg.Revived.Add(float64(n))
		}
		if err != nil || !more {
			return revived, err
		}
	}
	return revived, nil
}

// batch sweeps the next few effects. It returns more if there are others behind them.
func (s *Sweeper) batch(ctx context.Context, size int) (revived int, more bool, err error) {
	var locked bool
	var walked int
	var due *time.Time
	var id *domain.EffectID
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, int64(sweepLock)).Scan(&locked); err != nil || !locked {
			return err
		}
		if s.at == (position{}) {
			if err := forgetDead(ctx, tx); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, sweepQuery, pgx.NamedArgs{
			"after_due": s.at.due, "after_id": s.at.id, "size": size, "dead_after": s.cfg.DeadAfter,
		}).Scan(&walked, &revived, &due, &id)
	})
	if err != nil {
		return 0, false, fmt.Errorf("sweep the outbox: %w", err)
	}
	if !locked {
		return 0, false, nil
	}
	if walked < size || due == nil || id == nil {
		s.at = position{}
		return revived, false, nil
	}
	s.at = position{due: *due, id: *id}
	return revived, true, nil
}

// sweepQuery walks the index of what is unfinished. Only the lost ones are locked, and looked at again once they are:
// what was carried on, or given another job, meanwhile is left alone.
const sweepQuery = `
	WITH walked AS MATERIALIZED (
		SELECT o.id, o.booking_id, o.kind, o.event_seq, o.job_id, o.due_at, o.created_at
		  FROM outbox o
		 WHERE o.status = 'pending' AND (o.due_at, o.id) > (@after_due::timestamptz, @after_id::uuid)
		 ORDER BY o.due_at, o.id LIMIT @size
	), lost AS MATERIALIZED (
		SELECT o.id, o.job_id FROM walked o WHERE NOT ` + carried + ` AND NOT ` + heldBack + `
	), locked AS (
		SELECT o.id FROM outbox o JOIN lost ON lost.id = o.id
		 WHERE o.status = 'pending' AND o.job_id IS NOT DISTINCT FROM lost.job_id
		   FOR UPDATE OF o SKIP LOCKED
	), revived AS (
		UPDATE outbox o SET job_id = enqueue_job(o.kind, o.id, now())
		  FROM locked WHERE o.id = locked.id
		RETURNING o.id
	)
	SELECT (SELECT count(*) FROM walked), (SELECT count(*) FROM revived), last.due_at, last.id
	  FROM (SELECT) AS always
	  LEFT JOIN (SELECT due_at, id FROM walked ORDER BY due_at DESC, id DESC LIMIT 1) AS last ON true`

// forgetDead removes the rows of processes that ended without a word, which would pile up with every restart.
func forgetDead(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM outbox_workers WHERE seen_at < clock_timestamp() - interval '1 hour'`)
	return err
}
