package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
)

// DaySum is what moved the account's balance on one day, of one category and in one currency. Amounts are minor units.
type DaySum struct {
	Day      string `json:"day"` // such as 2027-03-28
	Category string `json:"category"`
	Currency string `json:"currency"`
	Count    int64  `json:"count"`
	Amount   int64  `json:"amount"`
	Fee      int64  `json:"fee"`
	Net      int64  `json:"net"`
}

// Days sums up the stored transactions of the days [from, to) of a time zone, by day, category and currency. A day is the half-open
// interval between two midnights of that zone, be it 23 hours long or 25, wherever this process and the database run. Only the
// calendar dates of from and to count.
func Days(ctx context.Context, pool *pgxpool.Pool, zone string, from, to time.Time) ([]DaySum, error) {
	if _, err := time.LoadLocation(zone); err != nil || zone == "" || zone == "Local" {
		return nil, &domain.ValidationError{Field: "time_zone", Reason: "must be a zone of the IANA database, such as Europe/Berlin"}
	}
	rows, err := pool.Query(ctx, `
		SELECT to_char(d.day, 'YYYY-MM-DD') AS day, t.category, t.currency, count(*) AS count,
		       sum(t.amount)::bigint AS amount, sum(t.fee)::bigint AS fee, sum(t.net)::bigint AS net
		  FROM (SELECT $2::date + n AS day FROM generate_series(0, $3::date - $2::date - 1) n) d
		  JOIN provider_transactions t
		    ON t.created_at >= d.day::timestamp AT TIME ZONE $1 AND t.created_at < (d.day + 1)::timestamp AT TIME ZONE $1
		 GROUP BY d.day, t.category, t.currency
		 ORDER BY d.day, t.category, t.currency`, zone, from.Format(time.DateOnly), to.Format(time.DateOnly))
	if err != nil {
		return nil, fmt.Errorf("sum up transactions by day: %w", err)
	}
	sums, err := pgx.CollectRows(rows, pgx.RowToStructByName[DaySum])
	if err != nil {
		return nil, fmt.Errorf("sum up transactions by day: %w", err)
	}
	return sums, nil
}

// The kinds of open items.
const (
	ItemMissing   = "missing"   // a payment that has succeeded, and no transaction of it is here
	ItemUnmatched = "unmatched" // a transaction about an intent of which no payment is here
)

// OpenItem is something that a person in finance cannot tick off yet.
type OpenItem struct {
	Kind          string    `json:"kind"`
	BookingID     string    `json:"booking_id"`     // of what is missing
	TransactionID string    `json:"transaction_id"` // of what is unmatched
	IntentID      string    `json:"payment_intent"`
	Amount        int64     `json:"amount"` // minor units: of the payment, or of the transaction
	Currency      string    `json:"currency"`
	Since         time.Time `json:"since"`
}

// OpenItems lists what is open, oldest first.
func OpenItems(ctx context.Context, pool *pgxpool.Pool) ([]OpenItem, error) {
	rows, err := pool.Query(ctx, `
		SELECT 'missing' AS kind, booking_id::text, '' AS transaction_id, coalesce(provider_intent_id, '') AS intent_id,
		       coalesce(nullif(amount_received, 0), amount) AS amount, currency, updated_at AS since
		  FROM payments WHERE status = 'succeeded' AND transaction_stored_at IS NULL
		 UNION ALL
		SELECT 'unmatched', '', t.id, t.intent_id, t.amount, t.currency, t.created_at
		  FROM provider_transactions t
		 WHERE t.intent_id <> '' AND NOT EXISTS (SELECT FROM payments p WHERE p.provider_intent_id = t.intent_id)
		 ORDER BY since, kind, booking_id, transaction_id`)
	if err != nil {
		return nil, fmt.Errorf("list open items: %w", err)
	}
	items, err := pgx.CollectRows(rows, pgx.RowToStructByName[OpenItem])
	if err != nil {
		return nil, fmt.Errorf("list open items: %w", err)
	}
	return items, nil
}
