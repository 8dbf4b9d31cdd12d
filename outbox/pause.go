package outbox

import (
	"context"
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

type pauseState struct {
	Kind   domain.EffectKind `json:"kind"`
	Paused bool              `json:"paused"`
}

// Pause stops effects of a kind from being carried out, in every process, from the next one on; those under way go on.
// Only charge and publish can be paused: fences, reads and refunds must always be possible. It returns false, and
// records nothing, if the kind is paused already.
func Pause(
	ctx context.Context, pool *pgxpool.Pool, kind domain.EffectKind, actor Actor, reason string,
) (changed bool, err error) {
	return setPause(ctx, pool, kind, actor, reason, true, `
		INSERT INTO outbox_pauses (kind, actor, reason) VALUES ($1, $2, $3)
		ON CONFLICT ON CONSTRAINT outbox_pauses_pkey DO NOTHING`, kind, actor, reason)
}

// Resume undoes Pause. What waited goes on within seconds. It returns false, and records nothing, if the kind was not
// paused.
func Resume(
	ctx context.Context, pool *pgxpool.Pool, kind domain.EffectKind, actor Actor, reason string,
) (changed bool, err error) {
	return setPause(ctx, pool, kind, actor, reason, false, `DELETE FROM outbox_pauses WHERE kind = $1`, kind)
}

func setPause(
	ctx context.Context, pool *pgxpool.Pool, kind domain.EffectKind, actor Actor, reason string, to bool,
	query string, args ...any,
) (changed bool, err error) {
	if kind != domain.EffectCharge && kind != domain.EffectPublish {
		return false, &RefusedError{Reason: fmt.Sprintf("only charge and publish can be paused, not %q", kind)}
	}
	if err := demand(actor, reason); err != nil {
		return false, err
	}
	name := "resume"
	if to {
		name = "pause"
	}
	err = postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, query, args...)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		changed = true
		return record(ctx, tx, audit{
			id: uuid.Must(uuid.NewV7()), actor: actor, action: name, reason: reason,
			before: pauseState{Kind: kind, Paused: !to}, after: pauseState{Kind: kind, Paused: to},
		})
	})
	if err != nil {
		return false, fmt.Errorf("%s %s: %w", name, kind, err)
	}
	return changed, nil
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
