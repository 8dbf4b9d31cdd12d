package operator

import (
	"context"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/outbox"
)

// RunOrder is one act to be done to many effects.
type RunOrder struct {
	ID     uuid.UUID     // chosen by whoever asks: the same id again is the same run
	Act    Act           // Replay, Republish, Resolve or Discard
	Filter outbox.Filter // Stuck, Kind, Status, OlderThan; Limit and After are not used
	Cap    int           // most effects; 1 to 10,000
	By     outbox.Actor
	Reason string
}

// Run is a bulk act and how far it has come. Its effects are chosen when it starts, and never more are added.
type Run struct {
	ID         uuid.UUID       `json:"id"`
	Act        Act             `json:"act"`
	Filter     RunFilter       `json:"filter"`
	By         outbox.Actor    `json:"by"`
	Reason     string          `json:"reason"`
	StartedAt  domain.Instant  `json:"started_at"`
	FinishedAt *domain.Instant `json:"finished_at,omitempty"` // nil: there are effects left; continue it
	Total      int             `json:"total"`
	Done       int             `json:"done"`    // accepted, each with its audit row
	Refused    int             `json:"refused"` // with the reason in its item
	Left       int             `json:"left"`
	More       bool            `json:"more"` // more effects matched than the cap let in
}

// RunFilter is how a run's effects were chosen.
type RunFilter struct {
	Stuck     bool                `json:"stuck"`
	Kind      domain.EffectKind   `json:"kind,omitempty"`
	Status    domain.EffectStatus `json:"status,omitempty"`
	OlderThan string              `json:"older_than,omitempty"` // a Go duration
}

// RunItem is what became of one effect of a run.
type RunItem struct {
	Position int             `json:"position"`
	EffectID domain.EffectID `json:"effect_id"`
	Status   string          `json:"status"` // waiting, done, refused
	Said     string          `json:"said,omitempty"`
	ActionID *uuid.UUID      `json:"action_id,omitempty"`
}

// DryRun counts what a run would do: how many effects match, up to the cap, how many of them the act would be allowed on, and the
// first hundred with what would become of each. It asks no provider and changes nothing.
type DryRun struct {
	Matched int            `json:"matched"`
	More    bool           `json:"more"`
	Allowed int            `json:"allowed"`
	Refused int            `json:"refused"`
	Money   []domain.Money `json:"money"` // at stake in what is allowed, by currency
	Items   []RunItem      `json:"items"`
}

// DryRun tells what a run would do.
func (d *Desk) DryRun(ctx context.Context, o RunOrder) (DryRun, error) { return DryRun{}, errNotBuilt }

// StartRun chooses the effects and writes them down; nothing is done to them yet. The same id again returns the run as it stands;
// with another order it is refused.
func (d *Desk) StartRun(ctx context.Context, o RunOrder) (Run, error) { return Run{}, errNotBuilt }

// ContinueRun does the act to the next effects of a run, at most n, each once whoever continues it and however often: what is done
// to an effect and that it is done are one commit. Several may continue one run at once. It returns the run as it stands then.
func (d *Desk) ContinueRun(ctx context.Context, id uuid.UUID, n int) (Run, error) {
	return Run{}, errNotBuilt
}

// Runs lists runs, the newest first; at most 200. unfinished leaves out those that are finished.
func (d *Desk) Runs(ctx context.Context, unfinished bool) ([]Run, error) { return nil, errNotBuilt }

// RunItems reads the items of a run from a position on.
func (d *Desk) RunItems(ctx context.Context, id uuid.UUID, from, limit int) ([]RunItem, error) {
	return nil, errNotBuilt
}
