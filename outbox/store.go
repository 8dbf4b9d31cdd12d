package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Append queues an effect and the River job that carries it. Both exist if, and only if, the batch's transaction commits.
// Workers find the job by polling; a [Waker] told after the commit makes that faster. Events are appended by AppendEvent.
func Append(b *pgx.Batch, booking domain.BookingID, kind domain.EffectKind) domain.EffectID {
	id := domain.NewID[domain.EffectID]()
	postgres.Exec(b, "append an effect", `
		INSERT INTO outbox (id, booking_id, kind, due_at, job_id, created_at)
		VALUES ($1, $2, $3, clock_timestamp(), enqueue_job($3, $1, now()), clock_timestamp())`,
		id, booking, kind)
	return id
}

// AppendEvent queues what happened to a booking and the job that publishes it. seq is the booking's event_seq, taken
// under the booking's lock in this same transaction: that makes a booking's events become visible in their order, which
// publishing in order rests on.
func AppendEvent(b *pgx.Batch, booking domain.BookingID, seq int64, typ domain.EventType, data domain.EventData) error {
	payload, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode %s event of booking %s: %w", typ, booking, err)
	}
	postgres.Exec(b, "append an event", `
		INSERT INTO outbox (id, booking_id, kind, event_type, event_seq, payload, due_at, job_id, created_at)
		VALUES ($1, $2, 'publish', $3, $4, $5::text::jsonb, clock_timestamp(), enqueue_job('publish', $1, now()), clock_timestamp())`,
		domain.NewID[domain.EffectID](), booking, typ, seq, string(payload))
	return nil
}

// UnfinishedMoney selects the bookings that have an unfinished charge, cancel or refund effect: those for which something may
// still be sent to the provider. It is a subquery for the owner of other tables, and has an index.
const UnfinishedMoney = `SELECT booking_id FROM outbox WHERE status IN ('pending', 'in_doubt', 'parked') AND kind IN ('charge', 'cancel', 'refund')`

const (
	selectEffect = `SELECT ` + effectColumns + ` FROM outbox o WHERE o.id = $1`
	lockEffect   = selectEffect + ` FOR UPDATE`
)

// Load reads one effect. It returns domain.ErrNotFound if there is none.
func Load(ctx context.Context, q postgres.Querier, id domain.EffectID) (Effect, error) {
	return one(ctx, q, id, selectEffect)
}

func one(ctx context.Context, q postgres.Querier, id domain.EffectID, query string) (Effect, error) {
	rows, err := q.Query(ctx, query, id)
	if err != nil {
		return Effect{}, fmt.Errorf("read effect %s: %w", id, err)
	}
	e, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Effect])
	if errors.Is(err, pgx.ErrNoRows) {
		return Effect{}, domain.ErrNotFound
	}
	if err != nil {
		return Effect{}, fmt.Errorf("read effect %s: %w", id, err)
	}
	return e, nil
}

// Lock queues the reading of one effect into e, and locks its row until the batch's transaction ends. If there is none,
// e stays as it is.
func Lock(b *pgx.Batch, id domain.EffectID, e *Effect) {
	postgres.One(b, "lock an effect", func(row Effect) { *e = row }, lockEffect, id)
}

// CountAttempt queues the counting of one attempt at the effect. The count is ours, since River's goes with its row.
func CountAttempt(b *pgx.Batch, id domain.EffectID) {
	postgres.Exec(b, "count an attempt at an effect", `UPDATE outbox SET attempts = attempts + 1 WHERE id = $1`, id)
}

// Finish queues what became of the booking's effects of a kind: done or not_needed closes every one that is unfinished,
// parked ones included; in_doubt hands those that are pending or parked to the reconciler, due now, and leaves alone
// what is in doubt already, which somebody may be looking at. Having nothing to finish is fine.
func Finish(b *pgx.Batch, booking domain.BookingID, kind domain.EffectKind, to domain.EffectStatus) error {
	var query string
	switch to {
	case domain.EffectDone, domain.EffectNotNeeded:
		query = `
			UPDATE outbox SET status = $3, finished_at = clock_timestamp()
			 WHERE booking_id = $1 AND kind = $2 AND status IN ('pending', 'in_doubt', 'parked')`
	case domain.EffectInDoubt:
		query = `
			UPDATE outbox SET status = $3, due_at = clock_timestamp()
			 WHERE booking_id = $1 AND kind = $2 AND status IN ('pending', 'parked')`
	case domain.EffectPending, domain.EffectParked, domain.EffectDiscarded:
		return fmt.Errorf("finish %s effects of booking %s: %s is no end", kind, booking, to)
	default:
		return fmt.Errorf("finish %s effects of booking %s: there is no status %q", kind, booking, to)
	}
	postgres.Exec(b, "finish an effect", query, booking, kind, to)
	return nil
}

