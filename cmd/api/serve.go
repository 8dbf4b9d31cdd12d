package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/internal/bookings"
	"holdfast/internal/cli"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/postgres"
	"holdfast/internal/telemetry"
	"holdfast/migrations"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
)

type serveCommand struct {
	Database cli.Database `kong:"-"`
	Account  cli.Account  `kong:"-"`
	Serving  serving      `embed:""`
	Pool     cli.Pool     `embed:""`
	Service  cli.Service  `embed:""`
	Console  consoling    `embed:""`
	Desk     desk         `embed:""`
	Books    cli.Books    `embed:""`
}

// Help says more than the summary.
func (*serveCommand) Help() string {
	return "Answers until SIGTERM or SIGINT, then drains: /readyz says no, no new connection is taken, requests in flight finish within the " +
		"drain time-out, and it exits 0. A request that is cut off can be sent again with its key. The customer's documentation is served at /docs, the operators' pages at /console. " +
		"STRIPE_API_KEY, in the environment only, is needed to show customers what their bank asks of them (next_action), and operators what the " +
		"provider shows before they act: a restricted key that may read PaymentIntents, Charges, Refunds and Disputes, and for finance the Balance and Payouts, will do, since nothing is sent from here. " +
		"STRIPE_API_BASE is as for the worker. NATS_URL, in the environment only, is needed to republish events; without it, or while the broker is away, that is refused. " +
		"TWO_PERSON_ABOVE, such as eur=50000,usd=50000 in minor units, makes operators' acts that let more money move wait for a second person, for REQUEST_LIFE (24h); set both for the worker's commands, too."
}

// Configure reads the environment and checks all settings.
func (c *serveCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.Account.Configure(getenv, p)
	c.Serving.configure(getenv, p)
	c.Pool.Configure(getenv, p)
	c.Console.configure(getenv, p)
	c.Desk.configure(getenv, p)
	c.Books.Configure(getenv, p)
}

// Run serves until ctx ends.
func (c *serveCommand) Run(ctx context.Context, io cli.IO) error {
	logger := telemetry.NewLogger(io.Err, c.Service.LogLevel, "api")
	pool, err := c.Pool.Open(ctx, c.Database, "holdfast-api")
	if err != nil {
		return err
	}
	defer pool.Close()
	waker := outbox.NewWaker(pool, logger)
	defer waker.Close()
	registry := telemetry.NewRegistry()
	inbox, err := c.inbox(ctx, pool, registry, logger)
	if err != nil {
		return err
	}
	publisher, disconnect, err := c.Desk.publisher(logger)
	if err != nil {
		return err
	}
	defer disconnect()
	api, err := c.build(ctx, pool, waker, inbox, publisher, newMetrics(registry, pool), logger)
	if err != nil {
		return err
	}
	stopMetrics, err := telemetry.Serve(ctx, c.Service.MetricsAddr, telemetry.Handler(registry, readiness(api)), logger)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	defer stopMetrics()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Serving.HTTPAddr)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: fmt.Errorf("listen on HTTP_ADDR: %w", err)}
	}
	if err := api.Ready(ctx); err != nil { // it may become ready yet: /readyz keeps traffic away until then
		logger.WarnContext(ctx, "not ready yet", "error", err.Error())
	}
	logger.InfoContext(ctx, "listening", "http_addr", listener.Addr().String(), "metrics_addr", c.Service.MetricsAddr)
	err = api.Serve(ctx, listener)
	logger.InfoContext(context.WithoutCancel(ctx), "stopped")
	return err
}

