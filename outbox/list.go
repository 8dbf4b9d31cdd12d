package outbox

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

const maxPage = 1000

// ErrCursor says that a cursor is none that List has given out.
var ErrCursor = errors.New("this is no cursor of a listing")

// Filter chooses effects to list. The zero value lists what is unfinished.
type Filter struct {
	Stuck     bool                // only what needs attention: parked, in doubt, late, or carried by no live job
	Booking   domain.BookingID    // zero: every booking; else finished effects are listed, too
	Kind      domain.EffectKind   // empty: every kind
	Status    domain.EffectStatus // empty: every unfinished one; of one booking, every one
	OlderThan time.Duration       // only those committed at least so long ago; zero: of any age
	Limit     int                 // default 100, at most 1000
	After     string              // Page.Next of the page before
	DeadAfter time.Duration       // a process not seen for so long carries no live job; default 15 s
}

// Row is an effect with what is to be known about it.
type Row struct {
	Effect
	Stuck  bool          `json:"stuck"`
	Reason string        `json:"reason"` // in plain words: why it is where it is, and what comes next
	Next   Next          `json:"-"`
	Age    time.Duration `json:"-"` // since it was committed, by the database's clock
}

// Next is the next thing that happens to an effect by itself.
type Next struct {
	What string
	At   *time.Time // nil: unknown, or never
}

// Page is one page of a listing.
type Page struct {
	Rows   []Row     `json:"rows"`
	Next   string    `json:"next,omitempty"` // for Filter.After; empty on the last page
	Pauses []Pausing `json:"pauses"`         // what is paused, whatever the filter
}

// List lists effects: unfinished ones by status and then by age, the oldest first, finished ones newest first, all those of one
// booking oldest first.
//
// Whether a live job carries an effect that is not late yet is looked up for the 2,000 oldest of its kind only: what is lost beyond
// them is listed as stuck once it is late. Rows move while one pages through them; a page is right when it is read.
func List(ctx context.Context, q postgres.Querier, f Filter) (Page, error) {
	page, err := list(ctx, q, f)
	if err != nil && !errors.Is(err, ErrCursor) {
		return Page{}, fmt.Errorf("list effects: %w", err)
	}
	return page, err
}

func list(ctx context.Context, q postgres.Querier, f Filter) (Page, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	f.Limit = min(f.Limit, maxPage)
	f.DeadAfter = cmp.Or(f.DeadAfter, DeadAfter)
	after, err := parseCursor(f.After)
	if err != nil {
		return Page{}, err
	}
	page := Page{}
	if page.Pauses, err = Pauses(ctx, q); err != nil {
		return Page{}, err
	}
	var effects []Effect
	for _, query := range pageQueries(f, after) {
		more, err := query.most(f.Limit+1-len(effects)).read(ctx, q)
		if err != nil {
			return Page{}, err
		}
		if effects = append(effects, more...); len(effects) > f.Limit {
			effects = effects[:f.Limit]
			page.Next = cursorAt(effects[f.Limit-1])
			break
		}
	}
	if page.Rows, err = explainAll(ctx, q, effects, page.Pauses, f.DeadAfter); err != nil {
		return Page{}, err
	}
	if f.Stuck { // a moment has passed since they were chosen
		page.Rows = slices.DeleteFunc(page.Rows, func(r Row) bool { return !r.Stuck })
	}
	return page, nil
}

// Choose reads the effects that a filter matches, the oldest first, at most a number of them, and whether there are more.
func Choose(ctx context.Context, q postgres.Querier, f Filter, most int) (effects []Effect, more bool, err error) {
	f.DeadAfter = cmp.Or(f.DeadAfter, DeadAfter)
	for _, query := range pageQueries(f, cursor{}) {
		found, err := query.most(most+1-len(effects)).read(ctx, q)
		if err != nil {
			return nil, false, fmt.Errorf("choose effects: %w", err)
		}
		if effects = append(effects, found...); len(effects) > most {
			effects, more = effects[:most], true
			break
		}
	}
	if f.Status.Finished() {
		slices.Reverse(effects)
	}
	return effects, more, nil
}

// Shown is one effect with its surroundings.
type Shown struct {
	Effect  Row      `json:"effect"`
	Others  []Row    `json:"others"`  // the other effects of its booking, oldest first
	Actions []Action `json:"actions"` // what was done by hand to the booking's effects, oldest first
}

// Show reads one effect with its surroundings. The id of a booking shows its charge, and so all of its effects: that is
// the id which people have. It returns domain.ErrNotFound if there is neither.
func Show(ctx context.Context, q postgres.Querier, id domain.EffectID, deadAfter time.Duration) (Shown, error) {
	pauses, err := Pauses(ctx, q)
	if err != nil {
		return Shown{}, fmt.Errorf("show effect %s: %w", id, err)
	}
	effects, err := pageQuery{sql: `
		SELECT ` + effectColumns + `
		  FROM outbox o
		 WHERE o.booking_id = coalesce((SELECT own.booking_id FROM outbox own WHERE own.id = @id), @id::uuid)
		 ORDER BY o.created_at, o.id`, args: pgx.NamedArgs{"id": id}}.read(ctx, q)
	if err != nil {
		return Shown{}, fmt.Errorf("show effect %s: %w", id, err)
	}
	rows, err := explainAll(ctx, q, effects, pauses, deadAfter)
	if err != nil {
		return Shown{}, fmt.Errorf("show effect %s: %w", id, err)
	}
	at := slices.IndexFunc(rows, func(r Row) bool { return r.ID == id })
	if at < 0 {
		at = slices.IndexFunc(rows, func(r Row) bool { return r.Kind == domain.EffectCharge })
	}
	if at < 0 {
		return Shown{}, domain.ErrNotFound
	}
	shown := Shown{Effect: rows[at], Others: slices.Concat(rows[:at], rows[at+1:])}
	shown.Actions, err = actionsOf(ctx, q, shown.Effect.BookingID)
	return shown, err
}

// cursor is a position in a listing.
type cursor struct {
	Status    domain.EffectStatus `json:"s"`
	CreatedAt time.Time           `json:"c"`
	ID        domain.EffectID     `json:"i"`
}

func cursorAt(e Effect) string {
	return cursor{Status: e.Status, CreatedAt: e.CreatedAt, ID: e.ID}.String()
}

func (c cursor) String() string {
	text, _ := json.Marshal(c) // cannot fail: three plain values
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(s string) (c cursor, err error) {
	if s == "" {
		return c, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return c, ErrCursor
	}
	return c, nil
}
