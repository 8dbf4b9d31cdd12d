package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/postgres"
)

const (
	sweepLock  = 0x486f6c64_73776570 // an advisory lock: any number that nobody else uses
	sweepBatch = 500
)

// carried is an SQL condition: a live job carries effect o. Live is a job that waits, or one that runs in a process that
// was seen in the last 15 s. An event is carried by a job of any event of its booking, since each drains them all; the
// held event, which has no job of its own, is given 15 s to be.
const carried = `(
	o.kind = 'publish' AND o.job_id IS NULL AND o.created_at > clock_timestamp() - interval '15 seconds'
	OR EXISTS (
		SELECT FROM outbox c
		  JOIN river_job j ON j.id = c.job_id
		 WHERE c.booking_id = o.booking_id AND c.kind = o.kind AND (c.id = o.id OR o.kind = 'publish')
		   AND (j.state IN ('available', 'pending', 'retryable', 'scheduled')
		        OR j.state = 'running' AND EXISTS (
		            SELECT FROM outbox_workers w
		             WHERE w.id = j.attempted_by[array_upper(j.attempted_by, 1)]
		               AND w.seen_at > clock_timestamp() - interval '15 seconds'))))`

// heldBack is an SQL condition: an earlier event of the same booking is unfinished.
const heldBack = `(o.kind = 'publish' AND EXISTS (
	SELECT FROM outbox b
	 WHERE b.booking_id = o.booking_id AND b.kind = 'publish' AND b.event_seq < o.event_seq
	   AND b.status IN ('pending', 'in_doubt', 'parked')))`

// Sweep gives a new job to pending effects that no live job carries: the job's row is gone, it was completed, cancelled
// or discarded, or it runs in a process that has died. Of a booking's events only the lowest unfinished one gets a job,
// which drains the rest; if that one is parked, none does. It returns how many it revived, at most a few hundred; call
// it again until it returns 0. While another process sweeps it does nothing.
//
// It may be wrong, and that is harmless: a process taken for dead may only be stalled, and a job may be committed as the
// sweep looks. Then an effect has two jobs. Both read the effect's row before they act, a charge is sent under the same
// stored key, an event under the same id, and the second finds the effect finished.
func Sweep(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	err = postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		var locked bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, int64(sweepLock)).Scan(&locked); err != nil || !locked {
			return err
		}
		tag, err := tx.Exec(ctx, `
			WITH lost AS (
				SELECT o.id FROM outbox o
				 WHERE o.status = 'pending' AND NOT `+carried+` AND NOT `+heldBack+`
				 ORDER BY o.due_at LIMIT $1
				   FOR UPDATE OF o SKIP LOCKED
			)
			UPDATE outbox o SET job_id = enqueue_job(o.kind, o.id, now())
			  FROM lost WHERE o.id = lost.id`, sweepBatch)
		if err != nil {
			return err
		}
		n = int(tag.RowsAffected())
		_, err = tx.Exec(ctx, `DELETE FROM outbox_workers WHERE seen_at < clock_timestamp() - interval '1 hour'`)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("sweep the outbox: %w", err)
	}
	return n, nil
}
