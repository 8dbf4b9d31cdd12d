package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Action is one act of an operator, as operator_actions keeps it.
type Action struct {
	ID        uuid.UUID         `json:"id"`
	Actor     Actor             `json:"actor"`
	Action    string            `json:"action"`
	EffectID  *domain.EffectID  `json:"effect_id,omitempty"`
	BookingID *domain.BookingID `json:"booking_id,omitempty"`
	Reason    string            `json:"reason"`
	Before    json.RawMessage   `json:"before"`
	After     json.RawMessage   `json:"after"`
	At        time.Time         `json:"at"`
}

// Act is something that a person did elsewhere than to an effect.
type Act struct {
	ID            uuid.UUID // of its row; zero: a new one
	Actor         Actor
	Action        string
	Effect        *domain.EffectID // that it has begun; may be nil
	Booking       *domain.BookingID
	Reason        string
	Before, After any // written as JSON
}

// RecordAct leaves the act's one row in operator_actions, in the transaction that does it. It refuses, with a *RefusedError, what
// nobody or no reason stands behind.
func RecordAct(ctx context.Context, tx pgx.Tx, a Act) error {
	if err := Demand(a.Actor, a.Reason); err != nil {
		return err
	}
	if a.ID == uuid.Nil {
		a.ID = uuid.Must(uuid.NewV7())
	}
	return record(ctx, tx, audit{
		id: a.ID, actor: a.Actor, action: a.Action, effect: a.Effect, booking: a.Booking, reason: a.Reason,
		before: a.Before, after: a.After,
	})
}

type audit struct {
	id            uuid.UUID
	actor         Actor
	action        string
	effect        *domain.EffectID
	booking       *domain.BookingID
	reason        string
	before, after any
}

// record writes an act's row into the transaction that does it.
func record(ctx context.Context, tx pgx.Tx, a audit) error {
	before, err := json.Marshal(a.before)
	if err != nil {
		return fmt.Errorf("encode the state before: %w", err)
	}
	after, err := json.Marshal(a.after)
	if err != nil {
		return fmt.Errorf("encode the state after: %w", err)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO operator_actions (id, actor, action, effect_id, booking_id, reason, before, after)
		VALUES (@id, @actor, @action, @effect, @booking, @reason, @before::jsonb, @after::jsonb)`,
		pgx.NamedArgs{
			"id": a.id, "actor": a.actor, "action": a.action, "effect": a.effect, "booking": a.booking,
			"reason": a.reason, "before": string(before), "after": string(after),
		})
	if err != nil {
		return fmt.Errorf("record %s: %w", a.action, err)
	}
	return nil
}

// actionsOf reads what was done by hand to a booking and its effects, oldest first.
func actionsOf(ctx context.Context, q postgres.Querier, booking domain.BookingID) ([]Action, error) {
	return actions(ctx, q, `WHERE booking_id = $1 ORDER BY at, id`, booking)
}

// actions reads acts; which, and in what order, is the rest of the statement.
func actions(ctx context.Context, q postgres.Querier, which string, args ...any) ([]Action, error) {
	rows, err := q.Query(ctx, `
		SELECT id, actor, action, effect_id, booking_id, reason, before, after, at FROM operator_actions `+which, args...)
	if err != nil {
		return nil, fmt.Errorf("read what was done by hand: %w", err)
	}
	acts, err := pgx.CollectRows(rows, pgx.RowToStructByName[Action])
	if err != nil {
		return nil, fmt.Errorf("read what was done by hand: %w", err)
	}
	for i := range acts {
		acts[i].At = acts[i].At.UTC()
	}
	return acts, nil
}

// Recorded tells whether an act is on record. "No" stays true only for who holds the locks that the act took.
func Recorded(ctx context.Context, tx pgx.Tx, act uuid.UUID) (is bool, err error) {
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM operator_actions WHERE id = $1)`, act).Scan(&is); err != nil {
		return false, fmt.Errorf("look for an act: %w", err)
	}
	return is, nil
}

// AuditFilter chooses acts.
type AuditFilter struct {
	Booking domain.BookingID // zero: any
	Actor   Actor            // empty: any
	Action  string           // empty: any
	Limit   int              // default 50, at most 200
	After   string           // AuditPage.Next of the page before
}

// AuditPage is one page of the audit, the newest first.
type AuditPage struct {
	Actions []Action `json:"actions"`
	Next    string   `json:"next,omitempty"` // for AuditFilter.After; empty on the last page
}

// Audit reads what was done by hand, the newest first. It returns ErrCursor for a cursor that it has not given out.
func Audit(ctx context.Context, q postgres.Querier, f AuditFilter) (AuditPage, error) {
	after, err := parseCursor(f.After)
	if err != nil {
		return AuditPage{}, err
	}
	if f.Limit <= 0 {
		f.Limit = 50
	}
	f.Limit = min(f.Limit, 200)
	which := `WHERE (@actor = '' OR actor = @actor) AND (@action = '' OR action = @action)`
	if f.Booking != (domain.BookingID{}) {
		which += ` AND booking_id = @booking`
	}
	if f.After != "" {
		which += ` AND (at, id) < (@after_at::timestamptz, @after_id::uuid)`
	}
	page := AuditPage{}
	page.Actions, err = actions(ctx, q, which+` ORDER BY at DESC, id DESC LIMIT @limit`, pgx.NamedArgs{
		"booking": f.Booking, "actor": string(f.Actor), "action": f.Action, "after_at": after.CreatedAt, "after_id": after.ID, "limit": f.Limit + 1,
	})
	if err != nil {
		return AuditPage{}, err
	}
	if len(page.Actions) > f.Limit {
		page.Actions = page.Actions[:f.Limit]
		last := page.Actions[f.Limit-1]
		page.Next = cursor{CreatedAt: last.At, ID: domain.EffectID{UUID: last.ID}}.String()
	}
	return page, nil
}
