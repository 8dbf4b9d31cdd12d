package operator

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

// Overview is how things stand, on one page.
type Overview struct {
	AsOf      domain.Instant       `json:"as_of"`
	Stuck     int64                `json:"stuck"`      // effects; at most 10,000 are counted
	StuckMore bool                 `json:"stuck_more"` // there are more than were counted
	Backlog   []Backlog            `json:"backlog"`    // unfinished effects by kind and status; every pair is there
	Ages      []AgeBand            `json:"ages"`       // unfinished effects by age
	Pauses    []outbox.Pausing     `json:"pauses"`
	Requests  int64                `json:"requests"`     // acts that wait for a second person
	Runs      int64                `json:"runs"`         // bulk runs that are not finished
	Receipts  int64                `json:"receipts"`     // of the provider's events: parked, or waiting for long
	Unknown   []outbox.ForeignJobs `json:"foreign_jobs"` // River jobs of kinds that this build does not know
}

// Backlog counts unfinished effects of a kind and state.
type Backlog = outbox.Backlog

// AgeBand counts unfinished effects of a kind and age.
type AgeBand = outbox.AgeBand

// Overview reads how things stand as of one moment. It counts along indexes, and nothing further than to 10,000.
func (d *Desk) Overview(ctx context.Context) (Overview, error) {
	var v Overview
	err := d.asOfOneMoment(ctx, func(tx pgx.Tx) error {
		var b pgx.Batch
		postgres.One(&b, "read the clock", func(row struct{ Now time.Time }) { v.AsOf = domain.Instant(row.Now) }, `SELECT now()`)
		outbox.ReadStuck(&b, d.config.DeadAfter, &v.Stuck)
		outbox.ReadBacklog(&b, &v.Backlog)
		outbox.ReadAges(&b, &v.Ages)
		payments.CountStuckEvents(&b, outbox.MostCounted, &v.Receipts)
		postgres.One(&b, "count what waits for people", func(row waiting) { v.Requests, v.Runs = row.Requests, row.Runs }, `
			SELECT (SELECT count(*) FROM operator_requests WHERE status = 'open' AND expires_at > clock_timestamp()) AS requests,
			       (SELECT count(*) FROM operator_runs WHERE finished_at IS NULL) AS runs`)
		err := postgres.Send(ctx, tx, &b)
		if err != nil {
			return err
		}
		if v.Pauses, err = outbox.Pauses(ctx, tx); err != nil {
			return err
		}
		v.Unknown, err = outbox.Foreign(ctx, tx)
		return err
	})
	if v.Stuck > outbox.MostCounted {
		v.Stuck, v.StuckMore = outbox.MostCounted, true
	}
	return v, err
}

type waiting struct{ Requests, Runs int64 }
