package bookings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

const bookingColumns = `id, client_id, resource_id, lower(during) AS starts_at, upper(during) AS ends_at, quantity, amount,
	currency, customer_name, customer_email, metadata, status, coalesce(ending_reason, '') AS ending_reason,
	hold_expires_at, event_seq, refund_policy, cancel_requested_at, cancel_refund, created_at, ended_at`

type bookingRow struct {
	ID                uuid.UUID
	ClientID          uuid.UUID
	ResourceID        uuid.UUID
	StartsAt          time.Time
	EndsAt            time.Time
	Quantity          int
	Amount            int64
	Currency          string
	CustomerName      string
	CustomerEmail     string
	Metadata          map[string]string
	Status            domain.BookingStatus
	EndingReason      domain.EndingReason
	HoldExpiresAt     time.Time
	EventSeq          int64
	RefundPolicy      domain.RefundPolicy
	CancelRequestedAt *time.Time
	CancelRefund      *int64
	CreatedAt         time.Time
	EndedAt           *time.Time
}

func (r bookingRow) booking() domain.Booking {
	b := domain.Booking{
		ID: domain.BookingID{UUID: r.ID}, ClientID: domain.ClientID{UUID: r.ClientID},
		ResourceID: domain.ResourceID{UUID: r.ResourceID},
		Start:      r.StartsAt, End: r.EndsAt, Quantity: r.Quantity,
		Total:        domain.Money{Amount: r.Amount, Currency: r.Currency},
		CustomerName: r.CustomerName, CustomerEmail: r.CustomerEmail, Metadata: r.Metadata,
		Status: r.Status, EndingReason: r.EndingReason, HoldExpiresAt: r.HoldExpiresAt, EventSeq: r.EventSeq,
		RefundPolicy: r.RefundPolicy, CreatedAt: r.CreatedAt, EndedAt: r.EndedAt,
	}
	if r.CancelRequestedAt != nil && r.CancelRefund != nil {
		b.Cancellation = &domain.Cancellation{RequestedAt: *r.CancelRequestedAt, Refund: domain.Money{Amount: *r.CancelRefund, Currency: r.Currency}}
	}
	return b
}

// Get reads a client's own booking. Another client's is domain.ErrNotFound, as if it did not exist (G9).
func Get(ctx context.Context, q postgres.Querier, client domain.ClientID, id domain.BookingID) (domain.Booking, error) {
	return one(ctx, q, `SELECT `+bookingColumns+` FROM bookings WHERE id = $1 AND client_id = $2`, id.UUID, client.UUID)
}

// Lock reads a booking and keeps everybody else from moving it until the transaction ends. Whoever moves a booking or
// its payment takes this lock first: it is what expiry and payment contend for. It lets rows that only refer to the
// booking be written: an operator's replay locks an effect and then does that, and would deadlock with a settlement.
//
// It is queued, and fills in b. If there is no such booking, b stays as it is.
func Lock(batch *pgx.Batch, id domain.BookingID, b *domain.Booking) {
	postgres.One(batch, "lock a booking", func(row bookingRow) { *b = row.booking() },
		`SELECT `+bookingColumns+` FROM bookings WHERE id = $1 FOR NO KEY UPDATE`, id.UUID)
}

func one(ctx context.Context, q postgres.Querier, sql string, args ...any) (domain.Booking, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return domain.Booking{}, fmt.Errorf("read a booking: %w", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[bookingRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Booking{}, domain.ErrNotFound
	}
	if err != nil {
		return domain.Booking{}, fmt.Errorf("read a booking: %w", err)
	}
	return row.booking(), nil
}

// Apply queues a move of the locked booking b, frees its slot where the move says so, and returns the booking as it will
// be, which has the Cancellation that b has. Its event_seq is raised by one if the move has an event; the caller appends that event in the same transaction.
func Apply(batch *pgx.Batch, b domain.Booking, m domain.Move) domain.Booking {
	from := b
	if m.Event != "" {
		b.EventSeq++
	}
	b.Status, b.EndingReason = m.Booking, m.Reason
	var requestedAt *time.Time
	var refund *int64
	if b.Cancellation != nil {
		requestedAt, refund = &b.Cancellation.RequestedAt, &b.Cancellation.Refund.Amount
	}
	what := fmt.Sprintf("move booking %s from %s to %s", b.ID, from.Status, b.Status)
	postgres.ExecAnd(batch, what, func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != 1 {
			return errMoved
		}
		return nil
	}, `
		UPDATE bookings
		   SET status = $4, ending_reason = nullif($5, ''), event_seq = $6, version = version + 1, updated_at = clock_timestamp(),
		       cancel_requested_at = $7, cancel_refund = $8,
		       ended_at = CASE WHEN $4 IN ('expired', 'cancelled', 'failed') THEN coalesce(ended_at, clock_timestamp()) END
		 WHERE id = $1 AND status = $2 AND event_seq = $3`,
		b.ID.UUID, from.Status, from.EventSeq, b.Status, b.EndingReason, b.EventSeq, requestedAt, refund)
	if m.Release {
		postgres.Exec(batch, "release the slot of a booking",
			`UPDATE allocations SET active = false WHERE booking_id = $1 AND active`, b.ID.UUID)
	}
	return b
}

// errMoved says that the caller's picture of a booking is not its row: it was not locked.
var errMoved = errors.New("it is not where it was when it was locked")

// NextExpired locks one held booking whose hold is over by the database's clock: any of the oldest few, so that one that
// cannot be moved does not keep the others from their end. It passes over bookings that somebody else is moving right
// now, so that several sweepers share the work.
func NextExpired(ctx context.Context, tx pgx.Tx) (domain.Booking, error) {
	return one(ctx, tx, `
		SELECT `+bookingColumns+`
		  FROM bookings
		 WHERE status = 'held'
		   AND id IN (SELECT id FROM bookings
		               WHERE status = 'held' AND hold_expires_at <= clock_timestamp()
		               ORDER BY hold_expires_at
		               LIMIT 20)
		 ORDER BY random()
		 LIMIT 1
		   FOR NO KEY UPDATE SKIP LOCKED`)
}
