package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
)

// Account is what an account has been debited and credited with, in minor units.
type Account struct {
	Account  string `json:"account"`
	Currency string `json:"currency"`
	Debit    int64  `json:"debit"`
	Credit   int64  `json:"credit"`
}

// Trial is the trial balance: every account, in every currency that it has moved in.
func Trial(ctx context.Context, q postgres.Querier) ([]Account, error) {
	rows, err := q.Query(ctx, `
		SELECT side.account, e.currency, sum(side.debit)::bigint AS debit, sum(side.credit)::bigint AS credit
		  FROM ledger_entries e CROSS JOIN LATERAL (VALUES (e.debit, e.amount, 0), (e.credit, 0, e.amount)) AS side (account, debit, credit)
		 GROUP BY side.account, e.currency ORDER BY e.currency, side.account`)
	if err != nil {
		return nil, fmt.Errorf("read the trial balance: %w", err)
	}
	accounts, err := pgx.CollectRows(rows, pgx.RowToStructByName[Account])
	if err != nil {
		return nil, fmt.Errorf("read the trial balance: %w", err)
	}
	return accounts, nil
}
