package finance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// comparison is one that was made of a window.
type comparison struct {
	Window
	At      time.Time // when it was done
	Unswept string    // why the stream was not compared; empty: it was
}

// bothSides reads what is not covered of a period and compares the two sides. What stands in the way is said in the report.
func (d *Desk) bothSides(ctx context.Context, r *Report, w, listed Window) (unswept string, err error) {
	if err := d.Read(ctx, listed); errors.Is(err, ErrIncomplete) {
		r.Complete, r.Incomplete = false, append(r.Incomplete, err.Error())
	} else if err != nil {
		return "", err
	}
	gaps, err := d.uncovered(ctx, listed)
	if err != nil {
		return "", err
	}
	switch {
	case !listed.To.After(listed.From):
		r.Complete, r.Incomplete = false, append(r.Incomplete, notBegun)
	case len(gaps) > 0:
		r.Complete, r.Incomplete = false, append(r.Incomplete, "not listed yet: "+spoken(gaps))
	}
	unswept = d.sweep(ctx, w)
	if !r.Complete {
		return unswept, nil
	}
	_, at, err := d.match(ctx, listed, unswept, false)
	if err != nil {
		return "", err
	}
	r.ComparedAt = &at
	return unswept, nil
}

// sweep compares the stream with what was published, and says why it could not.
func (d *Desk) sweep(ctx context.Context, w Window) (unswept string) {
	if d.config.Stream == nil {
		return "whether the stream still has the events that it has acknowledged: NATS_URL is not set"
	}
	if err := d.SweepStream(ctx, d.config.Stream, w); err != nil {
		d.logger.WarnContext(ctx, "the stream could not be compared with what was published", "error", err)
		return "whether the stream still has the events that it has acknowledged: it could not be read"
	}
	return ""
}

// compared is the newest comparison of a window, or of one that began likewise and ended a little earlier since its end had not come yet:
// if there is one that is fresh enough, and nothing has been entered into it since.
func (d *Desk) compared(ctx context.Context, w Window) (*comparison, error) {
	if d.config.Fresh <= 0 {
		return nil, nil //nolint:nilnil // none is wanted
	}
	c := comparison{Window: Window{From: w.From}}
	err := d.pool.QueryRow(ctx, `
		SELECT to_at, finished_at, coalesce(unchecked, '') FROM reconciliation_runs r
		 WHERE kind = 'match' AND status = 'complete' AND from_at = $1 AND to_at BETWEEN $2::timestamptz - $3::interval AND $2
		   AND finished_at > clock_timestamp() - $3::interval
		   AND NOT `+enteredSince("r.to_at")+`
		 ORDER BY to_at DESC, finished_at DESC LIMIT 1`, w.From, w.To, d.config.Fresh).Scan(&c.To, &c.At, &c.Unswept)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // there is none, and that is no error
	case err != nil:
		return nil, fmt.Errorf("find a comparison: %w", err)
	}
	c.To, c.At = c.To.UTC(), c.At.UTC()
	return &c, nil
}
