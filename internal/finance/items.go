package finance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// Item is something that does not match.
type Item struct {
	ID            int64      `json:"id"`
	Kind          string     `json:"kind"`
	About         string     `json:"about"` // the transaction, payment, refund, dispute, payout, event or period
	BookingID     *uuid.UUID `json:"booking_id,omitempty"`
	Amount        *int64     `json:"amount,omitempty"` // minor units
	Currency      *string    `json:"currency,omitempty"`
	OccurredAt    time.Time  `json:"occurred_at"`
	OpenedAt      time.Time  `json:"opened_at"`
	AgeHours      int64      `json:"age_hours"` // whole ones, since it happened
	Why           string     `json:"why"`
	Owner         string     `json:"owner"`
	Note          string     `json:"note"`
	Status        string     `json:"status"`         // open, closed, signed_off
	AfterSignOff  bool       `json:"after_sign_off"` // it was found after its period had been signed off
	SignedOffBy   string     `json:"signed_off_by,omitempty"`
	SignOffReason string     `json:"sign_off_reason,omitempty"`
	EndedAt       *time.Time `json:"ended_at,omitempty"`

	Age time.Duration `json:"-"`
}

// Filter selects items. Zero fields select all.
type Filter struct {
	Status string // open, closed, signed_off
	Kind   string
	Owner  string
	Window *Window
	Older  time.Duration // only what happened longer ago
	After  int64         // the last id of the page before
	Limit  int           // 0: 100
}

const itemColumns = `id, kind, about, booking_id, amount, currency, occurred_at, opened_at,
	extract(epoch FROM clock_timestamp() - occurred_at)::bigint / 3600 AS age_hours, clock_timestamp() - occurred_at AS age, why, owner, note, status,
	period_id IS NOT NULL AS after_sign_off, coalesce(signed_off_by, '') AS signed_off_by, coalesce(sign_off_reason, '') AS sign_off_reason, ended_at`

// Items lists exceptions, in the order in which they were found.
func (d *Desk) Items(ctx context.Context, f Filter) ([]Item, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	from, to := time.Unix(0, 0), time.Unix(1<<40, 0)
	if f.Window != nil {
		from, to = f.Window.From, f.Window.To
	}
	rows, err := d.pool.Query(ctx, `
		SELECT `+itemColumns+` FROM reconciliation_items
		 WHERE id > $1 AND ($2 = '' OR status = $2) AND ($3 = '' OR kind = $3) AND ($4 = '' OR owner = $4) AND occurred_at >= $5 AND occurred_at < $6
		   AND ($8::interval = '0' OR occurred_at < clock_timestamp() - $8::interval)
		 ORDER BY id LIMIT $7`, f.After, f.Status, f.Kind, f.Owner, from, to, f.Limit, f.Older)
	if err != nil {
		return nil, fmt.Errorf("list exceptions: %w", err)
	}
	items, err := pgx.CollectRows(rows, pgx.RowToStructByName[Item])
	if err != nil {
		return nil, fmt.Errorf("list exceptions: %w", err)
	}
	for i := range items {
		items[i].Why = inWords(items[i].Why)
	}
	return items, nil
}

// Item reads one. It returns domain.ErrNotFound if there is none.
func (d *Desk) Item(ctx context.Context, id int64) (Item, error) { return item(ctx, d.pool, id, "") }

func item(ctx context.Context, q postgres.Querier, id int64, locking string) (Item, error) {
	rows, err := q.Query(ctx, `SELECT `+itemColumns+` FROM reconciliation_items WHERE id = $1 `+locking, id)
	if err != nil {
		return Item{}, fmt.Errorf("read an exception: %w", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Item])
	if errors.Is(err, pgx.ErrNoRows) {
		return Item{}, domain.ErrNotFound
	}
	if err != nil {
		return Item{}, fmt.Errorf("read an exception: %w", err)
	}
	found.Why = inWords(found.Why)
	return found, nil
}

// Note writes a note to an open exception, or gives it to another owner; an empty one leaves what is there. It is audited.
func (d *Desk) Note(ctx context.Context, id int64, actor outbox.Actor, note, owner string) (Item, error) {
	if strings.TrimSpace(note) == "" && strings.TrimSpace(owner) == "" {
		return Item{}, &domain.ValidationError{Field: "note", Reason: "say something, or name an owner"}
	}
	return d.change(ctx, id, outbox.Act{Actor: actor, Action: "finance_note", Reason: orElse(note, "owner: "+owner)}, `
		UPDATE reconciliation_items SET note = coalesce(nullif($2, ''), note), owner = coalesce(nullif($3, ''), owner) WHERE id = $1`, note, owner)
}

// SignOff takes an open exception off the list, with a reason. It comes back only if its amount changes. It is audited.
func (d *Desk) SignOff(ctx context.Context, id int64, actor outbox.Actor, reason string) (Item, error) {
	return d.change(ctx, id, outbox.Act{Actor: actor, Action: "finance_sign_off", Reason: reason}, `
		UPDATE reconciliation_items SET status = 'signed_off', signed_off_by = $2, sign_off_reason = $3, ended_at = clock_timestamp() WHERE id = $1`,
		string(actor), reason)
}

// ended says how an exception has left the list.
func (i Item) ended() string {
	at := ""
	if i.EndedAt != nil {
		at = " on " + minuteOf(*i.EndedAt)
	}
	if i.Status == "signed_off" {
		return "signed off by " + i.SignedOffBy + at
	}
	return "closed, since a comparison found it explained" + at
}

// change does one audited change of an open exception. It returns domain.ErrNotFound, or an *outbox.RefusedError.
func (d *Desk) change(ctx context.Context, id int64, act outbox.Act, update string, args ...any) (Item, error) {
	var after Item
	err := postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		before, err := item(ctx, tx, id, "FOR UPDATE")
		if err != nil {
			return err
		}
		if before.Status != "open" {
			return &outbox.RefusedError{Reason: fmt.Sprintf("exception %d is %s: only an open one can be changed", id, before.ended())}
		}
		if _, err := tx.Exec(ctx, update, append([]any{id}, args...)...); err != nil {
			return fmt.Errorf("change an exception: %w", err)
		}
		if after, err = item(ctx, tx, id, ""); err != nil {
			return err
		}
		act.Before, act.After = before, after
		if before.BookingID != nil {
			var known bool
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM bookings WHERE id = $1)`, *before.BookingID).Scan(&known); err != nil {
				return err
			}
			if known {
				act.Booking = &domain.BookingID{UUID: *before.BookingID}
			}
		}
		return outbox.RecordAct(ctx, tx, act)
	})
	return after, err
}
