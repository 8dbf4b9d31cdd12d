package finance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/domain"
)

// Period is the days [From, To) of a time zone: from midnight to midnight there, wherever this process and the database run.
type Period struct {
	From string `json:"from"` // such as 2027-03-01
	To   string `json:"to"`   // the first day after it
	Zone string `json:"zone"`
}

// Window is a half-open interval of time.
type Window struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Window is the period as instants. It returns a *domain.ValidationError that names what is wrong.
func (d *Desk) Window(ctx context.Context, p Period) (Window, error) {
	for field, day := range map[string]string{"from": p.From, "to": p.To} {
		if at, err := time.Parse(time.DateOnly, day); err != nil || at.Year() < 2000 || at.Year() > 2100 {
			return Window{}, &domain.ValidationError{Field: field, Reason: "must be a day from 2000 to 2100 such as 2027-03-01"}
		}
	}
	if p.From >= p.To {
		return Window{}, &domain.ValidationError{Field: "to", Reason: "must be later than from: it is the first day after the period"}
	}
	unknown := &domain.ValidationError{Field: "zone", Reason: "must be a zone of the IANA database, such as Europe/Berlin"}
	if _, err := time.LoadLocation(p.Zone); err != nil || p.Zone == "" || p.Zone == "Local" {
		return Window{}, unknown
	}
	var w Window
	err := d.pool.QueryRow(ctx, `SELECT $1::date::timestamp AT TIME ZONE $3, $2::date::timestamp AT TIME ZONE $3`, p.From, p.To, p.Zone).Scan(&w.From, &w.To)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && refused.Code == "22023":
		return Window{}, unknown
	case err != nil:
		return Window{}, fmt.Errorf("find the midnights of a period: %w", err)
	}
	if !w.To.After(w.From) { // Apia had no 30 December 2011
		return Window{}, &domain.ValidationError{Field: "to", Reason: "must be later than from: the zone's calendar skips what is between them"}
	}
	return Window{w.From.UTC(), w.To.UTC()}, nil
}
