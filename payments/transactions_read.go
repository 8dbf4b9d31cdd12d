package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// mostOfIngest is the longest window that is read at once: a backlog is caught up with day by day.
const mostOfIngest = 24 * time.Hour

// IngestTransactions reads the next window of what moved the account's balance, and tells whether there was one. A window ends
// some time ago, so that nothing is born in it while it is read, and begins before the end of the one before: a transaction may
// become visible late. One that could not be read whole stays the next one.
func (p *Payments) IngestTransactions(ctx context.Context) (bool, error) {
	_, err := p.pool.Exec(ctx, `
		INSERT INTO provider_transactions_cursor (read_from, read_to)
		SELECT start, start
		  FROM (SELECT date_trunc('second', least((SELECT min(created_at) FROM payments), clock_timestamp() - $1::interval)) AS start) AS s
		 WHERE NOT EXISTS (SELECT FROM provider_transactions_cursor)
		    ON CONFLICT DO NOTHING`, p.config.IngestLag)
	if err != nil {
		return false, fmt.Errorf("set up the reading of transactions: %w", err)
	}
	var readTo, to time.Time
	err = p.pool.QueryRow(ctx, `
		WITH next AS (
			SELECT read_to, date_trunc('second', least(read_to + $1::interval, clock_timestamp() - $2::interval)) AS until
			  FROM provider_transactions_cursor WHERE due_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)
		UPDATE provider_transactions_cursor c SET due_at = clock_timestamp() + $3::interval
		  FROM next WHERE next.until > next.read_to
		RETURNING next.read_to, next.until`, mostOfIngest, p.config.IngestLag, p.config.Lease,
	).Scan(&readTo, &to)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim the reading of transactions: %w", err)
	}
	_, unread := p.ReadTransactions(ctx, readTo.Add(-p.config.IngestOverlap), to)
	if unread != nil {
		to = readTo // the cursor stays
	}
	_, err = p.pool.Exec(ctx, `
		UPDATE provider_transactions_cursor SET read_to = $1, due_at = clock_timestamp() WHERE read_to = $2`, to, readTo)
	if err != nil {
		err = fmt.Errorf("move the cursor of transactions: %w", err)
	}
	return true, errors.Join(unread, err)
}

// ReadMissing asks for the transaction of a charge that should have one and has none here, and tells whether there was such a
// charge. It may come later than its charge, and may be missing from a window that was read.
func (p *Payments) ReadMissing(ctx context.Context) (bool, error) {
	var intentID string
	err := p.pool.QueryRow(ctx, `
		UPDATE payments SET transaction_asked_at = clock_timestamp()
		 WHERE id = (SELECT id FROM payments
		              WHERE status = 'succeeded' AND transaction_stored_at IS NULL AND provider_intent_id IS NOT NULL
		                AND updated_at <= clock_timestamp() - $1::interval
		                AND (transaction_asked_at IS NULL OR transaction_asked_at <= clock_timestamp() - $2::interval)
		              ORDER BY transaction_asked_at NULLS FIRST LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
		RETURNING provider_intent_id`, p.config.IngestLag, p.config.IngestInterval,
	).Scan(&intentID)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claim a missing transaction: %w", err)
	}
	listed, err := p.gateway.ChargeTransactions(ctx, intentID)
	if err != nil {
		return true, fmt.Errorf("read a missing transaction: %w: %w", ErrUnread, err)
	}
	return true, StoreTransactions(ctx, p.pool, listed)
}
