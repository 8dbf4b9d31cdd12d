package main

import (
	"context"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
	"holdfast/payments"
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
	parts, err := c.Settings.open(ctx, "holdfast-reconciler", logger)
	if err != nil {
		return err
	}
	defer parts.close()
	reconciler := c.Settings.reconciler(parts, parts.gateway, outbox.SweepConfig{}, c.Service.DrainTimeout)
	registry := telemetry.NewRegistry()
	registry.MustRegister(parts.meter, parts.sends, parts.revived, outbox.NewCollector(parts.pool, logger), payments.NewCollector(parts.pool, logger),
		payments.NewOverdueCollector(parts.pool, c.Settings.Sending.ProviderKeyHorizon, logger), finance.NewCollector(parts.pool, logger))
	handler := telemetry.Handler(registry, telemetry.DatabaseReady(parts.pool))
	stopMetrics, err := telemetry.Serve(ctx, c.Service.MetricsAddr, handler, logger)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	defer stopMetrics()
	logger.InfoContext(ctx, "ready", "metrics_addr", c.Service.MetricsAddr)
	reconciler.Run(ctx)
	logger.InfoContext(ctx, "stopped")
	return nil
}
