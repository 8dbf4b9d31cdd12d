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
	if err := demand(a.Actor, a.Reason); err != nil {
		return err
	}
	return record(ctx, tx, audit{
		id: uuid.Must(uuid.NewV7()), actor: a.Actor, action: a.Action, effect: a.Effect, booking: a.Booking, reason: a.Reason,
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

// actionsOf reads what was done by hand to the effects of a booking, oldest first.
func actionsOf(ctx context.Context, q postgres.Querier, booking domain.BookingID) ([]Action, error) {
	rows, err := q.Query(ctx, `
		SELECT id, actor, action, effect_id, booking_id, reason, before, after, at
		  FROM operator_actions
		 WHERE booking_id = $1
		 ORDER BY at, id`, booking)
	if err != nil {
		return nil, fmt.Errorf("read what was done to booking %s: %w", booking, err)
	}
	actions, err := pgx.CollectRows(rows, pgx.RowToStructByName[Action])
	if err != nil {
		return nil, fmt.Errorf("read what was done to booking %s: %w", booking, err)
	}
	for i := range actions {
		actions[i].At = actions[i].At.UTC()
	}
	return actions, nil
}
