package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
)

type outboxRepublishCommand struct {
	act

	From time.Time `format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"All events committed from this on (RFC 3339), in place of an id."`
	To   time.Time `format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"And before this."`
}

// Help says more than the summary.
func (*outboxRepublishCommand) Help() string {
	return "For a broker that has lost what it had acknowledged. Consumers may see repeats, and drop them by the event's id; no money is touched. " +
		"Needs NATS_URL and --reason. Says whether the stream kept the event or dropped the repeat. A span of time ends at the first trouble with the broker, exit code 3; it may be run again.\n\n" + exitCodes
}

// Configure reads the environment and checks the event or the span.
func (c *outboxRepublishCommand) Configure(getenv func(string) string, p *cli.Problems) {
	if c.From.IsZero() && c.To.IsZero() {
		c.act.Configure(getenv, p)
		if c.Broker.URL == "" && !c.DryRun {
			c.Broker.configure(getenv, p)
		}
		return
	}
	c.configure(getenv, p)
	c.Broker.configure(getenv, p)
	if c.ID != "" || c.Bulk.chosen() || c.DryRun {
		p.Add("--from and --to take neither an id, nor a choice of many, nor --dry-run")
	}
	if c.From.IsZero() || !c.From.Before(c.To) {
		p.Add("--from must be before --to")
	}
	c.Operator.demand(p)
}

const connectWithin = 5 * time.Second

// Run republishes.
func (c *outboxRepublishCommand) Run(ctx context.Context, io cli.IO) error {
	if c.From.IsZero() {
		return c.do(ctx, io, operator.Republish)
	}
	logger := telemetry.NewLogger(io.Err, slog.LevelWarn, "worker")
	conn, err := outbox.Connect(c.Broker.URL.Reveal(), "holdfast-worker-command", logger)
	if err != nil {
		return &cli.ExitError{Code: cli.ExitUsage, Err: err}
	}
	defer conn.Close()
	if err := conn.FlushTimeout(connectWithin); err != nil {
		return &cli.ExitError{Code: cli.ExitUnknown, Err: errors.New("the broker in NATS_URL does not answer; nothing was sent")}
	}
	stream, err := outbox.NewJetStream(conn, outbox.StreamConfig{}, logger)
	if err != nil {
		return err
	}
	var done outbox.Republished
	err = once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		done, err = outbox.Republish(ctx, pool, stream, outbox.Span{From: c.From.UTC(), To: c.To.UTC()}, c.Operator.actor(), c.Operator.Reason)
		return err
	})
	if c.JSON {
		return errors.Join(err, cli.PrintJSON(io.Out, done))
	}
	_, printErr := fmt.Fprintf(io.Out, "published again: %d; of them stored anew by the stream: %d\n", done.Published, done.Stored)
	return errors.Join(err, printErr)
}
