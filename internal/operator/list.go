package operator

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

// Row is an effect with what the person on call needs to know of it.
type Row struct {
	outbox.Row
	AgeSeconds float64       `json:"age_seconds"`        // since it was committed, by the database's clock
	AtStake    *domain.Money `json:"at_stake,omitempty"` // what it would take or give back; nil: it moves no money
	Next       Next          `json:"next"`
}

// Next is the next thing that happens to an effect by itself.
type Next struct {
	What string          `json:"what"`         // in plain words; "nothing, until a person acts" where that is so
	At   *domain.Instant `json:"at,omitempty"` // when; nil: unknown, or never
}

// Page is one page of a listing.
type Page struct {
	Rows   []Row            `json:"rows"`
	Next   string           `json:"next,omitempty"` // for Filter.After; empty on the last page
	Pauses []outbox.Pausing `json:"pauses"`         // what is paused, whatever the filter
}

// List lists effects as outbox.List does, each with its money and what comes next.
func (d *Desk) List(ctx context.Context, f outbox.Filter) (Page, error) {
	f.DeadAfter = d.config.DeadAfter
	found, err := outbox.List(ctx, d.pool, f)
	if err != nil {
		return Page{}, busy(err)
	}
	rows, err := withMoney(ctx, d.pool, found.Rows)
	if err != nil {
		return Page{}, busy(err)
	}
	return Page{Rows: rows, Next: found.Next, Pauses: found.Pauses}, nil
}

// Shown is one effect with its surroundings.
type Shown struct {
	Effect  Row             `json:"effect"`
	Others  []Row           `json:"others"`  // the other effects of its booking, oldest first
	Actions []outbox.Action `json:"actions"` // what was done by hand to the booking's effects, oldest first
	Acts    []Choice        `json:"acts"`    // every act, and whether it is allowed now
}

// Choice is an act and whether the effect's kind and state allow it. The provider was not asked: a preview does.
type Choice struct {
	Act     Act    `json:"act"`
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"` // why not
}

// Show reads one effect with its surroundings; the id of a booking shows its charge. It returns domain.ErrNotFound if there
// is neither.
func (d *Desk) Show(ctx context.Context, id domain.EffectID) (Shown, error) {
	var shown Shown
	err := d.asOfOneMoment(ctx, func(tx pgx.Tx) error {
		found, err := outbox.Show(ctx, tx, id, d.config.DeadAfter)
		if err != nil {
			return err
		}
		rows, err := withMoney(ctx, tx, append([]outbox.Row{found.Effect}, found.Others...))
		if err != nil {
			return err
		}
		shown = Shown{Effect: rows[0], Others: rows[1:], Actions: found.Actions, Acts: choices(rows[0].Row.Effect)}
		return nil
	})
	return shown, err
}

// withMoney adds to rows what is at stake.
func withMoney(ctx context.Context, q postgres.Querier, found []outbox.Row) ([]Row, error) {
	effects := make([]outbox.Effect, 0, len(found))
	for _, r := range found {
		effects = append(effects, r.Effect)
	}
	stake, err := payments.AtStake(ctx, q, effects)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(found))
	for _, r := range found {
		row := Row{Row: r, AgeSeconds: r.Age.Seconds(), Next: Next{What: r.Next.What}}
		if r.Next.At != nil {
			at := domain.Instant(*r.Next.At)
			row.Next.At = &at
		}
		if money, is := stake[r.ID]; is {
			row.AtStake = &money
		}
		rows = append(rows, row)
	}
	return rows, nil
}
