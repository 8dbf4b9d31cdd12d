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

// Actor is who did something by hand, as the audit shows it.
type Actor string

// ReplayAction is what a replay amounts to.
type ReplayAction string

// The actions.
const (
	Requeued     ReplayAction = "requeued"      // pending, with a new job, due now
	ReconcileNow ReplayAction = "reconcile_now" // still in doubt, and the next that the reconciler looks at
)

// Snapshot is what of an effect a replay may change, before or after it.
type Snapshot struct {
	Status    domain.EffectStatus `json:"status"`
	Attempts  int                 `json:"attempts"`
	DueAt     time.Time           `json:"due_at"`
	JobID     *int64              `json:"job_id"`
	LastError string              `json:"last_error,omitempty"`

	Stream         string `json:"stream,omitempty"` // of an event that the stream has
	StreamSequence int64  `json:"stream_sequence,omitempty"`
}

// ReplayResult is an accepted replay.
type ReplayResult struct {
	ActionID  uuid.UUID         `json:"action_id"` // its row in operator_actions
	EffectID  domain.EffectID   `json:"effect_id"`
	BookingID domain.BookingID  `json:"booking_id"`
	Kind      domain.EffectKind `json:"kind"`
	Action    ReplayAction      `json:"action"`
	Paused    bool              `json:"paused"` // its kind is: a requeued effect is carried out after the resume
	Before    Snapshot          `json:"before"`
	After     Snapshot          `json:"after"`
}

// Replay lets an unfinished effect happen now. It is safe at any moment and any number of times: it makes no keys and
// changes none, so whatever runs sends what was sent before, or finds that nothing is left to do.
//
// A pending or parked effect becomes pending with a fresh count of attempts and a new job. An effect in doubt stays in
// doubt, since a new job would be a guess, and is looked at next. A finished one is refused with a *RefusedError, as is
// a replay without a reason, and the second of two at once; domain.ErrNotFound says that there is no such effect. A
// *postgres.CommitError leaves open whether it was accepted: look at the effect's audit.
//
// An accepted replay leaves exactly one row in operator_actions, in the same transaction.
func Replay(
	ctx context.Context, pool *pgxpool.Pool, id domain.EffectID, actor Actor, reason string,
) (ReplayResult, error) {
	var result ReplayResult
	if err := Demand(actor, reason); err != nil {
		return result, err
	}
	_, as, err := See(ctx, pool, id)
	if err == nil {
		err = postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
			result, err = ReplayIn(ctx, tx, id, as, Signature{ID: uuid.Must(uuid.NewV7()), Actor: actor, Reason: reason})
			return err
		})
	}
	var refused *RefusedError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &refused), errors.Is(err, domain.ErrNotFound):
		return ReplayResult{}, err
	default:
		return ReplayResult{}, fmt.Errorf("replay effect %s: %w", id, err)
	}
}

// Signature is what stands behind an act: the id of its row in operator_actions, who, and why.
type Signature struct {
	ID     uuid.UUID
	Actor  Actor
	Reason string
}

// ReplayIn is Replay of an effect as it was seen, in the caller's transaction. It writes nothing if it refuses.
func ReplayIn(ctx context.Context, tx pgx.Tx, id domain.EffectID, as Seen, by Signature) (ReplayResult, error) {
	if err := Demand(by.Actor, by.Reason); err != nil {
		return ReplayResult{}, err
	}
	e, err := LockSeen(ctx, tx, id, as)
	if err != nil {
		return ReplayResult{}, err
	}
	if _, err := Replayable(e); err != nil {
		return ReplayResult{}, err
	}
	done, err := replayAll(ctx, tx, []Effect{e}, func(Effect) Signature { return by })
	if err != nil {
		return ReplayResult{}, err
	}
	return done[0], nil
}

// Replayable tells what replaying an effect means, or, as a *RefusedError, why it is refused.
func Replayable(e Effect) (ReplayAction, error) {
	if !e.Status.Finished() && e.Kind == domain.EffectRefresh {
		// A job of this kind would wait for ever, and hide from the list what a person has to do.
		return "", &RefusedError{
			Code:   RefusedInapplicable,
			Reason: fmt.Sprintf("no worker carries out a %s; a person does, and then discards it: %s", e.Kind, e.LastError),
		}
	}
	over := func(format string, args ...any) (ReplayAction, error) {
		return "", &RefusedError{Code: RefusedFinished, Reason: fmt.Sprintf(format, args...)}
	}
	switch e.Status {
	case domain.EffectPending, domain.EffectParked:
		return Requeued, nil
	case domain.EffectInDoubt:
		return ReconcileNow, nil
	case domain.EffectDone:
		if e.Kind == domain.EffectPublish {
			return over("the stream has acknowledged this event already; republish it, if the stream has lost it")
		}
		return over("the %s is done, and is never done again", e.Kind)
	case domain.EffectNotNeeded:
		return over("the %s is not needed any more", e.Kind)
	case domain.EffectDiscarded:
		return over("a person has discarded this effect")
	default:
		return "", &RefusedError{Code: RefusedInapplicable, Reason: fmt.Sprintf("its status %q means nothing to this version", e.Status)}
	}
}

// SnapshotOf takes of an effect what the audit keeps.
func SnapshotOf(e Effect) Snapshot {
	return Snapshot{
		Status: e.Status, Attempts: e.Attempts, DueAt: e.DueAt.UTC(), JobID: e.JobID, LastError: e.LastError,
		Stream: e.Stream, StreamSequence: e.StreamSequence,
	}
}
