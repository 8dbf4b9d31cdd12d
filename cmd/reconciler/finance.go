package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/finance"
	"holdfast/internal/postgres"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
	"holdfast/payments/stripe"
)

// books is what a finance command needs that compares or imports.
type books struct {
	Database cli.Database  `kong:"-"`
	Account  cli.Account   `kong:"-"`
	Broker   domain.Secret `kong:"-"` // NATS_URL; may hold credentials. Empty: the stream is not compared with what was published
	Timeout  time.Duration `default:"30s" help:"How long one exchange with the payment provider may take." name:"stripe-timeout" setting:"STRIPE_TIMEOUT"`
	Wait     time.Duration `default:"30s" help:"How long to wait for another run that is matching." setting:"FINANCE_WAIT"`
	Reading  cli.Books     `embed:""`
}

// Configure reads the environment. Without STRIPE_API_KEY nothing is read from the provider.
func (c *books) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.Account.Configure(getenv, p)
	c.Reading.Configure(getenv, p)
	c.Broker = domain.Secret(getenv("NATS_URL"))
	if c.Timeout <= 0 || c.Wait <= 0 {
		p.Add("STRIPE_TIMEOUT and FINANCE_WAIT must be more than 0, not %s and %s", c.Timeout, c.Wait)
	}
}

// stored is what a command needs that compares nothing: nothing of the provider's, and no bounds.
type stored struct {
	Database cli.Database `kong:"-"`
}

// Configure reads the environment.
func (c *stored) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
}

func (c *stored) with(ctx context.Context, io cli.IO, work func(ctx context.Context, d *finance.Desk) error) error {
	return (&books{Database: c.Database}).with(ctx, io, work)
}

// with runs a command's work at the desk. Refusals are exit 1, what could not be told is exit 3.
func (c *books) with(ctx context.Context, io cli.IO, work func(ctx context.Context, d *finance.Desk) error) error {
	logger := telemetry.NewLogger(io.Err, slog.LevelInfo, "reconciler")
	pool, err := postgres.Open(ctx, postgres.PoolConfig{
		URL: c.Database.URL.Reveal(), ApplicationName: "holdfast-finance-command", MaxConns: 4, LockTimeout: 5 * time.Second, StatementTimeout: 10 * time.Minute,
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	var stream *outbox.JetStream
	if c.Broker != "" {
		conn, err := outbox.Connect(c.Broker.Reveal(), "holdfast-finance-command", logger)
		if err != nil {
			return &cli.ExitError{Code: cli.ExitUsage, Err: err}
		}
		defer conn.Close()
		if stream, err = outbox.NewJetStream(conn, outbox.StreamConfig{}, logger); err != nil {
			return err
		}
	}
	d, err := c.desk(pool, stream, newProgress(io, logger).tell, logger)
	if err != nil {
		return err
	}
	err = work(ctx, d)
	var refused *outbox.RefusedError
	var file *finance.FileError
	switch {
	case err == nil, errors.As(err, &refused):
		return err
	case errors.Is(err, domain.ErrNotFound):
		return &cli.ExitError{Code: cli.ExitUsage, Err: errors.New("there is no such exception; see: reconciler exceptions list")}
	case errors.As(err, &file):
		return &cli.ExitError{Code: cli.ExitUsage, Err: err}
	case errors.Is(err, finance.ErrIncomplete):
		return &cli.ExitError{Code: cli.ExitUnknown, Err: err}
	}
	return c.Database.Explain(err)
}

func (c *books) desk(pool *pgxpool.Pool, stream *outbox.JetStream, tell func(finance.Progress), logger *slog.Logger) (*finance.Desk, error) {
	config := finance.Config{
		Lag: c.Reading.Lag, LateAfter: c.Reading.LateAfter, ReadsPerSecond: c.Reading.ReadsPerSecond, Wait: c.Wait, Progress: tell,
	}
	if stream != nil {
		config.Stream = stream
	}
	if c.Account.APIKey == "" {
		return finance.New(pool, nil, config, logger), nil
	}
	gateway, err := stripe.New(stripe.Config{APIKey: c.Account.APIKey, BaseURL: c.Account.APIBase, Timeout: c.Timeout})
	if err != nil {
		return nil, &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	return finance.New(pool, gateway, config, logger), nil
}

// person is who acts.
type person struct {
	Actor string `placeholder:"NAME" help:"Who, if not the user that runs this." setting:"HOLDFAST_ACTOR"`
}

func (p person) actor() outbox.Actor {
	who := cli.Operator{Actor: p.Actor}
	return outbox.Actor(who.Name())
}

// progress tells how far a long run is: in place on a terminal, as structured lines elsewhere.
type progress struct {
	io       cli.IO
	terminal bool
	every    time.Duration
	next     time.Time
	begun    time.Time
	logger   *slog.Logger
}

func newProgress(io cli.IO, logger *slog.Logger) *progress {
	p := &progress{io: io, terminal: cli.IsTerminal(io.Err), every: 5 * time.Second, begun: time.Now(), logger: logger}
	if p.terminal {
		p.every = 200 * time.Millisecond
	}
	p.next = p.begun.Add(p.every)
	return p
}

func (p *progress) tell(now finance.Progress) {
	if time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(p.every)
	if !p.terminal {
		p.logger.Info("progress", "stage", now.Stage, "rows", now.Rows, "pages", now.Pages, "rows_per_second", int64(now.Rate()), "done_percent", int64(100*now.Done),
			"left", now.Left().String())
		return
	}
	_, _ = fmt.Fprintf(p.io.Err, "\r\x1b[K%s: %d rows, %d pages, %.0f rows/s, %.0f %%, %s left", now.Stage, now.Rows, now.Pages, now.Rate(), 100*now.Done, now.Left())
	if now.Done >= 1 {
		_, _ = fmt.Fprint(p.io.Err, "\r\x1b[K")
	}
}
