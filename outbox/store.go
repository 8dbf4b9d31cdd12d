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

// NewEffect is an effect that is about to be committed with its cause.
type NewEffect struct {
	BookingID domain.BookingID
	Kind      domain.EffectKind // not publish: events are appended by AppendEvent
}

// Append writes an effect and the River job that carries it. Both exist if, and only if, tx commits. Workers find the
// job by polling; a [Waker] told after the commit makes that faster.
func Append(ctx context.Context, tx pgx.Tx, e NewEffect) (domain.EffectID, error) {
	id := domain.NewID[domain.EffectID]()
	_, err := tx.Exec(ctx, `
		INSERT INTO outbox (id, booking_id, kind, due_at, job_id, created_at)
		VALUES (@id, @booking, @kind, clock_timestamp(), enqueue_job(@kind, @id, now()), clock_timestamp())`,
		pgx.NamedArgs{"id": id, "booking": e.BookingID, "kind": e.Kind})
	if err != nil {
		return domain.EffectID{}, fmt.Errorf("append %s effect of booking %s: %w", e.Kind, e.BookingID, err)
	}
	return id, nil
}

// AppendParked writes an effect that only a person can carry out, with the reason. It has no job.
func AppendParked(
	ctx context.Context, tx pgx.Tx, booking domain.BookingID, kind domain.EffectKind, reason string,
) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO outbox (id, booking_id, kind, status, last_error, due_at, created_at)
		VALUES ($1, $2, $3, 'parked', $4, clock_timestamp(), clock_timestamp())`,
		domain.NewID[domain.EffectID](), booking, kind, reason)
	if err != nil {
		return fmt.Errorf("append parked %s effect of booking %s: %w", kind, booking, err)
	}
	return nil
}

// AppendEvent writes what happened to a booking and the job that publishes it. seq is the booking's event_seq, taken
// under the booking's lock in this same transaction: that makes a booking's events become visible in their order, which
// publishing in order rests on.
func AppendEvent(
	ctx context.Context, tx pgx.Tx, booking domain.BookingID, seq int64, typ domain.EventType, data domain.EventData,
) error {
	payload, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode %s event of booking %s: %w", typ, booking, err)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO outbox (id, booking_id, kind, event_type, event_seq, payload, due_at, job_id, created_at)
		VALUES (@id, @booking, 'publish', @type, @seq, @payload::jsonb, clock_timestamp(),
		        enqueue_job('publish', @id, now()), clock_timestamp())`,
		pgx.NamedArgs{
			"id": domain.NewID[domain.EffectID](), "booking": booking, "type": typ, "seq": seq, "payload": string(payload),
		})
	if err != nil {
		return fmt.Errorf("append %s event of booking %s: %w", typ, booking, err)
	}
	return nil
}

// Load reads one effect. It returns domain.ErrNotFound if there is none.
func Load(ctx context.Context, q postgres.Querier, id domain.EffectID) (Effect, error) {
	return one(ctx, q, id, `SELECT `+effectColumns+` FROM outbox o WHERE o.id = $1`)
}

// LockEffect reads one effect and locks its row until tx ends. It returns domain.ErrNotFound if there is none.
func LockEffect(ctx context.Context, tx pgx.Tx, id domain.EffectID) (Effect, error) {
	return one(ctx, tx, id, `SELECT `+effectColumns+` FROM outbox o WHERE o.id = $1 FOR UPDATE`)
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

// CountAttempt counts one attempt at the effect. The count is ours, since River's goes with its row.
func CountAttempt(ctx context.Context, tx pgx.Tx, id domain.EffectID) error {
	_, err := tx.Exec(ctx, `UPDATE outbox SET attempts = attempts + 1 WHERE id = $1`, id)
	if err != nil {
		return fmt.Errorf("count an attempt at effect %s: %w", id, err)
	}
	return nil
}

// Finish says what became of the booking's effects of a kind: done or not_needed closes every one that is unfinished,
// parked ones included; in_doubt hands those that are pending or parked to the reconciler, due now, and leaves alone
// what is in doubt already, which somebody may be looking at. Having nothing to finish is fine.
func Finish(
	ctx context.Context, tx pgx.Tx, booking domain.BookingID, kind domain.EffectKind, to domain.EffectStatus,
) error {
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
	if _, err := tx.Exec(ctx, query, booking, kind, to); err != nil {
		return fmt.Errorf("finish %s effects of booking %s: %w", kind, booking, err)
	}
	return nil
}

// Doubt hands an effect to the reconciler, which looks at it after due. An effect that is neither pending nor in doubt
// any more stays as it is: somebody has ended the doubt meanwhile, or parked it.
// lastError is shown to operators; it must hold nothing that the provider or a driver said.
func Doubt(ctx context.Context, tx pgx.Tx, id domain.EffectID, lastError string, due time.Duration) error {
	_, err := tx.Exec(ctx, `
		UPDATE outbox SET status = 'in_doubt', last_error = $2, due_at = clock_timestamp() + $3::interval
		 WHERE id = $1 AND status IN ('pending', 'in_doubt')`, id, lastError, due)
	if err != nil {
		return fmt.Errorf("doubt effect %s: %w", id, err)
	}
	return nil
}

// Park leaves an effect to a person: nothing happens to it until it is replayed. A finished effect stays as it is.
func Park(ctx context.Context, q postgres.Querier, id domain.EffectID, lastError string) error {
	_, err := q.Exec(ctx, `
		UPDATE outbox SET status = 'parked', last_error = $2, due_at = clock_timestamp()
		 WHERE id = $1 AND status IN ('pending', 'in_doubt')`, id, lastError)
	if err != nil {
		return fmt.Errorf("park effect %s: %w", id, err)
	}
	return nil
}

// Note records why an effect has not happened yet and when it is tried next; an empty lastError keeps the one before.
// Its status stays, and a finished effect stays as it is.
func Note(ctx context.Context, q postgres.Querier, id domain.EffectID, lastError string, due time.Duration) error {
	_, err := q.Exec(ctx, `
		UPDATE outbox SET last_error = coalesce(nullif($2, ''), last_error), due_at = clock_timestamp() + $3::interval
		 WHERE id = $1 AND status IN ('pending', 'in_doubt')`, id, lastError, due)
	if err != nil {
		return fmt.Errorf("note on effect %s: %w", id, err)
	}
	return nil
}

// ClaimDoubt takes the charge or cancel effect whose doubt is due for longest, and puts its next turn lease ahead, so
// that no other reconciler takes it meanwhile and a crash delays it by no more than that. It returns false if none is
// due. If the answer is lost, an effect may have been claimed by nobody: it comes up again after lease.
//
// It looks for status and due time and remembers no position, so an effect that becomes visible late is not passed over.
func ClaimDoubt(ctx context.Context, pool *pgxpool.Pool, lease time.Duration) (Effect, bool, error) {
	rows, err := pool.Query(ctx, `
		WITH due AS (
			SELECT id FROM outbox
			 WHERE status = 'in_doubt' AND kind IN ('charge', 'cancel') AND due_at <= clock_timestamp()
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

// Paused tells whether an operator has paused effects of this kind.
func Paused(ctx context.Context, q postgres.Querier, kind domain.EffectKind) (bool, error) {
	var paused bool
	err := q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox_pauses WHERE kind = $1)`, kind).Scan(&paused)
	if err != nil {
		return false, fmt.Errorf("read whether %s is paused: %w", kind, err)
	}
	return paused, nil
}
