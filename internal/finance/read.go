package finance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/payments"
)

// longest is the longest window that is read at once, and the shortest that is matched.
const longest = 24 * time.Hour

// Read reads what moved the account's balance in a window, as far as it is not covered yet, and then the payouts in it. What has
// ended less than the lag ago is left for later. ErrIncomplete means that something could not be read: what was read before it is
// stored, and counts; reading goes on from there the next time.
func (d *Desk) Read(ctx context.Context, w Window) error {
	gaps, err := d.gaps(ctx, w)
	if err != nil {
		return err
	}
	started, p := time.Now(), Progress{Stage: "read"}
	var whole, done time.Duration
	for _, g := range gaps {
		whole += g.To.Sub(g.From)
	}
	for _, g := range gaps {
		for from := g.From; from.Before(g.To); from = from.Add(longest) {
			to := earlier(from.Add(longest), g.To)
			tell := func(rows int) {
				p.Rows, p.Pages, p.Taken = p.Rows+int64(rows), p.Pages+1, time.Since(started)
				d.config.Progress(p)
			}
			if err := d.readWindow(ctx, Window{from, to}, tell); err != nil {
				return err
			}
			if err := d.analyze(ctx); err != nil {
				return err
			}
			done += to.Sub(from)
			p.Done = float64(done) / float64(whole)
		}
	}
	for {
		more, err := d.readPayout(ctx, w, false)
		if err != nil || !more {
			return err
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// gaps are the parts of a window that have ended and are not covered.
func (d *Desk) gaps(ctx context.Context, w Window) ([]Window, error) {
	rows, err := d.pool.Query(ctx, `
		SELECT lower(gap), upper(gap)
		  FROM (SELECT date_trunc('second', least($2::timestamptz, clock_timestamp() - $3::interval)) AS ends) e, provider_transactions_covered c,
		       unnest(tstzmultirange(tstzrange($1, greatest(e.ends, $1))) - c.windows) AS gap
		 ORDER BY 1`, w.From, w.To, d.config.Lag)
	if err != nil {
		return nil, fmt.Errorf("find what is not covered: %w", err)
	}
	gaps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Window])
	if err != nil {
		return nil, fmt.Errorf("find what is not covered: %w", err)
	}
	return gaps, nil
}

// readWindow lists one window and stores it, page by page. It is covered only once all of it was listed.
func (d *Desk) readWindow(ctx context.Context, w Window, tell func(rows int)) error {
	if d.provider == nil {
		return fmt.Errorf("%w: its API is not set up here (STRIPE_API_KEY), and %s was not imported", ErrIncomplete, spoken([]Window{w}))
	}
	run, err := d.begin(ctx, "read", &w, "", "")
	if err != nil {
		return err
	}
	listed, unread, ours := d.list(ctx, w, tell)
	if unread == nil && ours == nil && listed.Rows == 0 { // nothing at all: is that likely?
		var busy bool
		if busy, ours = d.busy(ctx, w); busy && ours == nil {
			listed, unread, ours = d.list(ctx, w, tell)
		}
	}
	why := ""
	switch {
	case ours != nil:
		why = "the reading was broken off"
	case unread != nil:
		why = "the provider's transactions could not be read"
	}
	ended := d.end(context.WithoutCancel(ctx), run, listed.Rows, listed.Pages, why)
	switch {
	case ours != nil:
		return errors.Join(ours, ended)
	case unread != nil:
		return errors.Join(fmt.Errorf("%w: %w", ErrIncomplete, unread), ended)
	}
	return ended
}

// list lists a window and stores it, page by page. unread says why it is not all there is; ours is an error of our own, and no fault of
// the listing.
func (d *Desk) list(ctx context.Context, w Window, tell func(rows int)) (listed payments.Listed, unread, ours error) {
	if ours = d.budget.Take(ctx); ours != nil {
		return listed, nil, ours
	}
	unread = d.provider.EachTransaction(ctx, w.From, w.To, func(page []payments.Transaction) error {
		listed.Rows, listed.Pages = listed.Rows+int64(len(page)), listed.Pages+1
		if ours = payments.StoreTransactions(ctx, d.pool, page); ours == nil {
			ours = d.budget.Take(ctx)
		}
		tell(len(page))
		return ours
	})
	if unread != nil || ours != nil {
		return listed, unread, ours
	}
	err := payments.CheckListing(ctx, d.pool, d.provider, w.From, w.To, listed, d.budget.Take)
	if errors.Is(err, payments.ErrUnread) {
		return listed, err, nil
	}
	return listed, nil, err
}

// busy tells whether our book has anything in a window: then an empty listing is asked for twice.
func (d *Desk) busy(ctx context.Context, w Window) (busy bool, err error) {
	err = d.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM ledger_entries WHERE origin = 'book' AND occurred_at >= $1 AND occurred_at < $2)`, w.From, w.To).Scan(&busy)
	if err != nil {
		return false, fmt.Errorf("look into the book: %w", err)
	}
	return busy, nil
}

// begin writes down that a run has begun.
func (d *Desk) begin(ctx context.Context, kind string, w *Window, name, sum string) (uuid.UUID, error) {
	id := uuid.Must(uuid.NewV7())
	var from, to *time.Time
	if w != nil {
		from, to = &w.From, &w.To
	}
	_, err := d.pool.Exec(ctx, `
		INSERT INTO reconciliation_runs (id, kind, from_at, to_at, file_name, file_sha256) VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''))`,
		id, kind, from, to, name, sum)
	if err != nil {
		return id, fmt.Errorf("begin a run: %w", err)
	}
	return id, nil
}

// end writes down how a run has ended; why is empty if it is complete.
func (d *Desk) end(ctx context.Context, run uuid.UUID, rows, pages int64, why string) error {
	_, err := d.pool.Exec(ctx, `
		UPDATE reconciliation_runs
		   SET status = CASE WHEN $4 = '' THEN 'complete' ELSE 'incomplete' END, rows = $2, pages = $3, why = nullif($4, ''), finished_at = clock_timestamp()
		 WHERE id = $1 AND status = 'running'`, run, rows, pages, why)
	if err != nil {
		return fmt.Errorf("end a run: %w", err)
	}
	return nil
}
