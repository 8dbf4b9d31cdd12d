package finance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
)

// matchLock is the advisory lock of whoever matches.
const matchLock = 0x66696e616e6365

// unlooked is what a comparison leaves out that nobody has asked to report of.
const unlooked = "whether the stream still has the events that it has acknowledged: this comparison did not look"

// Match compares the two sides in a window, part by part, and brings the list of exceptions up to date. It returns ErrIncomplete,
// and accuses nobody, if the window was not listed whole; a wrapped domain.ErrBusy if another run is at it for longer than it
// may wait. Doing it again changes nothing; one that was killed is taken up where it stood.
func (d *Desk) Match(ctx context.Context, w Window) error {
	_, _, err := d.match(ctx, w, unlooked, false)
	return err
}

// match tells by which run it was done, and when; unchecked is what it has to leave out, for whoever reports of it. Anew is without taking up
// what another has left: bookings, fees and payouts may have changed since.
func (d *Desk) match(ctx context.Context, w Window, unchecked string, anew bool) (run uuid.UUID, at time.Time, err error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return run, at, fmt.Errorf("match: %w", err)
	}
	defer conn.Release()
	if err := d.lock(ctx, conn.Conn()); err != nil {
		return run, at, err
	}
	defer d.unlock(ctx, conn.Conn())
	if gaps, err := d.uncovered(ctx, w); err != nil || len(gaps) > 0 {
		if err == nil {
			err = fmt.Errorf("%w: not listed yet: %s", ErrIncomplete, spoken(gaps))
		}
		return run, at, err
	}
	if _, err := ledger.CatchUp(ctx, d.pool, w.From.AddDate(0, -6, 0)); err != nil {
		return run, at, err
	}
	if err := d.analyze(ctx); err != nil {
		return run, at, err
	}
	if err := d.look(ctx); err != nil {
		return run, at, err
	}
	run, reached, asOf, err := d.takeUp(ctx, w, anew)
	if err != nil {
		return run, at, err
	}
	rows, err := d.matchParts(ctx, run, asOf, Window{reached, w.To})
	if err != nil {
		return run, at, err
	}
	if err := d.comparePeriods(ctx, run, w); err != nil {
		return run, at, err
	}
	err = d.pool.QueryRow(ctx, `
		WITH seen AS ( -- whatever was marked before it began
		     DELETE FROM finance_days_entered f USING reconciliation_runs r
		      WHERE r.id = $1 AND f.first_at >= r.from_at AND f.last_at < r.to_at AND NOT entered_since(f.marked_in, r.snapshot))
		UPDATE reconciliation_runs SET status = 'complete', rows = $2, unchecked = nullif($3, ''), finished_at = clock_timestamp() WHERE id = $1
		RETURNING finished_at`, run, rows, unchecked).Scan(&at)
	if err != nil {
		return run, at, fmt.Errorf("end a run: %w", err)
	}
	return run, at.UTC(), nil
}

// matchParts goes through what is left of a run's window, and tells how far it is.
func (d *Desk) matchParts(ctx context.Context, run uuid.UUID, asOf time.Time, left Window) (rows int64, err error) {
	started, whole := time.Now(), left.To.Sub(left.From)
	for left.From.Before(left.To) {
		to, err := d.stride(ctx, left)
		if err != nil {
			return rows, err
		}
		n, err := d.matchWindow(ctx, run, asOf, Window{left.From, to})
		if err != nil {
			return rows, fmt.Errorf("match: %w", err)
		}
		rows, left.From = rows+n, to
		d.config.Progress(Progress{Stage: "match", Rows: rows, Taken: time.Since(started), Done: 1 - float64(left.To.Sub(to))/float64(whole)})
	}
	return rows, nil
}

