package main

import (
	"context"
	"errors"

	"holdfast/internal/cli"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
)

type runCommand struct {
	Settings settings    `embed:""`
	Service  cli.Service `embed:""`
}

// Help says more than the summary.
func (*runCommand) Help() string {
	return "Any number of reconcilers may run at once: each doubt is one's at a time. SIGTERM begins nothing new, lets the steps that run finish within DRAIN_TIMEOUT, and exits 0."
}

// Configure reads the environment and checks all settings.
func (c *runCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Settings.Configure(getenv, p)
}

// Run reconciles until ctx ends.
func (c *runCommand) Run(ctx context.Context, io cli.IO) error {
	logger := telemetry.NewLogger(io.Err, c.Service.LogLevel, "reconciler")
	pool, err := c.Settings.Pool.Open(ctx, c.Settings.Database, "holdfast-reconciler")
	if err != nil {
		return err
	}
	defer pool.Close()
	waker := outbox.NewWaker(pool, logger)
	defer waker.Close()
	reconciler, err := c.Settings.reconciler(pool, waker, c.Service.DrainTimeout, logger)
	if err != nil {
		return err
	}
	stopMetrics, err := telemetry.Serve(ctx, c.Service.MetricsAddr, telemetry.Handler(telemetry.NewRegistry(), func(ctx context.Context) error {
		if pool.Ping(ctx) != nil {
			return errors.New("the database does not answer")
		}
		return nil
	}), logger)
	if err != nil {
		return err
	}
	defer stopMetrics()
	logger.InfoContext(ctx, "ready", "metrics_addr", c.Service.MetricsAddr)
	reconciler.Run(ctx)
	logger.InfoContext(ctx, "stopped")
	return nil
}
