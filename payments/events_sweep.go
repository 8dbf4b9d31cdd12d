package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	sweepPages = 10              // most pages of one run
	sweepRest  = 5 * time.Second // between two runs of one window
	sweepRetry = time.Minute     // after a page that could not be read; never longer than the interval
)

// window is a part of the provider's list of events that is being read, newest first.
type window struct {
	from, to time.Time
	after    string // the last event of the page before
}

// SweepEvents reads a part of the provider's own list of events and stores the receipts of those that nobody has
// delivered: while the endpoint is disabled, refused or unreachable nothing is lost, only later. It tells whether it was
// due.
//
// It walks a closed window, one that ended a while ago, so that no event is born between two of its pages. The next one
// begins some time before the end of this one: an event may become visible late. A window that is not read to its end
// leaves the cursor where it was; one that is longer than a run may read is gone on with in the next.
func (p *Payments) SweepEvents(ctx context.Context) (bool, error) {
	w, err := p.claimSweep(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for range sweepPages {
		more, err := p.sweepPage(ctx, &w)
		switch {
		case errors.Is(err, ErrUnread):
			p.logger.WarnContext(ctx, "the provider's list of events could not be read; the cursor stays", "error", err)
			return true, p.restSweep(ctx, w, min(sweepRetry, p.config.SweepInterval))
		case err != nil:
			return true, err // the lease runs out, and the page is read again
		case !more:
			return true, p.endSweep(ctx, w)
		}
	}
	return true, p.restSweep(ctx, w, min(sweepRest, p.config.SweepInterval))
}

// sweepPage reads one page, stores what is missing and moves on after it.
func (p *Payments) sweepPage(ctx context.Context, w *window) (more bool, err error) {
	page, more, err := p.gateway.Events(ctx, heeded(), w.from, w.to, w.after)
	if errors.Is(err, ErrNoSuchEvent) { // the provider has forgotten it since: begin the window anew
		w.after = ""
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	stored, err := storeEvents(ctx, p.pool, page, viaSweep)
	if err != nil {
		return false, err
	}
	for _, e := range stored {
		p.meter.stored(e, viaSweep)
	}
	if len(page) > 0 {
		w.after = page[len(page)-1].ID
	}
	return more, nil
}

// claimSweep makes the sweep this process's for a lease, if it is due, and begins a window where none is being read. The
// first one is due an interval after the first call: before that call there was nothing to hear of.
func (p *Payments) claimSweep(ctx context.Context) (window, error) {
	var w window
	if !p.sweepSetUp.Load() {
		_, err := p.pool.Exec(ctx, `
			INSERT INTO provider_events_sweep (swept_to, due_at)
			VALUES (clock_timestamp() - $1::interval, clock_timestamp() + $2::interval)
			    ON CONFLICT DO NOTHING`, p.config.SweepLag, p.config.SweepInterval)
		if err != nil {
			return w, fmt.Errorf("set up the sweep of events: %w", err)
		}
		p.sweepSetUp.Store(true)
	}
	err := p.pool.QueryRow(ctx, `
		UPDATE provider_events_sweep
		   SET window_from = coalesce(window_from, swept_to - $1::interval),
		       window_to = coalesce(window_to, greatest(swept_to, clock_timestamp() - $2::interval)),
		       due_at = clock_timestamp() + $3::interval
		 WHERE only_row = (SELECT only_row FROM provider_events_sweep WHERE due_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)
		RETURNING window_from, window_to, coalesce(after_id, '')`, p.config.SweepOverlap, p.config.SweepLag, p.config.Lease,
	).Scan(&w.from, &w.to, &w.after)
	if err != nil {
		return w, fmt.Errorf("claim the sweep of events: %w", err)
	}
	return w, nil
}

// restSweep leaves the window to the next run. Whoever has taken the sweep meanwhile knows better.
func (p *Payments) restSweep(ctx context.Context, w window, wait time.Duration) error {
	_, err := p.pool.Exec(ctx, `
		UPDATE provider_events_sweep SET after_id = nullif($3, ''), due_at = clock_timestamp() + $4::interval
		 WHERE window_from = $1 AND window_to = $2`, w.from, w.to, w.after, wait)
	if err != nil {
		return fmt.Errorf("save how far the list of events was read: %w", err)
	}
	return nil
}

// endSweep moves the cursor: the window was read whole.
func (p *Payments) endSweep(ctx context.Context, w window) error {
	_, err := p.pool.Exec(ctx, `
		UPDATE provider_events_sweep
		   SET swept_to = $2, window_from = NULL, window_to = NULL, after_id = NULL, due_at = clock_timestamp() + $3::interval
		 WHERE window_from = $1 AND window_to = $2`, w.from, w.to, p.config.SweepInterval)
	if err != nil {
		return fmt.Errorf("move the cursor of the list of events: %w", err)
	}
	return nil
}
