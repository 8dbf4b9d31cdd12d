package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// AuditFilter chooses acts.
type AuditFilter = outbox.AuditFilter

// AuditPage is one page of the audit, the newest first.
type AuditPage = outbox.AuditPage

// Audit reads what was done by hand. A cursor that it has not given out is outbox.ErrCursor.
func (d *Desk) Audit(ctx context.Context, f AuditFilter) (AuditPage, error) {
	page, err := outbox.Audit(ctx, d.pool, f)
	return page, busy(err)
}

// Pauses lists what is paused.
func (d *Desk) Pauses(ctx context.Context) ([]outbox.Pausing, error) {
	pauses, err := outbox.Pauses(ctx, d.pool)
	return pauses, busy(err)
}

// SetPause pauses or resumes a kind (outbox.Pause, outbox.Resume), and says what that means: how many effects wait, and how many
// holds end meanwhile.
func (d *Desk) SetPause(ctx context.Context, kind domain.EffectKind, paused bool, by outbox.Actor, reason string) (PauseResult, error) {
	act := outbox.Resume
	if paused {
		act = outbox.Pause
	}
	r := PauseResult{Kind: kind, Paused: paused}
	var err error
	if r.Change, err = act(ctx, d.pool, kind, by, reason); err != nil {
		return PauseResult{}, busy(err)
	}
	var b pgx.Batch
	outbox.ReadWaiting(&b, kind, &r.Waiting)
	if kind == domain.EffectCharge {
		bookings.ReadHoldsEnding(&b, time.Hour, outbox.MostCounted, &r.Holds)
	}
	if err := postgres.Send(ctx, d.pool, &b); err != nil {
		return PauseResult{}, busy(err)
	}
	r.Said = r.inWords()
	return r, nil
}

// inWords says what a switch means.
func (r PauseResult) inWords() string {
	switch {
	case r.Kind == domain.EffectCharge && r.Paused:
		return fmt.Sprintf("no charge is begun from now on, and those under way go on; %s charges wait; %s holds end within an hour: each booking whose hold ends uncharged expires, and frees its slot",
			counted(r.Waiting), counted(r.Holds))
	case r.Kind == domain.EffectCharge:
		return fmt.Sprintf("charges go on within seconds; %s waited", counted(r.Waiting))
	case r.Paused:
		return fmt.Sprintf("no event is published from now on; %s events wait, in order; money and holds are not touched", counted(r.Waiting))
	default:
		return fmt.Sprintf("events go on within seconds, in order; %s waited", counted(r.Waiting))
	}
}

func counted(n int64) string {
	if n >= outbox.MostCounted {
		return fmt.Sprintf("%d or more", n)
	}
	return fmt.Sprint(n)
}

// PauseResult is what a switch has changed.
type PauseResult struct {
	Kind    domain.EffectKind  `json:"kind"`
	Paused  bool               `json:"paused"`
	Change  outbox.PauseChange `json:"change"`
	Waiting int64              `json:"waiting"`      // effects of the kind that are pending; at most 10,000 are counted
	Holds   int64              `json:"holds_ending"` // of a charge: holds that end within an hour, counted likewise; each booking whose hold ends uncharged expires
	Said    string             `json:"said"`         // in plain words
}
