package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Pausing is one switch that is thrown.
type Pausing struct {
	Kind     domain.EffectKind `json:"kind"`
	Actor    Actor             `json:"actor"`
	Reason   string            `json:"reason"`
	PausedAt time.Time         `json:"paused_at"`
}

// String tells what is paused, and how that is undone.
func (p Pausing) String() string {
	return fmt.Sprintf("%s is paused since %s by %s: %s; worker outbox resume %s",
		p.Kind, p.PausedAt.Format(time.RFC3339), p.Actor, p.Reason, p.Kind)
}

// NoReason stands for a reason in an emergency, when none is at hand.
const NoReason = "none given"

// PauseChange is what a Pause or Resume has changed.
type PauseChange string

// The changes.
const (
	Unchanged     PauseChange = ""               // it was so already; nothing is recorded
	PauseBegun    PauseChange = "pause_begun"    // the kind went on before
	PauseRestated PauseChange = "pause_restated" // it was paused already, and has another reason and actor now
	PauseEnded    PauseChange = "pause_ended"    // the kind was paused before
)

type pauseState struct {
	Kind   domain.EffectKind `json:"kind"`
	Paused bool              `json:"paused"`
	Actor  Actor             `json:"actor,omitempty"`
	Reason string            `json:"reason,omitempty"`
}

// Pause stops effects of a kind from being carried out, in every process, from the next one on; those under way go on.
// Only charge and publish can be paused: fences, reads and refunds must always be possible. If the kind is paused
// already, a reason (other than NoReason) replaces the one before, and its actor.
func Pause(
	ctx context.Context, pool *pgxpool.Pool, kind domain.EffectKind, actor Actor, reason string,
) (PauseChange, error) {
	return setPause(ctx, pool, kind, actor, reason, true)
}

// Resume undoes Pause. What waited goes on within seconds.
func Resume(
	ctx context.Context, pool *pgxpool.Pool, kind domain.EffectKind, actor Actor, reason string,
) (PauseChange, error) {
	return setPause(ctx, pool, kind, actor, reason, false)
}

func setPause(
	ctx context.Context, pool *pgxpool.Pool, kind domain.EffectKind, actor Actor, reason string, to bool,
) (change PauseChange, err error) {
	if kind != domain.EffectCharge && kind != domain.EffectPublish {
		return Unchanged, &RefusedError{Code: RefusedUnpausable, Reason: fmt.Sprintf("only charge and publish can be paused, not %q", kind)}
	}
	if err := Demand(actor, reason); err != nil {
		return Unchanged, err
	}
	name := "resume"
	if to {
		name = "pause"
	}
	err = postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		before, err := lockPause(ctx, tx, kind)
		if err != nil {
			return err
		}
		after := pauseState{Kind: kind, Paused: to}
		if to {
			after.Actor, after.Reason = actor, reason
		}
		if change = changeOf(before, after); change == Unchanged {
			return nil
		}
		if err := writePause(ctx, tx, after); err != nil {
			return err
		}
		return record(ctx, tx, audit{
			id: uuid.Must(uuid.NewV7()), actor: actor, action: name, reason: reason, before: before, after: after,
		})
	})
	if err != nil {
		return Unchanged, fmt.Errorf("%s %s: %w", name, kind, err)
	}
	return change, nil
}

// lockPause reads a switch and keeps others from throwing any until tx ends. Who only reads them does not wait.
func lockPause(ctx context.Context, tx pgx.Tx, kind domain.EffectKind) (pauseState, error) {
	state := pauseState{Kind: kind}
	if _, err := tx.Exec(ctx, `LOCK TABLE outbox_pauses IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return state, err
	}
	err := tx.QueryRow(ctx, `SELECT actor, reason FROM outbox_pauses WHERE kind = $1`, kind).Scan(&state.Actor, &state.Reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return state, nil
	}
	state.Paused = true
	return state, err
}

func changeOf(before, after pauseState) PauseChange {
	switch {
	case !before.Paused && after.Paused:
		return PauseBegun
	case before.Paused && !after.Paused:
		return PauseEnded
	case after.Paused && after.Reason != NoReason && before != after:
		return PauseRestated
	default:
		return Unchanged
	}
}

func writePause(ctx context.Context, tx pgx.Tx, to pauseState) error {
	if !to.Paused {
		_, err := tx.Exec(ctx, `DELETE FROM outbox_pauses WHERE kind = $1`, to.Kind)
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO outbox_pauses (kind, actor, reason) VALUES ($1, $2, $3)
		ON CONFLICT ON CONSTRAINT outbox_pauses_pkey DO UPDATE SET actor = excluded.actor, reason = excluded.reason`,
		to.Kind, to.Actor, to.Reason)
	return err
}

// Pauses lists what is paused.
func Pauses(ctx context.Context, q postgres.Querier) ([]Pausing, error) {
	rows, err := q.Query(ctx, `SELECT kind, actor, reason, paused_at FROM outbox_pauses ORDER BY kind`)
	if err != nil {
		return nil, fmt.Errorf("read what is paused: %w", err)
	}
	pauses, err := pgx.CollectRows(rows, pgx.RowToStructByName[Pausing])
	if err != nil {
		return nil, fmt.Errorf("read what is paused: %w", err)
	}
	for i := range pauses {
		pauses[i].PausedAt = pauses[i].PausedAt.UTC()
	}
	return pauses, nil
}
