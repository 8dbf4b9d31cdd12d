package finance

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
)

// enteredSince tells whether something was entered into the window of a run r, as far as to, that the run may not have seen: entries of
// either side, or what is known of a payout. Whoever asks has a snapshot that is newer than what they rely on, or asks last.
func enteredSince(to string) string {
	return `(r.snapshot IS NULL
		    OR EXISTS (SELECT FROM ledger_entries e WHERE e.occurred_at >= r.from_at AND e.occurred_at < ` + to + ` AND entered_since(e.entered_in, r.snapshot))
		    OR EXISTS (SELECT FROM payouts o JOIN provider_transactions t ON t.source_id = o.id AND t.source_id <> '' AND t.category = 'payout'
		                WHERE t.created_at >= r.from_at AND t.created_at < ` + to + ` AND entered_since(o.changed_in, r.snapshot)))`
}

// look marks the days into which something was entered since somebody has looked last, until a comparison that began later has seen them. What
// takes something back, corrects it, or is a charge that comes late may be found wrong on the day of what it belongs to: that is marked, too.
func (d *Desk) look(ctx context.Context) error {
	err := postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = '10min'`); err != nil {
			return err
		}
		// One at a time. A snapshot from the future has come with a dump of another cluster: all that was entered here is new.
		var looked string
		err := tx.QueryRow(ctx, `
			SELECT CASE WHEN pg_snapshot_xmax(snapshot) > pg_snapshot_xmax(pg_current_snapshot()) THEN '1:1:' ELSE snapshot::text END
			  FROM finance_days_looked FOR UPDATE`).Scan(&looked)
		if err != nil {
			return err
		}
		// One statement: what it has not seen is not in the snapshot that it leaves. It finds what is new by its index.
		_, err = tx.Exec(ctx, `
			WITH entered AS (
			     SELECT occurred_at AS at FROM ledger_entries WHERE entered_since(entered_in, $1::text::pg_snapshot)
			      UNION ALL
			     SELECT x.occurred_at FROM ledger_entries e JOIN ledger_entries x ON x.payment_id = e.payment_id
			      WHERE entered_since(e.entered_in, $1::text::pg_snapshot) AND e.kind IN ('charge', 'charge_correction', 'refund_failure', 'dispute_reversal')
			      UNION ALL
			     SELECT t.created_at FROM payouts o JOIN provider_transactions t ON t.source_id = o.id AND t.source_id <> '' AND t.category = 'payout'
			      WHERE entered_since(o.changed_in, $1::text::pg_snapshot)),
			marked AS (
			     INSERT INTO finance_days_entered AS f (day, first_at, last_at)
			     SELECT date_trunc('day', at, 'UTC'), min(at), max(at) FROM entered GROUP BY 1
			         ON CONFLICT ON CONSTRAINT finance_days_entered_pkey DO UPDATE
			        SET first_at = least(f.first_at, EXCLUDED.first_at), last_at = greatest(f.last_at, EXCLUDED.last_at), marked_in = pg_current_xact_id())
			UPDATE finance_days_looked SET snapshot = pg_current_snapshot()`, looked)
		return err
	})
	if err != nil {
		return fmt.Errorf("look for what was entered: %w", err)
	}
	return nil
}
