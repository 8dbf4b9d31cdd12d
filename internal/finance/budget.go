package finance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// take waits until the budget that all processes share has room for one page. It holds nothing while it waits.
func (d *Desk) take(ctx context.Context) error {
	for {
		var left float64
		err := d.pool.QueryRow(ctx, `
			INSERT INTO provider_read_budget AS b (tokens) VALUES (greatest($1::float8, 1) - 1)
			    ON CONFLICT ON CONSTRAINT provider_read_budget_pkey DO UPDATE
			   SET tokens = least(b.tokens + $1 * extract(epoch FROM clock_timestamp() - b.refilled_at), greatest($1, 1)) - 1,
			       refilled_at = clock_timestamp()
			 WHERE b.tokens + $1 * extract(epoch FROM clock_timestamp() - b.refilled_at) >= 1
			RETURNING tokens`, d.config.ReadsPerSecond).Scan(&left)
		if err == nil {
			return nil
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("take from the read budget: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(float64(time.Second) / d.config.ReadsPerSecond)):
		}
	}
}
