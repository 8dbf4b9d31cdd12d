package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
)

// Listed is how much a listing of transactions has shown.
type Listed struct{ Rows, Pages int64 }

// witnesses is how many charges a listing is held against.
const witnesses = 3

// CheckListing doubts a listing of [from, to) that has ended without an error and is stored: an empty page with nothing to come looks like
// the end, and a row that is added while later pages are read comes where nobody looks again. It returns a wrapped ErrUnread unless the
// listing has all that is stored of that time, its first page (of several) is what it was, and some charges that our book has in that time,
// and that it has not shown, are no others to the provider: those are asked for by their intent. So a lie is told from a book that is wrong
// alone without believing, or waiting for, either; what nobody but the provider knows of, such as a refund made by hand, cannot testify.
// budget is asked before each read.
func CheckListing(
	ctx context.Context, db postgres.Querier, provider Accountant, from, to time.Time, listed Listed, budget func(context.Context) error,
) error {
	var stored int64
	err := db.QueryRow(ctx, `SELECT count(*) FROM provider_transactions WHERE created_at >= $1 AND created_at < $2`, from, to).Scan(&stored)
	if err != nil {
		return fmt.Errorf("compare a listing with what is stored: %w", err)
	}
	if stored > listed.Rows {
		return fmt.Errorf("%w: the listing lacks transactions that it had before", ErrUnread)
	}
	if listed.Pages > 1 {
		if err := checkHead(ctx, db, provider, from, to, budget); err != nil {
			return err
		}
	}
	rows, err := db.Query(ctx, `
		SELECT provider_intent_id FROM payments
		 WHERE status = 'succeeded' AND transaction_stored_at IS NULL AND provider_intent_id IS NOT NULL AND created_at >= $1 AND updated_at < $2
		 LIMIT $3`, from, to, witnesses)
	if err != nil {
		return fmt.Errorf("find charges that were not listed: %w", err)
	}
	intents, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find charges that were not listed: %w", err)
	}
	for _, intent := range intents {
		if err := budget(ctx); err != nil {
			return err
		}
		known, err := provider.ChargeTransactions(ctx, intent)
		if err != nil && !errors.Is(err, ErrNoIntent) { // of that one it knows nothing
			return fmt.Errorf("%w: a charge that was not listed: %w", ErrUnread, err)
		}
		for _, t := range known {
			if t.Created.Before(from) || !t.Created.Before(to) {
				continue
			}
			if unseen, err := unstored(ctx, db, []string{t.ID}); err != nil || unseen > 0 {
				return orElse(err, fmt.Errorf("%w: the listing lacks transaction %s, which the provider has", ErrUnread, t.ID))
			}
		}
	}
	return nil
}

// errSeen ends a listing of which enough was seen.
var errSeen = errors.New("enough was seen")

// checkHead looks at the first page again.
func checkHead(ctx context.Context, db postgres.Querier, provider Accountant, from, to time.Time, budget func(context.Context) error) error {
	if err := budget(ctx); err != nil {
		return err
	}
	var head []string
	err := provider.EachTransaction(ctx, from, to, func(page []Transaction) error {
		for _, t := range page {
			head = append(head, t.ID)
		}
		return errSeen
	})
	if err != nil && !errors.Is(err, errSeen) {
		return fmt.Errorf("%w: the first page again: %w", ErrUnread, err)
	}
	if unseen, err := unstored(ctx, db, head); err != nil || unseen > 0 {
		return orElse(err, fmt.Errorf("%w: %d transactions were added while the listing was read", ErrUnread, unseen))
	}
	return nil
}

// unstored counts those that are not stored.
func unstored(ctx context.Context, db postgres.Querier, ids []string) (n int, err error) {
	err = db.QueryRow(ctx, `
		SELECT count(*) FROM unnest($1::text[]) AS listed (id) WHERE NOT EXISTS (SELECT FROM provider_transactions t WHERE t.id = listed.id)`, ids).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("compare transactions with what is stored: %w", err)
	}
	return n, nil
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