// inbox takes in the provider's webhooks, or is nil where no secret tells them from anybody else's.
func (c *serveCommand) inbox(ctx context.Context, pool *pgxpool.Pool, registry *prometheus.Registry, logger *slog.Logger) (httpapi.Inbox, error) {
	if len(c.Serving.WebhookSecrets) == 0 {
		logger.WarnContext(ctx, "STRIPE_WEBHOOK_SECRETS is not set: webhooks are answered 503, and what they would tell is found by polling")
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	verifier, err := stripe.NewVerifier(c.Serving.WebhookSecrets)
	if err != nil {
		return nil, &cli.ExitError{Code: cli.ExitUsage, Err: fmt.Errorf("STRIPE_WEBHOOK_SECRETS: %w", err)}
	}
	meter := payments.NewMeter()
	registry.MustRegister(meter)
	return payments.NewInbox(pool, verifier, meter), nil
}

func (c *serveCommand) build(
	ctx context.Context, pool *pgxpool.Pool, waker *outbox.Waker, inbox httpapi.Inbox, publisher outbox.Publisher, m *metrics, logger *slog.Logger,
) (*httpapi.Server, error) {
	service := bookings.New(pool, waker, c.Serving.bookings())
	version, err := migrations.Version()
	if err != nil {
		return nil, err
	}
	gateway, err := c.gateway(logger)
	if err != nil {
		return nil, err
	}
	var actions httpapi.Prompter
	if gateway != nil {
		actions = payments.NewActions(gateway)
	}
	desk := c.Desk.open(pool, service, waker, gateway, publisher, logger)
	books := c.finance(ctx, pool, gateway, publisher, logger)
	pages, err := c.Console.build(pool, desk, books, logger) //nolint:contextcheck // handlers take the request's context
	if err != nil {
		return nil, err
	}
	return httpapi.New(httpapi.Config{ //nolint:contextcheck // likewise
		Clients: clients.New(pool), Bookings: service, Catalogue: service,
		Inbox: inbox, Events: outbox.NewEvents(pool),
		Payments: payments.NewViewer(pool), Actions: actions, Desk: payments.NewDesk(service, waker, c.Serving.cards(m), logger),
		Console:        pages,
		Operators:      desk,
		Finance:        books,
		Ready:          func(ctx context.Context) error { return schemaReady(ctx, pool, version) },
		Transient:      func(err error) bool { return postgres.IsTransient(err) || postgres.IsUnavailable(err) },
		Observe:        m.observe,
		RequestTimeout: c.Serving.RequestTimeout, ReadHeaderTimeout: c.Serving.ReadHeaderTimeout, ReadTimeout: c.Serving.ReadTimeout,
		FollowInterval: c.Serving.FollowInterval, StreamLifetime: c.Serving.StreamLifetime, StreamHeartbeat: c.Serving.StreamHeartbeat,
		StreamsPerClient: c.Serving.StreamsPerClient,
		DrainDelay:       c.Serving.DrainDelay, DrainTimeout: c.Service.DrainTimeout,
	}, logger)
}

// gateway reads the provider: what customers have to do, and what operators want to see before they act. Nothing is sent from
// here. It is nil where there is no key.
func (c *serveCommand) gateway(logger *slog.Logger) (*stripe.Gateway, error) {
	if c.Account.APIKey == "" {
		logger.Info("STRIPE_API_KEY is not set: a booking whose customer has to authenticate is shown without next_action, and operators are not shown what the provider says")
		return nil, nil //nolint:nilnil // no key, nobody to ask
	}
	gateway, err := stripe.New(stripe.Config{APIKey: c.Account.APIKey, BaseURL: c.Account.APIBase})
	if err != nil {
		return nil, &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	return gateway, nil
}

// schemaReady asks for a schema that is at least as new as this build; a newer one is compatible with the build before it.
func schemaReady(ctx context.Context, pool *pgxpool.Pool, want int64) error {
	have, err := migrations.Current(ctx, pool)
	if postgres.IsUndefinedTable(err) {
		return errNoSchema
	}
	if err != nil {
		return err
	}
	if have < want {
		return fmt.Errorf("the schema has version %d, and this build needs %d; run: api migrate", have, want)
	}
	return nil
}

// readiness says what is missing, and nothing of why: anybody may read it.
func readiness(api *httpapi.Server) telemetry.Ready {
	return func(ctx context.Context) error {
		err := api.Ready(ctx)
		var p *httpapi.Problem
		if errors.As(err, &p) {
			return errors.New(p.Detail)
		}
		return err
	}
}
