package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
)

// settings is what both commands need.
type settings struct {
	Database cli.Database  `kong:"-"`
	Provider cli.Provider  `embed:""`
	Pool     cli.Pool      `embed:""`
	Sending  cli.Sending   `embed:""`
	Liveness cli.Liveness  `embed:""`
	Interval time.Duration `default:"2s" help:"Pause between two rounds." setting:"RECONCILE_INTERVAL" name:"interval"`
	Poll     time.Duration `default:"15s" help:"How often what only waits is read again: processing, a customer who must authenticate." setting:"RECONCILE_POLL"`
	Watch    time.Duration `default:"48h" help:"How long after its end a booking's intent is still read now and then." setting:"RECONCILE_WATCH"`
	Events   events        `embed:""`
	Ingest   ingest        `embed:""`
	Books    cli.Books     `embed:""`
	Ceiling  int           `default:"1000" help:"Most items of one kind in one round." setting:"RECONCILE_CEILING"`
}

// Configure reads the environment and checks all settings.
func (c *settings) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.Provider.Configure(getenv, p)
	c.Pool.Configure(getenv, p)
	c.Sending.Configure(getenv, p)
	c.Liveness.Configure(getenv, p)
	c.Events.configure(p)
	c.Ingest.configure(p)
	c.Books.Configure(getenv, p)
	for name, d := range map[string]time.Duration{
		"RECONCILE_INTERVAL": c.Interval, "RECONCILE_POLL": c.Poll, "RECONCILE_WATCH": c.Watch,
	} {
		if d <= 0 {
			p.Add("%s: %s is not more than 0", name, d)
		}
	}
	if c.Ceiling < 1 {
		p.Add("RECONCILE_CEILING (--ceiling): %d is less than 1", c.Ceiling)
	}
}

// parts are what a reconciler is made of.
type parts struct {
	pool    *pgxpool.Pool
	waker   *outbox.Waker
	gateway *stripe.Gateway
	meter   *payments.Meter
	sends   *prometheus.CounterVec
	revived prometheus.Counter
	logger  *slog.Logger
}

// open makes the parts and looks whether the schema is there. close ends them.
func (c *settings) open(ctx context.Context, application string, logger *slog.Logger) (p *parts, err error) {
	gateway, err := stripe.New(stripe.Config{
		APIKey: c.Provider.Account.APIKey, BaseURL: c.Provider.Account.APIBase,
		Timeout: c.Provider.StripeTimeout, ReturnURL: c.Provider.ReturnURL,
	})
	if err != nil {
		return nil, &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	pool, err := c.Pool.Open(ctx, c.Database, application)
	if err != nil {
		return nil, err
	}
	if _, err := outbox.Pauses(ctx, pool); err != nil {
		pool.Close()
		return nil, c.Database.Explain(err)
	}
	return &parts{pool: pool, waker: outbox.NewWaker(pool, logger), gateway: gateway, meter: payments.NewMeter(), sends: payments.NewSendCounter(), revived: outbox.NewRevivedCounter(), logger: logger}, nil
}

func (p *parts) close() {
	p.waker.Close()
	p.pool.Close()
}

// reconciler wires the rounds: what payments knows to do, then the jobs that were lost.
func (c *settings) reconciler(p *parts, gateway payments.Gateway, sweep outbox.SweepConfig, drain time.Duration) *payments.Reconciler {
	step := 4*c.Provider.StripeTimeout + 10*time.Second // a read with its retries, and a send
	engine := payments.New(p.pool, gateway, p.waker, payments.Config{
		Horizon: c.Sending.ProviderKeyHorizon, KeyRetention: c.Sending.ProviderKeyRetention, Backoff: c.Sending.SendBackoff, Poll: c.Poll, Watch: c.Watch,
		Lease:         step + 10*time.Second,
		EventInterval: c.Events.Interval, EventKeep: c.Events.Keep,
		SweepInterval: c.Events.SweepInterval, SweepLag: c.Events.SweepLag, SweepOverlap: c.Events.SweepOverlap,
		IngestInterval: c.Ingest.Interval, IngestLag: c.Books.Lag, IngestOverlap: c.Ingest.Overlap,
		Page:  finance.NewBudget(p.pool, c.Books.ReadsPerSecond).Take,
		Meter: p.meter, Sends: p.sends,
	}, p.logger)
	desk := finance.New(p.pool, p.gateway, finance.Config{
		Lag: c.Books.Lag, LateAfter: c.Books.LateAfter, ReadsPerSecond: c.Books.ReadsPerSecond, Every: c.Ingest.Matching,
	}, p.logger)
	sweep.DeadAfter, sweep.Revived = c.Liveness.WorkerDeadAfter, p.revived
	sweeper := outbox.NewSweeper(p.pool, sweep)
	works := append(engine.Works(),
		payments.Work{Name: "payouts", Step: desk.ReadPayout, Interval: c.Ingest.Interval},
		payments.Work{Name: "comparisons", Step: desk.Watch, Interval: c.Ingest.Matching},
		payments.Work{Name: "lost jobs", Step: func(ctx context.Context) (bool, error) {
			revived, err := sweeper.Sweep(ctx)
			return revived > 0, err
		}})
	return payments.NewReconciler(works, payments.Rhythm{
		Interval: c.Interval, Ceiling: c.Ceiling, Step: step, Drain: drain,
	}, p.logger)
}