// analyze lets the planner know of what was stored in bulk; otherwise it would know once the database's own housekeeping has come by, and
// plans that were made for small tables would be kept until then.
func (d *Desk) analyze(ctx context.Context) error {
	var many bool
	err := d.pool.QueryRow(ctx, `
		SELECT coalesce(bool_or(n_mod_since_analyze > 1000 AND n_mod_since_analyze > n_live_tup / 10), false) FROM pg_stat_user_tables
		 WHERE relname IN ('provider_transactions', 'ledger_entries', 'payout_transactions')`).Scan(&many)
	if err == nil && many {
		_, err = d.pool.Exec(ctx, `ANALYZE provider_transactions, ledger_entries, payout_transactions`)
	}
	if err != nil {
		return fmt.Errorf("analyze what was stored: %w", err)
	}
	return nil
}

// lock keeps others from matching: they wait, for so long at most.
func (d *Desk) lock(ctx context.Context, conn *pgx.Conn) error {
	for deadline := time.Now().Add(d.config.Wait); ; {
		var mine bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(matchLock)).Scan(&mine); err != nil {
			return fmt.Errorf("lock the matching: %w", err)
		}
		if mine {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("another run is matching: look again once it is done: %w", domain.ErrBusy)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *Desk) unlock(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, int64(matchLock)); err != nil {
		_ = conn.Close(ctx) // the lock goes with it
	}
}

// uncovered are the gaps in a window, whether they have ended or not.
func (d *Desk) uncovered(ctx context.Context, w Window) ([]Window, error) {
	return d.outside(ctx, w, "provider_transactions_covered")
}

// payoutsUncovered are the gaps in which nobody can tell which payouts there were.
func (d *Desk) payoutsUncovered(ctx context.Context, w Window) ([]Window, error) {
	return d.outside(ctx, w, "provider_payouts_covered")
}

func (d *Desk) outside(ctx context.Context, w Window, covered string) ([]Window, error) {
	rows, err := d.pool.Query(ctx, `
		SELECT lower(gap), upper(gap) FROM `+covered+` c, unnest(tstzmultirange(tstzrange($1, $2)) - c.windows) AS gap ORDER BY 1`, w.From, w.To)
	if err != nil {
		return nil, fmt.Errorf("find what is not covered: %w", err)
	}
	gaps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Window])
	if err != nil {
		return nil, fmt.Errorf("find what is not covered: %w", err)
	}
	return gaps, nil
}

// takeUp continues a run of the same window that nobody carries on, or begins one: another one, too, where something has been entered since
// into what that run had passed. Whoever calls it holds the lock.
func (d *Desk) takeUp(ctx context.Context, w Window, anew bool) (run uuid.UUID, reached, asOf time.Time, err error) {
	err = d.pool.QueryRow(ctx, `
		SELECT id, coalesce(reached_at, from_at), as_of FROM reconciliation_runs r
		 WHERE NOT $3 AND kind = 'match' AND from_at = $1 AND to_at = $2 AND status = 'running' AND started_at > clock_timestamp() - interval '1 hour'
		   AND NOT `+enteredSince("r.reached_at")+`
		 ORDER BY id DESC LIMIT 1`, w.From, w.To, anew).Scan(&run, &reached, &asOf)
	if err == nil {
		return run, reached, asOf, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return run, reached, asOf, fmt.Errorf("find a run to take up: %w", err)
	}
	if run, err = d.begin(ctx, "match", &w, "", ""); err != nil {
		return run, reached, asOf, err
	}
	err = d.pool.QueryRow(ctx, `SELECT from_at, as_of FROM reconciliation_runs WHERE id = $1`, run).Scan(&reached, &asOf)
	return run, reached, asOf, err
}

