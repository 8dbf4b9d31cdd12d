package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
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
	Done       int             `json:"done"`     // accepted, each with its audit row
	Refused    int             `json:"refused"`  // with the reason in its item
	Failed     int             `json:"failed"`   // given up after so many tries that were neither accepted nor refused; the item says why
	LeftOut    int             `json:"left_out"` // nothing was done to them: somebody has ended the run
	Left       int             `json:"left"`
	More       bool            `json:"more"` // more effects matched than the cap let in

	EndedBy     outbox.Actor `json:"ended_by,omitempty"` // before all was done
	EndedReason string       `json:"ended_reason,omitempty"`

	cap int
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
	Status   string          `json:"status"` // waiting, done, refused, failed, left_out
	Said     string          `json:"said,omitempty"`
	Tries    int             `json:"tries,omitempty"` // that failed
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
func (d *Desk) DryRun(ctx context.Context, o RunOrder) (DryRun, error) {
	if err := o.check(); err != nil {
		return DryRun{}, err
	}
	v := DryRun{Money: []domain.Money{}, Items: []RunItem{}}
	err := d.asOfOneMoment(ctx, func(tx pgx.Tx) error {
		effects, more, err := outbox.Choose(ctx, tx, d.chosen(o.Filter), o.Cap)
		if err != nil {
			return err
		}
		v.Matched, v.More = len(effects), more
		refused, err := d.forbidden(ctx, tx, o.Act, effects)
		if err != nil {
			return err
		}
		stake, err := payments.AtStake(ctx, tx, effects)
		if err != nil {
			return err
		}
		sums := map[string]int64{}
		for i, e := range effects {
			item := RunItem{Position: i + 1, EffectID: e.ID, Status: "waiting"}
			if no := refused[e.ID]; no != nil {
				item.Status, item.Said = "refused", no.Reason
				v.Refused++
			} else {
				v.Allowed++
				if m, is := stake[e.ID]; is {
					sums[m.Currency] += m.Amount
				}
			}
			if i < 100 {
				v.Items = append(v.Items, item)
			}
		}
		for _, currency := range slices.Sorted(maps.Keys(sums)) {
			v.Money = append(v.Money, domain.Money{Amount: sums[currency], Currency: currency})
		}
		return nil
	})
	return v, err
}

// forbidden tells which of the effects an act is not allowed on, by their kinds and states or because one person may not let so much
// move.
func (d *Desk) forbidden(ctx context.Context, q postgres.Querier, act Act, effects []outbox.Effect) (map[domain.EffectID]*outbox.RefusedError, error) {
	no := map[domain.EffectID]*outbox.RefusedError{}
	if act == Replay || act == Resolve {
		tooMuch, err := d.aboveLimit(ctx, q, effects)
		if err != nil {
			return nil, err
		}
		for id, money := range tooMuch {
			no[id] = aloneRefused(money)
		}
	}
	for _, e := range effects {
		var refused *outbox.RefusedError
		if err := allowed(act, e); errors.As(err, &refused) {
			no[e.ID] = refused
		} else if err != nil {
			return nil, err
		}
	}
	return no, nil
}

// StartRun chooses the effects and writes them down; nothing is done to them yet. The same id again returns the run as it stands;
// with another order it is refused.
func (d *Desk) StartRun(ctx context.Context, o RunOrder) (Run, error) {
	if err := o.check(); err != nil {
		return Run{}, err
	}
	var run Run
	err := postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		fresh, err := o.claim(ctx, tx)
		if err != nil {
			return err
		}
		if fresh {
			effects, more, err := outbox.Choose(ctx, tx, d.chosen(o.Filter), o.Cap)
			if err != nil {
				return err
			}
			if err := writeItems(ctx, tx, o.ID, effects, more); err != nil {
				return err
			}
		}
		if run, err = oneRun(ctx, tx, o.ID); err != nil {
			return err
		}
		if run.Act != o.Act || run.By != o.By || run.Reason != o.Reason || run.cap != o.Cap || run.Filter != filterOf(o.Filter) {
			return &outbox.RefusedError{
				Code: outbox.RefusedOtherRun, By: run.By, At: &run.StartedAt,
				Reason: fmt.Sprintf("this id is that of another run, which %s started at %s: start this one under an id of its own",
					run.By, time.Time(run.StartedAt).Format(time.RFC3339)),
			}
		}
		return nil
	})
	if err != nil {
		return Run{}, busy(err)
	}
	return run, nil
}

func (o RunOrder) check() error {
	if err := outbox.Demand(o.By, o.Reason); err != nil {
		return err
	}
	switch {
	case o.ID == uuid.Nil:
		return &domain.ValidationError{Field: "id", Reason: "a run needs an id, by which it is known if it is asked for again"}
	case o.Act == Refund || !slices.Contains(Acts(), o.Act):
		return &domain.ValidationError{Field: "act", Reason: "want replay, republish, resolve or discard"}
	case o.Cap < 1 || o.Cap > maxRun:
		return &domain.ValidationError{Field: "cap", Reason: fmt.Sprintf("want 1 to %d", maxRun)}
	case o.Filter.OlderThan < 0:
		return &domain.ValidationError{Field: "older_than", Reason: "want a duration that is not negative"}
	default:
		return nil
	}
}

const maxRun = 10_000

// chosen is what of a filter chooses a run's effects.
func (d *Desk) chosen(f outbox.Filter) outbox.Filter {
	return outbox.Filter{Stuck: f.Stuck, Kind: f.Kind, Status: f.Status, OlderThan: f.OlderThan, DeadAfter: d.config.DeadAfter}
}

func filterOf(f outbox.Filter) RunFilter {
	filter := RunFilter{Stuck: f.Stuck, Kind: f.Kind, Status: f.Status}
	if f.OlderThan > 0 {
		filter.OlderThan = f.OlderThan.String()
	}
	return filter
}

// Run reads how far a run has come. It returns domain.ErrNotFound if there is none.
func (d *Desk) Run(ctx context.Context, id uuid.UUID) (Run, error) {
	run, err := oneRun(ctx, d.pool, id)
	return run, busy(err)
}

// Runs lists runs, the newest first; at most 200. unfinished leaves out those that are finished.
func (d *Desk) Runs(ctx context.Context, unfinished bool) ([]Run, error) {
	which := ``
	if unfinished {
		which = `WHERE r.finished_at IS NULL `
	}
	runs, err := readRuns(ctx, d.pool, which+`ORDER BY r.started_at DESC, r.id DESC LIMIT 200`)
	return runs, busy(err)
}

// RunItems reads the items of a run from a position on, at most limit of them, and never more than 1,000.
func (d *Desk) RunItems(ctx context.Context, id uuid.UUID, from, limit int) ([]RunItem, error) {
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	items, err := readItems(ctx, d.pool, `
		SELECT `+itemColumns+` FROM operator_run_items WHERE run_id = $1 AND position >= $2 ORDER BY position LIMIT $3`, id, from, limit)
	return items, busy(err)
}
