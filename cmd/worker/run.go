package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
)

type runCommand struct {
	Database cli.Database `kong:"-"`
	Broker   broker       `kong:"-"`
	Provider cli.Provider `embed:""`
	Pool     cli.Pool     `embed:""`
	Service  cli.Service  `embed:""`
	Liveness cli.Liveness `embed:""`
	Protocol protocol     `embed:""`
	Publish  publishing   `embed:""`
	Jobs     jobs         `embed:""`
}

// Help says more than the summary.
func (*runCommand) Help() string {
	return "Any number of workers may run at once, on any host. SIGTERM stops taking jobs, lets those that run finish, and exits 0; " +
		"whatever is cut short is carried on by another worker under the same provider keys."
}

// Configure reads the environment and checks all settings.
func (c *runCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.Broker.configure(getenv, p)
	c.Provider.Configure(getenv, p)
	c.Pool.Configure(getenv, p)
	c.Liveness.Configure(getenv, p)
	c.Protocol.configure(getenv, p)
	c.Publish.configure(p)
	c.Jobs.configure(c.Provider.StripeTimeout, p)
}

// Run works until ctx ends.
func (c *runCommand) Run(ctx context.Context, io cli.IO) error {
	logger := telemetry.NewLogger(io.Err, c.Service.LogLevel, "worker")
	pool, err := c.Pool.Open(ctx, c.Database, "holdfast-worker")
	if err != nil {
		return err
	}
	defer pool.Close()
	// River's rows, heartbeats and acknowledgements: the effect rows are the truth, and whatever of these a crash of the
	// server undoes is done again. The jobs' connections are not the money's, either.
	jobs, err := c.Pool.OpenAsync(ctx, c.Database, "holdfast-worker-jobs")
	if err != nil {
		return err
	}
	defer jobs.Close()
	gateway, err := stripe.New(stripe.Config{
		APIKey: c.Provider.Account.APIKey, BaseURL: c.Provider.Account.APIBase,
		Timeout: c.Provider.StripeTimeout, ReturnURL: c.Provider.ReturnURL,
	})
	if err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	conn, err := outbox.Connect(c.Broker.URL.Reveal(), "holdfast-worker", logger)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	defer conn.Close()
	stream, err := outbox.NewJetStream(conn, outbox.StreamConfig{}, logger)
	if err != nil {
		return err
	}
	checkStream(ctx, stream, logger)
	registry := telemetry.NewRegistry()
	sends, delivery := payments.NewSendCounter(), outbox.NewDeliveryHistogram()
	registry.MustRegister(sends, delivery, outbox.NewCollector(pool, logger),
		payments.NewOverdueCollector(pool, c.Protocol.Sending.ProviderKeyHorizon, logger))
	waker := outbox.NewWaker(jobs, logger)
	defer waker.Close()
	engine := payments.New(pool, gateway, waker, payments.Config{
		Horizon: c.Protocol.Sending.ProviderKeyHorizon, KeyRetention: c.Protocol.Sending.ProviderKeyRetention, MaxSends: c.Protocol.MaxSends, Backoff: c.Protocol.Sending.SendBackoff,
		Sends:       sends,
		LateRefunds: c.Protocol.LateRefunds,
	}, logger)
	drain := outbox.NewDrain(jobs, stream, outbox.DrainConfig{
		Timeout: c.Publish.PublishTimeout, FirstBackoff: c.Publish.PublishBackoff, MaxBackoff: c.Publish.PublishMaxBackoff,
		Delivery: delivery,
	}, logger)
	workers, err := outbox.NewWorkers(jobs, outbox.WorkersConfig{
		MaxWorkers: c.Jobs.MaxWorkers, FetchPollInterval: c.Jobs.PollEvery, JobTimeout: c.Jobs.JobTimeout, RescueAfter: c.Jobs.RescueAfter,
		DeadAfter: c.Liveness.WorkerDeadAfter,
	}, map[domain.EffectKind]outbox.Handler{
		domain.EffectCharge: engine.Charge, domain.EffectCancel: engine.Fence, domain.EffectRefund: engine.Refund, domain.EffectPublish: drain.Work,
	}, logger)
	if err != nil {
		return err
	}
	return c.work(ctx, workers, telemetry.Handler(registry, telemetry.DatabaseReady(pool)), logger)
}

// work starts the workers, then says that it is ready, and stops in order.
func (c *runCommand) work(ctx context.Context, workers *outbox.Workers, metrics http.Handler, logger *slog.Logger) error {
	if err := workers.Start(ctx); err != nil {
		return c.Database.Explain(fmt.Errorf("start the workers: %w", err))
	}
	stopMetrics, err := telemetry.Serve(ctx, c.Service.MetricsAddr, metrics, logger)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: errors.Join(err, workers.Stop(ctx))}
	}
	defer stopMetrics()
	logger.InfoContext(ctx, "ready", "worker_id", workers.ID(), "metrics_addr", c.Service.MetricsAddr)
	<-ctx.Done()
	logger.InfoContext(ctx, "stopping")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Service.DrainTimeout)
	defer cancel()
	return workers.Stop(drain)
}

// checkStream makes the stream or checks it. A broker that is away, or a stream with other settings, is no reason not to
// start: money does not wait for events, and the events wait in their rows.
func checkStream(ctx context.Context, stream *outbox.JetStream, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := stream.EnsureStream(ctx)
	var settings *outbox.StreamSettingsError
	switch {
	case errors.As(err, &settings):
		logger.ErrorContext(ctx, "no event is published until the stream's settings are mended", "error", err)
	case err != nil:
		logger.WarnContext(ctx, "the broker does not answer yet; events wait", "error", err)
	}
}
