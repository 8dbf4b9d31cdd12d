package finance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/internal/cli"
	"holdfast/outbox"
)

// AsSigned is the report of a period as it was when it was signed off, whatever has changed since. Where there is none it is an
// *outbox.RefusedError.
func (d *Desk) AsSigned(ctx context.Context, p Period) (r Report, err error) {
	w, err := d.Window(ctx, p)
	if err != nil {
		return r, err
	}
	signed, err := d.Signed(ctx, w)
	switch {
	case err != nil:
		return r, err
	case len(signed) == 0:
		return r, &outbox.RefusedError{Reason: "nothing of the period is signed off"}
	case !signed[0].From.Equal(w.From) || !signed[0].To.Equal(w.To):
		return r, &outbox.RefusedError{Reason: "no report was signed of just these days; ask for what was: " + taken(p, w, signed)}
	}
	var kept *Report
	if err := d.pool.QueryRow(ctx, `SELECT report FROM finance_periods WHERE id = $1`, signed[0].ID).Scan(&kept); err != nil {
		return r, fmt.Errorf("read a report that was signed: %w", err)
	}
	if kept == nil {
		return r, &outbox.RefusedError{Reason: "the period was signed off before reports were kept"}
	}
	kept.SignedOff = signed
	return *kept, nil
}

// Days names what was signed, in days of its own zone.
func (s SignedPeriod) Days() string {
	return (Period{From: dayAfter(s.From, s.Zone), To: dayOf(s.To, s.Zone), Zone: s.Zone}).Days()
}

// Days is the period's name, and whose days they are.
func (p Period) Days() string {
	name := p.Name()
	if name == p.From+" to "+p.lastDay() {
		name += ", both days included"
	}
	return name + ", days of " + p.Zone
}

// Signed tells whether all of the period is signed off. Where only a part of it is, nothing is said of the rest.
func (r Report) Signed() bool { return len(unsigned(Window{r.From, r.To}, r.SignedOff)) == 0 }

// Unsigned says what of a period that is signed off in part may still be: what is signed is not signed again, nor as part of more.
func (r Report) Unsigned() string { return stillOpen(r.Period, Window{r.From, r.To}, r.SignedOff) }

func stillOpen(p Period, w Window, signed []SignedPeriod) string {
	var parts []string
	for _, part := range unsigned(w, signed) {
		if from, to := dayAfter(part.From, p.Zone), dayOf(part.To, p.Zone); from < to {
			parts = append(parts, "from "+from+" to before "+to)
		}
	}
	if len(parts) == 0 {
		return "no whole day of " + p.Zone + " is left in it: ask in the zone of what is signed"
	}
	return "what may still be signed off is " + strings.Join(parts, ", and ") + ", each by itself (days of " + p.Zone + ")"
}

// unsigned are the parts of a window that no signature covers. signed are in their order, and do not overlap.
func unsigned(w Window, signed []SignedPeriod) (parts []Window) {
	for _, s := range signed {
		if s.From.After(w.From) {
			parts = append(parts, Window{w.From, s.From})
		}
		if s.To.After(w.From) {
			w.From = s.To
		}
	}
	if w.From.Before(w.To) {
		parts = append(parts, w)
	}
	return parts
}

// taken says who has signed what of a period, and what is left of it.
func taken(p Period, w Window, signed []SignedPeriod) string {
	var parts []string
	for i, s := range signed {
		if i == 3 {
			parts = append(parts, countOf(len(signed)-3, "other part", "other parts"))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (by %s, %s)", s.Days(), s.SignedOffBy, cli.When(s.SignedOffAt)))
	}
	said := "signed off already: " + strings.Join(parts, "; ")
	if len(unsigned(w, signed)) > 0 {
		said += "; " + stillOpen(p, w, signed)
	}
	return said
}

// dayOf is the day of a zone on which a moment lies.
func dayOf(t time.Time, zone string) string { return t.In(location(zone)).Format(time.DateOnly) }

// dayAfter is the first day of a zone that begins at a moment or later.
func dayAfter(t time.Time, zone string) string {
	return day(dayOf(t.Add(-1), zone)).AddDate(0, 0, 1).Format(time.DateOnly)
}

func location(zone string) *time.Location {
	at, err := time.LoadLocation(zone)
	if err != nil {
		return time.UTC // Window has checked it
	}
	return at
}
