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
	Limit     int                 // default 100, at most 1000
	After     string              // Page.Next of the page before
	DeadAfter time.Duration       // a process not seen for so long carries no live job; default 15 s
}

// Row is an effect with what is to be known about it.
type Row struct {
	Effect
	Stuck  bool   `json:"stuck"`
	Reason string `json:"reason"` // in plain words: why it is where it is, and what comes next
}

// Page is one page of a listing.
type Page struct {
	Rows   []Row     `json:"rows"`
	Next   string    `json:"next,omitempty"` // for Filter.After; empty on the last page
	Pauses []Pausing `json:"pauses"`         // what is paused, whatever the filter
}

// row is what is read for a Row.
type row struct {
	Effect
	Carried  bool
	HeldBack bool
	Late     bool
}

// late is an SQL condition: effect o is older than its kind's service level.
const late = `(o.created_at < clock_timestamp() - CASE o.kind WHEN 'publish' THEN interval '1 minute' ELSE interval '5 minutes' END)`

const rowColumns = effectColumns + `, ` + carried + ` AS carried, ` + heldBack + ` AS held_back, ` + late + ` AS late`

// List lists effects: unfinished ones by status and due time, which is how they are indexed, finished ones newest first,
// all those of one booking oldest first.
// Rows move while one pages through them; a page is right when it is read.
func List(ctx context.Context, q postgres.Querier, f Filter) (Page, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	f.Limit = min(f.Limit, maxPage)
	after, err := parseCursor(f.After)
	if err != nil {
		return Page{}, err
	}
	pauses, err := Pauses(ctx, q)
	if err != nil {
		return Page{}, fmt.Errorf("list effects: %w", err)
	}
	query := `
		SELECT ` + rowColumns + `
		  FROM outbox o
		 WHERE o.status IN ('pending', 'in_doubt', 'parked')
		   AND (@kind = '' OR o.kind = @kind) AND (@status = '' OR o.status = @status)
		   AND (NOT @stuck OR o.status <> 'pending' OR ` + late + ` OR NOT ` + carried + `)
		   AND (NOT @paged OR (o.status, o.due_at, o.id) > (@after_status, @after_due::timestamptz, @after_id::uuid))
		 ORDER BY o.status, o.due_at, o.id
		 LIMIT @limit`
	switch {
	case f.Booking != domain.BookingID{}:
		query = `
		SELECT ` + rowColumns + `
		  FROM outbox o
		 WHERE o.booking_id = @booking
		   AND (@kind = '' OR o.kind = @kind) AND (@status = '' OR o.status = @status)
		   AND (NOT @stuck OR o.status IN ('in_doubt', 'parked') OR o.status = 'pending' AND (` + late + ` OR NOT ` + carried + `))
		   AND (NOT @paged OR o.id > @after_id::uuid)
		 ORDER BY o.id
		 LIMIT @limit`
	case f.Status.Finished():
		query = `
		SELECT ` + rowColumns + `
		  FROM outbox o
		 WHERE o.status = @status AND NOT @stuck AND (@kind = '' OR o.kind = @kind)
		   AND (NOT @paged OR o.id < @after_id::uuid)
		 ORDER BY o.id DESC
		 LIMIT @limit`
	}
	rows, err := readRows(ctx, q, pauses, query, pgx.NamedArgs{
		"booking": f.Booking, "dead_after": cmp.Or(f.DeadAfter, DeadAfter),
		"kind": string(f.Kind), "status": string(f.Status), "stuck": f.Stuck, "limit": f.Limit + 1,
		"paged": f.After != "", "after_status": string(after.Status), "after_due": after.DueAt, "after_id": after.ID,
	})
	if err != nil {
		return Page{}, fmt.Errorf("list effects: %w", err)
	}
	page := Page{Rows: rows, Pauses: pauses}
	if len(rows) > f.Limit {
		page.Rows = rows[:f.Limit]
		page.Next = cursorAt(page.Rows[f.Limit-1].Effect)
	}
	return page, nil
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
	rows, err := readRows(ctx, q, pauses, `
		SELECT `+rowColumns+`
		  FROM outbox o
		 WHERE o.booking_id = coalesce((SELECT own.booking_id FROM outbox own WHERE own.id = @id), @id::uuid)
		 ORDER BY o.created_at, o.id`, pgx.NamedArgs{"id": id, "dead_after": deadAfter})
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

func readRows(ctx context.Context, q postgres.Querier, pauses []Pausing, query string, args pgx.NamedArgs) ([]Row, error) {
	found, err := q.Query(ctx, query, args)
	if err != nil {
		return nil, err
	}
	raw, err := pgx.CollectRows(found, pgx.RowToStructByName[row])
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(raw))
	for _, r := range raw {
		stuck, reason := explainRow(r, pauses)
		rows = append(rows, Row{Effect: inUTC(r.Effect), Stuck: stuck, Reason: reason})
	}
	return rows, nil
}

// inUTC shows an effect's times as every other time that leaves the system.
func inUTC(e Effect) Effect {
	e.DueAt, e.CreatedAt = e.DueAt.UTC(), e.CreatedAt.UTC()
	if e.FinishedAt != nil {
		at := e.FinishedAt.UTC()
		e.FinishedAt = &at
	}
	return e
}

// explainRow says in plain words why an effect is where it is, and what comes next.
func explainRow(r row, pauses []Pausing) (stuck bool, reason string) {
	switch r.Status {
	case domain.EffectParked:
		return true, "parked, needs a person: " + r.LastError
	case domain.EffectInDoubt:
		reason = "in doubt; the reconciler asks the provider next at " + r.DueAt.UTC().Format(time.RFC3339)
		if r.LastError != "" {
			reason += "; " + r.LastError
		}
		return true, reason
	case domain.EffectPending:
		return explainPending(r, pauses)
	case domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded:
		return false, "finished"
	default:
		return true, "its status means nothing to this version"
	}
}

func explainPending(r row, pauses []Pausing) (stuck bool, reason string) {
	paused := slices.IndexFunc(pauses, func(p Pausing) bool { return p.Kind == r.Kind })
	switch {
	case paused >= 0: // first: whatever else is the matter, nothing goes on before it is resumed
		return r.Late || !r.Carried, pauses[paused].String()
	case r.HeldBack && (r.Late || !r.Carried):
		return true, "waits for an earlier event of its booking"
	case !r.Carried:
		return true, "no live job carries it; the sweep will give it one"
	case r.Late && r.LastError != "":
		return true, "late: " + r.LastError
	case r.Late:
		return true, "late: older than its service level"
	case r.LastError != "":
		return false, "tried again soon: " + r.LastError
	default:
		return false, "on its way"
	}
}

// cursor is a position in a listing.
type cursor struct {
	Status domain.EffectStatus `json:"s"`
	DueAt  time.Time           `json:"d"`
	ID     domain.EffectID     `json:"i"`
}

func cursorAt(e Effect) string {
	text, _ := json.Marshal(cursor{Status: e.Status, DueAt: e.DueAt, ID: e.ID}) // cannot fail: three plain values
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
