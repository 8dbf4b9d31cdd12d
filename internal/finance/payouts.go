package finance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
	"holdfast/payments"
)

// ReadPayout reads one payout that a transaction tells of, and what went out with it, and tells whether there was one to read. One
// that could not be read is left alone for a while; one that may yet fail is read again until it cannot, and once its money has come back.
func (d *Desk) ReadPayout(ctx context.Context) (bool, error) {
	return d.readPayout(ctx, Window{time.Unix(0, 0), time.Unix(1<<40, 0)}, true)
}

// readPayout reads one whose transaction is in the window: politely, or, for somebody who waits, whatever was tried before.
func (d *Desk) readPayout(ctx context.Context, w Window, politely bool) (bool, error) {
	var id string
	err := d.pool.QueryRow(ctx, `
		SELECT t.source_id FROM provider_transactions t LEFT JOIN payouts p ON p.id = t.source_id
		 WHERE t.category = 'payout' AND t.source_id <> '' AND t.created_at >= $1 AND t.created_at < $2
		   AND CASE WHEN p.id IS NULL THEN true
		            WHEN p.rows_read_at IS NULL AND p.automatic THEN NOT $3 OR p.asked_at < clock_timestamp() - $4::interval
		            WHEN EXISTS (SELECT FROM provider_transactions b WHERE b.source_id = p.id AND b.source_id <> '' AND b.category = 'payout_reversal'
		                            AND b.read_at > p.asked_at) THEN true
		            ELSE $3 AND p.status IN ('pending', 'in_transit', 'paid') AND p.arrival_at > clock_timestamp() - interval '10 days'
		                 AND p.asked_at < clock_timestamp() - $4::interval END
		 ORDER BY p.asked_at NULLS FIRST, t.created_at LIMIT 1`, w.From, w.To, politely, d.config.Retry).Scan(&id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find a payout to read: %w", err)
	case d.provider == nil:
		return false, nil // its rows are pending, and the report says so
	}
	if err := d.budget.Take(ctx); err != nil {
		return true, err
	}
	p, err := d.provider.Payout(ctx, id)
	if err != nil {
		return true, fmt.Errorf("%w: payout: %w", ErrIncomplete, err)
	}
	if err := d.storePayout(ctx, p); err != nil {
		return true, err
	}
	if !p.Automatic {
		return true, nil
	}
	var ours error
	rows := 0
	if err = d.budget.Take(ctx); err == nil {
		err = d.provider.EachPayoutTransaction(ctx, id, func(page []payments.Transaction) error {
			rows += len(page)
			ids := make([]string, len(page))
			for i, t := range page {
				ids[i] = t.ID
			}
			if ours = payments.StoreTransactions(ctx, d.pool, page); ours == nil {
				ours = d.storePayoutRows(ctx, id, ids)
			}
			if ours == nil {
				ours = d.budget.Take(ctx)
			}
			return ours
		})
	}
	switch {
	case ours != nil:
		return true, ours
	case err != nil:
		return true, fmt.Errorf("%w: a payout's transactions: %w", ErrIncomplete, err)
	case rows == 0: // of what is paid out something must have come in
		return true, fmt.Errorf("%w: a payout's transactions: nothing is listed of payout %s", ErrIncomplete, id)
	}
	return true, d.payoutIsWhole(ctx, id)
}

// storePayout stores a payout as it was told. A report does not tell which are automatic: one that the provider calls manual stays so, and is
// not asked for rows that it does not list.
func (d *Desk) storePayout(ctx context.Context, p payments.Payout) error {
	_, err := d.pool.Exec(ctx, `
		INSERT INTO payouts (id, amount, currency, status, automatic, arrival_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		    ON CONFLICT ON CONSTRAINT payouts_pkey DO UPDATE SET status = $4, automatic = payouts.automatic AND $5, arrival_at = $6, asked_at = clock_timestamp(),
		       changed_in = CASE WHEN payouts.status <> $4 OR payouts.automatic AND NOT $5 THEN pg_current_xact_id() ELSE payouts.changed_in END`,
		p.ID, p.Amount.Amount, p.Amount.Currency, p.Status, p.Automatic, p.Arrival, p.Created)
	if err != nil {
		return fmt.Errorf("store a payout: %w", err)
	}
	return nil
}

func (d *Desk) storePayoutRows(ctx context.Context, payout string, transactions []string) error {
	if len(transactions) == 0 {
		return nil
	}
	b := &pgx.Batch{}
	postgres.Exec(b, "store what went out with a payout", `
		WITH added AS (
		     INSERT INTO payout_transactions (payout_id, transaction_id) SELECT $1, id FROM unnest($2::text[]) AS id
		         ON CONFLICT ON CONSTRAINT payout_transactions_pkey DO NOTHING RETURNING payout_id)
		UPDATE payouts SET changed_in = pg_current_xact_id() WHERE id IN (SELECT payout_id FROM added)`, payout, transactions)
	return postgres.Send(ctx, d.pool, b)
}

func (d *Desk) payoutIsWhole(ctx context.Context, id string) error {
	_, err := d.pool.Exec(ctx, `
		UPDATE payouts SET rows_read_at = clock_timestamp(), changed_in = CASE WHEN rows_read_at IS NULL THEN pg_current_xact_id() ELSE changed_in END
		 WHERE id = $1`, id)
	if err != nil {
		return fmt.Errorf("note that a payout was read whole: %w", err)
	}
	return nil
}
