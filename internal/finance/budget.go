package finance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Budget is how many pages of the provider's books all processes together may read.
type Budget struct {
	pool      *pgxpool.Pool
	perSecond float64
}

// NewBudget makes one of so many pages a second. A second's worth may be read at once.
func NewBudget(pool *pgxpool.Pool, perSecond float64) *Budget {
	return &Budget{pool: pool, perSecond: perSecond}
}

// Take waits until there is room for one page. It holds nothing while it waits.
func (b *Budget) Take(ctx context.Context) error {
	for {
		var left float64
		err := b.pool.QueryRow(ctx, `
			INSERT INTO provider_read_budget AS b (tokens) VALUES (greatest($1::float8, 1) - 1)
			    ON CONFLICT ON CONSTRAINT provider_read_budget_pkey DO UPDATE
			   SET tokens = least(b.tokens + $1 * extract(epoch FROM clock_timestamp() - b.refilled_at), greatest($1, 1)) - 1,
			       refilled_at = clock_timestamp()
			 WHERE b.tokens + $1 * extract(epoch FROM clock_timestamp() - b.refilled_at) >= 1
			RETURNING tokens`, b.perSecond).Scan(&left)
		if err == nil {
			return nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("take from the read budget: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(float64(time.Second) / b.perSecond)):
		}
	}
}
