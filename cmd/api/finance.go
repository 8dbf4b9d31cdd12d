package main

import (
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/finance"
	"holdfast/outbox"
	"holdfast/payments/stripe"
)

// finance opens the finance desk. Without a key it knows only what the reconciler has read, and what was imported. It waits for
// another run for less than a request may take.
func (c *serveCommand) finance(pool *pgxpool.Pool, gateway *stripe.Gateway, publisher outbox.Publisher, logger *slog.Logger) *finance.Desk {
	config := finance.Config{Wait: min(5*time.Second, c.Serving.RequestTimeout/2)}
	if stream, ok := publisher.(finance.Stream); ok {
		config.Stream = stream
	}
	if gateway == nil {
		return finance.New(pool, nil, config, logger)
	}
	return finance.New(pool, gateway, config, logger)
}