// Done queues that one effect has happened. A finished one stays as it is.
func Done(b *pgx.Batch, id domain.EffectID) {
	postgres.Exec(b, "finish an effect", `
		UPDATE outbox SET status = 'done', finished_at = clock_timestamp()
		 WHERE id = $1 AND status IN ('pending', 'in_doubt', 'parked')`, id)
}

// Doubt queues that an effect is handed to the reconciler, which looks at it after due. An effect that is neither pending
// nor in doubt any more stays as it is: somebody has ended the doubt meanwhile, or parked it.
// lastError is shown to operators; it must hold nothing that the provider or a driver said.
func Doubt(b *pgx.Batch, id domain.EffectID, lastError string, due time.Duration) {
	postgres.Exec(b, "put an effect in doubt", `
		UPDATE outbox SET status = 'in_doubt', last_error = $2, due_at = clock_timestamp() + $3::interval
		 WHERE id = $1 AND status IN ('pending', 'in_doubt')`, id, lastError, due)
}

// Park queues that an effect is left to a person: nothing happens to it until it is replayed. A finished effect stays as
// it is.
func Park(b *pgx.Batch, id domain.EffectID, lastError string) {
	postgres.Exec(b, "park an effect", `
		UPDATE outbox SET status = 'parked', last_error = $2, due_at = clock_timestamp()
		 WHERE id = $1 AND status IN ('pending', 'in_doubt')`, id, lastError)
}

// Note queues why an effect has not happened yet and when it is tried next; an empty lastError keeps the one before.
// Its status stays, and a finished effect stays as it is.
func Note(b *pgx.Batch, id domain.EffectID, lastError string, due time.Duration) {
	postgres.Exec(b, "note why an effect waits", `
		UPDATE outbox SET last_error = coalesce(nullif($2, ''), last_error), due_at = clock_timestamp() + $3::interval
		 WHERE id = $1 AND status IN ('pending', 'in_doubt')`, id, lastError, due)
}

// ClaimDoubt takes the charge, cancel or refund effect whose doubt is due for longest, and puts its next turn lease ahead, so
// that no other reconciler takes it meanwhile and a crash delays it by no more than that. It returns false if none is
// due. If the answer is lost, an effect may have been claimed by nobody: it comes up again after lease.
//
// It looks for status and due time and remembers no position, so an effect that becomes visible late is not passed over.
func ClaimDoubt(ctx context.Context, pool *pgxpool.Pool, lease time.Duration) (Effect, bool, error) {
	rows, err := pool.Query(ctx, `
		WITH due AS (
			SELECT id FROM outbox
			 WHERE status = 'in_doubt' AND kind IN ('charge', 'cancel', 'refund') AND due_at <= clock_timestamp()
			 ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
		)
		UPDATE outbox o SET due_at = clock_timestamp() + $1::interval
		  FROM due WHERE o.id = due.id
		RETURNING `+effectColumns, lease)
	if err != nil {
		return Effect{}, false, fmt.Errorf("claim a doubt: %w", err)
	}
	e, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Effect])
	if errors.Is(err, pgx.ErrNoRows) {
		return Effect{}, false, nil
	}
	if err != nil {
		return Effect{}, false, fmt.Errorf("claim a doubt: %w", err)
	}
	return e, true, nil
}

// Paused queues the question whether an operator has paused effects of this kind.
func Paused(b *pgx.Batch, kind domain.EffectKind, paused *bool) {
	b.Queue(`SELECT EXISTS (SELECT FROM outbox_pauses WHERE kind = $1)`, kind).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(paused); err != nil {
			return fmt.Errorf("read whether %s is paused: %w", kind, err)
		}
		return nil
	})
}
