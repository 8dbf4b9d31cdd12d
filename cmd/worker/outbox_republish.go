package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/cli"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
)

type outboxRepublishCommand struct {
	Database cli.Database `kong:"-"`
	Broker   broker       `kong:"-"`

	From     time.Time `required:"" format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"Events committed from this on (RFC 3339)."`
	To       time.Time `required:"" format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"Events committed before this (RFC 3339)."`
	Operator operator  `embed:""`
	JSON     bool      `name:"json" help:"Print one JSON object, for scripts."`
}

// Help says more than the summary.
func (*outboxRepublishCommand) Help() string {
	return "For a broker that has lost what it had acknowledged. Consumers may see repeats, and drop them by the event's id; no money is touched. " +
		"Needs --reason. Ends at the first trouble with the broker, exit code 3; it may be run again."
}

// Configure reads the environment and checks the span.
func (c *outboxRepublishCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.Broker.configure(getenv, p)
	if !c.From.Before(c.To) {
		p.Add("--from must be before --to")
	}
	if c.Operator.Reason == "" {
		p.Add("--reason is missing; it is kept with what was done")
	}
}

const connectWithin = 5 * time.Second

// Run republishes.
func (c *outboxRepublishCommand) Run(ctx context.Context, io cli.IO) error {
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
