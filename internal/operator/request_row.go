package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// requestRow is a row of operator_requests. One that is open past its end is read as expired.
type requestRow struct {
	ID        uuid.UUID
	Act       Act
	EffectID  *domain.EffectID
	BookingID domain.BookingID
	Asked     int64
	Category  string
	Amount    int64
	Currency  string
	Seen      string
	Actor     outbox.Actor
	Reason    string
	Status    RequestStatus
	CreatedAt time.Time
	ExpiresAt time.Time
	DecidedBy *outbox.Actor
	DecidedAt *time.Time
}

// requests reads requests; which, and in what order, is the rest of the statement.
func requests(ctx context.Context, q postgres.Querier, which string, args ...any) ([]requestRow, error) {
	rows, err := q.Query(ctx, `
		SELECT id, act, effect_id, booking_id, asked, category, amount, currency, seen, actor, reason,
		       CASE WHEN status = 'open' AND expires_at <= clock_timestamp() THEN 'expired' ELSE status END AS status,
		       created_at, expires_at, decided_by, decided_at
		  FROM operator_requests `+which, args...)
	if err != nil {
		return nil, fmt.Errorf("read requests: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[requestRow])
	if err != nil {
		return nil, fmt.Errorf("read requests: %w", err)
	}
	return found, nil
}

func oneRequest(ctx context.Context, q postgres.Querier, id uuid.UUID, locking string) (requestRow, error) {
	found, err := requests(ctx, q, `WHERE id = $1`+locking, id)
	if err == nil && len(found) == 0 {
		err = domain.ErrNotFound
	}
	if err != nil {
		return requestRow{}, err
	}
	return found[0], nil
}

// decide ends an open request, which the caller has locked.
func decide(ctx context.Context, tx pgx.Tx, id uuid.UUID, to RequestStatus, by outbox.Actor, reason string) error {
	_, err := tx.Exec(ctx, `
		UPDATE operator_requests SET status = $2, decided_by = $3, decided_reason = $4, decided_at = clock_timestamp()
		 WHERE id = $1 AND status = 'open'`, id, to, by, reason)
	if err != nil {
		return fmt.Errorf("decide request %s: %w", id, err)
	}
	return nil
}

func (r requestRow) shown() Request {
	shown := Request{
		ID: r.ID, Act: r.Act, EffectID: r.EffectID, BookingID: r.BookingID, Money: domain.Money{Amount: r.Amount, Currency: r.Currency},
		By: r.Actor, Reason: r.Reason, At: domain.Instant(r.CreatedAt), ExpiresAt: domain.Instant(r.ExpiresAt), Status: r.Status,
	}
	if r.DecidedBy != nil && r.DecidedAt != nil {
		at := domain.Instant(*r.DecidedAt)
		shown.DecidedBy, shown.DecidedAt = *r.DecidedBy, &at
	}
	return shown
}

// approvable returns nil, or a *outbox.RefusedError that says why somebody cannot approve the request.
func (r requestRow) approvable(by outbox.Actor) error {
	switch {
	case r.Status == RequestExpired:
		return &outbox.RefusedError{
			Code: outbox.RefusedExpired, Reason: "the request expired at " + r.ExpiresAt.UTC().Format(time.RFC3339) + ": look anew, and ask again",
		}
	case r.Status != RequestOpen:
		return r.decided()
	case r.Actor == by:
		return &outbox.RefusedError{
			Code: outbox.RefusedSamePerson, By: r.Actor, Reason: fmt.Sprintf("%s has asked for it: somebody else has to approve it", by),
		}
	default:
		return nil
	}
}

// decided tells who was first.
func (r requestRow) decided() error {
	refused := &outbox.RefusedError{Code: outbox.RefusedDecided, Reason: fmt.Sprintf("the request is %s already", r.Status)}
	if r.DecidedBy != nil && r.DecidedAt != nil {
		at := domain.Instant(*r.DecidedAt)
		refused.By, refused.At = *r.DecidedBy, &at
		refused.Reason = fmt.Sprintf("%s has %s the request at %s", *r.DecidedBy, r.Status, r.DecidedAt.UTC().Format(time.RFC3339))
	}
	return refused
}

// order is the act that was asked for, as the approving person does it: of a refund the sum that they have seen, even if all that was left
// was asked for, and more is left by now.
func (r requestRow) order(by outbox.Actor, reason string) Order {
	o := Order{
		Act: r.Act, On: Target{Booking: r.BookingID}, By: by, Reason: fmt.Sprintf("%s (asked for by %s: %s)", reason, r.Actor, r.Reason),
		Seen: r.Seen, Category: r.Category,
	}
	if r.EffectID != nil {
		o.On = Target{Effect: *r.EffectID}
	} else {
		o.Amount = r.Amount
	}
	return o
}
