package finance

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
)

// daysAgain is how many days with open exceptions are compared again in one round, beside the last ones; and how many into which something
// was entered.
const daysAgain = 31

// Watch compares the last days by itself, so that what does not match is on the list before anybody asks for a report; the days of what is
// open, so that it closes once it is explained; and those into which something was entered since they were compared. What was not listed
// is left out: nobody can judge it yet. It does nothing if it was done a while ago, by whatever process, and returns false: there is no
// more to do at once.
func (d *Desk) Watch(ctx context.Context) (more bool, err error) {
	if err := d.look(ctx); err != nil {
		return false, err
	}
	windows, err := d.watched(ctx)
	if err != nil || len(windows) == 0 {
		return false, err
	}
	// Somebody's report of today alone says nothing about the days before it.
	var recent bool
	err = d.pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM reconciliation_runs
		                WHERE kind = 'match' AND status = 'complete' AND to_at > clock_timestamp() - $1::interval
		                  AND from_at <= greatest($2, date_trunc('day', clock_timestamp() - $3::interval - interval '1 day', 'UTC')))`,
		d.config.Every+d.config.Lag, windows[len(windows)-1].From, d.config.LateAfter).Scan(&recent)
	if err != nil {
		return false, fmt.Errorf("find the newest comparison: %w", err)
	}
	if recent {
		return false, nil
	}
	for _, w := range windows {
		if err := d.Match(ctx, w); errors.Is(err, domain.ErrBusy) {
			return false, nil // somebody else is at it
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}

// watched are the windows to compare, as far as they were listed, the newest last: it says that the round was done.
func (d *Desk) watched(ctx context.Context) ([]Window, error) {
	rows, err := d.pool.Query(ctx, `
		WITH last AS MATERIALIZED (
		     SELECT date_trunc('second', clock_timestamp() - $1::interval) AS ends,
		            date_trunc('day', clock_timestamp() - $2::interval - interval '1 day', 'UTC') AS begins),
		wanted AS (
		     SELECT tstzrange(begins, ends) AS days FROM last WHERE begins < ends
		      UNION ALL
		     SELECT tstzrange(day, day + interval '24 hours')
		       FROM (SELECT date_trunc('day', i.occurred_at, 'UTC') AS day FROM reconciliation_items i, last
		              WHERE i.status = 'open' AND i.kind <> 'period_changed' AND i.occurred_at < last.begins
		              GROUP BY 1 ORDER BY random() LIMIT $3) AS older -- another choice in each round: each has its turn
		      UNION ALL
		     SELECT tstzrange(day, day + interval '24 hours')
		       FROM (SELECT f.day FROM finance_days_entered f, last, provider_transactions_covered c
		              WHERE f.day < last.begins AND c.windows @> tstzrange(f.first_at, f.last_at, '[]') ORDER BY f.day LIMIT $3) AS entered)
		SELECT lower(w), upper(w) FROM provider_transactions_covered c, unnest((SELECT range_agg(days) FROM wanted) * c.windows) AS w
		 ORDER BY 1`, d.config.Lag, d.config.LateAfter, daysAgain)
	if err != nil {
		return nil, fmt.Errorf("find what to compare: %w", err)
	}
	windows, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Window, err error) {
		err = row.Scan(&w.From, &w.To)
		return Window{w.From.UTC(), w.To.UTC()}, err
	})
	if err != nil {
		return nil, fmt.Errorf("find what to compare: %w", err)
	}
	return windows, nil
}
