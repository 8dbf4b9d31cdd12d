package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/cli"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
)

// settings is what both commands need.
type settings struct {
	Database           cli.Database  `kong:"-"`
	Provider           cli.Provider  `embed:""`
	Pool               cli.Pool      `embed:""`
	ProviderKeyHorizon time.Duration `default:"20h" help:"How long after its first send a provider key may be sent again; less than the provider's memory of keys." setting:"PROVIDER_KEY_HORIZON"`
	SendBackoff        time.Duration `default:"1s" help:"Wait after the first send without an answer; doubles, up to a minute." setting:"SEND_BACKOFF"`
	Interval           time.Duration `default:"2s" help:"Pause between two rounds." setting:"RECONCILE_INTERVAL" name:"interval"`
	Poll               time.Duration `default:"15s" help:"How often what only waits is read again: processing, a customer who must authenticate." setting:"RECONCILE_POLL"`
	Watch              time.Duration `default:"48h" help:"How long after its end a booking's intent is still read now and then." setting:"RECONCILE_WATCH"`
	Ceiling            int           `default:"1000" help:"Most items of one kind in one round." setting:"RECONCILE_CEILING"`
}

// Configure reads the environment and checks all settings.
func (c *settings) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.Provider.Configure(getenv, p)
	c.Pool.Configure(getenv, p)
	if c.ProviderKeyHorizon <= 0 || c.ProviderKeyHorizon >= 24*time.Hour {
		p.Add("PROVIDER_KEY_HORIZON (--provider-key-horizon): %s is not between 0 and 24h, how long the provider remembers a key at least", c.ProviderKeyHorizon)
	}
	for name, d := range map[string]time.Duration{
		"SEND_BACKOFF": c.SendBackoff, "RECONCILE_INTERVAL": c.Interval, "RECONCILE_POLL": c.Poll, "RECONCILE_WATCH": c.Watch,
	} {
		if d <= 0 {
			p.Add("%s: %s is not more than 0", name, d)
		}
	}
	if c.Ceiling < 1 {
		p.Add("RECONCILE_CEILING (--ceiling): %d is less than 1", c.Ceiling)
	}
}

// reconciler wires the rounds: what payments knows to do, then the jobs that were lost.
func (c *settings) reconciler(pool *pgxpool.Pool, waker *outbox.Waker, drain time.Duration, logger *slog.Logger) (*payments.Reconciler, error) {
	gateway, err := stripe.New(stripe.Config{APIKey: c.Provider.APIKey, BaseURL: c.Provider.APIBase, Timeout: c.Provider.StripeTimeout})
	if err != nil {
		return nil, &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	step := 4*c.Provider.StripeTimeout + 10*time.Second // a read with its retries, and a send
	engine := payments.New(pool, gateway, waker, payments.Config{
		Horizon: c.ProviderKeyHorizon, Backoff: c.SendBackoff, Poll: c.Poll, Watch: c.Watch,
		Lease: step + 10*time.Second,
	}, logger)
	works := append(engine.Works(), payments.Work{Name: "lost jobs", Step: func(ctx context.Context) (bool, error) {
		revived, err := outbox.Sweep(ctx, pool)
		return revived > 0, err
	}})
	return payments.NewReconciler(works, payments.Rhythm{
		Interval: c.Interval, Ceiling: c.Ceiling, Step: step, Drain: drain,
	}, logger), nil
}
