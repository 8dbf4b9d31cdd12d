package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/finance"
	"holdfast/outbox"
	"holdfast/payments/stripe"
)

// fresh is how old a comparison of the books may be to be shown again.
const fresh = time.Minute

// finance opens the finance desk. Without a key it knows only what the reconciler has read, and what was imported. What takes longer
// than half of what a request may goes on until ctx ends, and whoever asks again finds it done.
func (c *serveCommand) finance(ctx context.Context, pool *pgxpool.Pool, gateway *stripe.Gateway, publisher outbox.Publisher, logger *slog.Logger) *finance.Comparing {
	wait := min(5*time.Second, c.Serving.RequestTimeout/2)
	config := finance.Config{
		Lag: c.Books.Lag, LateAfter: c.Books.LateAfter, ReadsPerSecond: c.Books.ReadsPerSecond, Fresh: fresh, Wait: wait,
	}
	if stream, ok := publisher.(finance.Stream); ok {
		config.Stream = stream
	}
	return finance.NewComparing(ctx, wait, func(tell func(finance.Progress)) *finance.Desk {
		config.Progress = tell
		if gateway == nil {
			return finance.New(pool, nil, config, logger)
		}
		return finance.New(pool, gateway, config, logger)
	})
}