// stride is up to where the next part of a window goes: a day, or as many days as have few rows.
func (d *Desk) stride(ctx context.Context, w Window) (to time.Time, err error) {
	err = d.pool.QueryRow(ctx, `
		SELECT least($2, greatest($1::timestamptz + $4::interval, least(
		       coalesce((SELECT created_at FROM provider_transactions WHERE created_at >= $1 AND created_at < $2 ORDER BY created_at OFFSET $3 LIMIT 1), $2),
		       coalesce((SELECT occurred_at FROM ledger_entries WHERE occurred_at >= $1 AND occurred_at < $2 ORDER BY occurred_at OFFSET $3 LIMIT 1), $2))))`,
		w.From, w.To, d.config.Stride, longest).Scan(&to)
	if err != nil {
		return to, fmt.Errorf("find how much to match at once: %w", err)
	}
	return to.UTC(), nil
}

// matchWindow is one transaction: either all that it finds is on the list and it has passed, or nothing has changed.
func (d *Desk) matchWindow(ctx context.Context, run uuid.UUID, asOf time.Time, w Window) (rows int64, err error) {
	err = postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		postgres.Exec(b, "allow for time", `SET LOCAL statement_timeout = '10min'`)
		postgres.Exec(b, "do not compile", `SET LOCAL jit = off`)
		// The other lock goes with its connection, and whoever has lost it may be in here still: what it found before would close what is
		// found after.
		postgres.Exec(b, "one part at a time", `SELECT pg_advisory_xact_lock($1)`, int64(matchLock+1))
		postgres.Exec(b, "make room for findings", `
			CREATE TEMPORARY TABLE findings (kind text, about text, booking_id uuid, amount bigint, currency text, occurred_at timestamptz, why text)
			    ON COMMIT DROP`)
		if err := postgres.Send(ctx, tx, b); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, findings(), w.From, w.To, asOf, d.config.Lag, d.config.LateAfter); err != nil {
			return fmt.Errorf("find: %w", err)
		}
		b = &pgx.Batch{}
		list(b, run)
		postgres.Exec(b, "close what is explained", `
			UPDATE reconciliation_items i SET status = 'closed', closed_by_run = $3, ended_at = clock_timestamp()
			 WHERE i.status = 'open' AND i.kind <> 'period_changed' AND i.occurred_at >= $1 AND i.occurred_at < $2
			   AND NOT EXISTS (SELECT FROM findings f WHERE f.kind = i.kind AND f.about = i.about)`, w.From, w.To, run)
		postgres.Exec(b, "pass a window", `UPDATE reconciliation_runs SET reached_at = $2 WHERE id = $1`, run, w.To)
		postgres.One(b, "count", func(n struct{ N int64 }) { rows = n.N },
			`SELECT count(*) AS n FROM provider_transactions WHERE created_at >= $1 AND created_at < $2`, w.From, w.To)
		return postgres.Send(ctx, tx, b)
	})
	return rows, err
}

// list puts the findings on the list, but for what is signed off as it is.
func list(b *pgx.Batch, run uuid.UUID) {
	postgres.Exec(b, "list exceptions", `
		INSERT INTO reconciliation_items AS i (kind, about, booking_id, amount, currency, occurred_at, why, owner, period_id, run_id)
		SELECT f.kind, f.about, f.booking_id, f.amount, f.currency, f.occurred_at, f.why,
		       CASE WHEN f.kind = 'event_unpublished' THEN 'operations' ELSE 'finance' END, p.id, $1
		  FROM findings f LEFT JOIN finance_periods p ON p.from_at <= f.occurred_at AND p.to_at > f.occurred_at
		 WHERE NOT EXISTS (SELECT FROM reconciliation_items s WHERE s.status = 'signed_off' AND s.kind = f.kind AND s.about = f.about
		                      AND (s.amount, s.currency) IS NOT DISTINCT FROM (f.amount, f.currency))
		 ORDER BY f.occurred_at, f.kind, f.about -- the numbers are in the order of events
		    ON CONFLICT (kind, about) WHERE status = 'open' DO UPDATE SET amount = EXCLUDED.amount, currency = EXCLUDED.currency, why = EXCLUDED.why
		 WHERE (i.amount, i.currency, i.why) IS DISTINCT FROM (EXCLUDED.amount, EXCLUDED.currency, EXCLUDED.why)`, run)
}
