package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// EventAct is what a person does to a parked receipt.
type EventAct string

// The acts.
const (
	RetryEvent  EventAct = "retry_event"  // act on it once more, now: the provider is read, and what it shows is settled
	IgnoreEvent EventAct = "ignore_event" // nothing more is to come of it; what it told was looked at by a person
)

// receiptStanding is what of a receipt the audit keeps.
type receiptStanding struct {
	Event    string `json:"event"`
	Type     string `json:"type"`
	IntentID string `json:"intent_id,omitempty"`
	Status   string `json:"status"`
	Why      string `json:"why,omitempty"`
}

// DecideEvent does what a person decides about a parked receipt, and leaves one row in operator_actions in the same transaction. A
// receipt moves no money by itself, whatever it tells: it only makes us look. A *outbox.RefusedError says why it was not done;
// domain.ErrNotFound, that there is no such receipt.
func DecideEvent(ctx context.Context, pool *pgxpool.Pool, id string, act EventAct, by outbox.Actor, reason string) error {
	err := postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		before, booking, err := lockReceipt(ctx, tx, id)
		if err != nil {
			return err
		}
		if before.Status != receiptParked {
			return &outbox.RefusedError{Reason: fmt.Sprintf("event %s is %s; only a parked one waits for a person", id, before.Status)}
		}
		after := before
		query := `
			UPDATE provider_events SET status = 'pending', finished_at = NULL, attempts = 0, due_at = clock_timestamp()
			 WHERE id = $1 AND status = 'parked'`
		after.Status = receiptPending
		if act == IgnoreEvent {
			query, after.Status = `UPDATE provider_events SET status = 'ignored' WHERE id = $1 AND status = 'parked'`, receiptIgnored
		}
		if _, err := tx.Exec(ctx, query, id); err != nil {
			return err
		}
		return outbox.RecordAct(ctx, tx, outbox.Act{
			Actor: by, Action: string(act), Booking: booking, Reason: reason, Before: before, After: after,
		})
	})
	var refused *outbox.RefusedError
	if err == nil || errors.As(err, &refused) || errors.Is(err, domain.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%s %s: %w", act, id, err)
}

// lockReceipt reads a receipt and its booking, if it is here, and keeps others from deciding about it until tx ends.
func lockReceipt(ctx context.Context, tx pgx.Tx, id string) (is receiptStanding, booking *domain.BookingID, err error) {
	var named string
	is.Event = id
	err = tx.QueryRow(ctx, `
		SELECT type, intent_id, status, coalesce(last_error, ''), booking_id FROM provider_events WHERE id = $1 FOR UPDATE`, id,
	).Scan(&is.Type, &is.IntentID, &is.Status, &is.Why, &named)
	if errors.Is(err, pgx.ErrNoRows) {
		return is, nil, domain.ErrNotFound
	}
	if err != nil || parseUUID(named) == nil {
		return is, nil, err
	}
	var found domain.BookingID
	err = tx.QueryRow(ctx, `SELECT id FROM bookings WHERE id = $1`, parseUUID(named)).Scan(&found.UUID)
	if errors.Is(err, pgx.ErrNoRows) {
		return is, nil, nil
	}
	return is, &found, err
}
