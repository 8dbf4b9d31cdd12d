package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/postgres"
)

// Bring queues the entries that a payment's rows call for and the book lacks, if any: the book is brought to what the rows say,
// whatever they said before, so that doing it twice adds nothing. Whoever calls it holds the payment's lock, and has queued the
// change of the rows before.
func Bring(b *pgx.Batch, payment uuid.UUID) {
	postgres.Exec(b, "enter into the ledger", bring+`WHERE payment_id = $1`, payment)
}

const bring = `
	INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, payment_id, occurred_at)
	SELECT 'book', kind, debit, credit, amount, currency, about, payment_id, at FROM ledger_due `

// CatchUp enters what rows say of payments made since then that were settled without an entry, by a binary that did not know of the
// book, and tells how many entries that took. What lacks one is locked as a settlement would lock it, in small transactions.
func CatchUp(ctx context.Context, pool *pgxpool.Pool, since time.Time) (entries int64, err error) {
	for last := uuid.Nil; ; {
		var ids []uuid.UUID
		err := postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `
				SELECT id FROM payments WHERE id > $1 AND status = 'succeeded' AND created_at >= $3 ORDER BY id LIMIT $2`, last, mostAtOnce, since)
			if err != nil {
				return err
			}
			if ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil || len(ids) == 0 {
				return err
			}
			if rows, err = tx.Query(ctx, `SELECT DISTINCT payment_id FROM ledger_due WHERE payment_id = ANY ($1)`, ids); err != nil {
				return err
			}
			due, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil || len(due) == 0 {
				return err
			}
			if _, err := tx.Exec(ctx, `SELECT FROM payments WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE`, due); err != nil {
				return err
			}
			done, err := tx.Exec(ctx, bring+`WHERE payment_id = ANY ($1)`, due) // a new snapshot: as new as the locks
			entries += done.RowsAffected()
			return err
		})
		if err != nil {
			return entries, fmt.Errorf("catch up with the ledger: %w", err)
		}
		if len(ids) < mostAtOnce {
			return entries, nil
		}
		last = ids[len(ids)-1]
	}
}

// mostAtOnce is how many payments one transaction of CatchUp looks at.
const mostAtOnce = 1000
