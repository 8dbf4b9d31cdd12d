package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/outbox"
	"holdfast/payments"
)

// receiptCommands are about the provider's events that nobody has understood.
type receiptCommands struct {
	List   receiptListCommand   `cmd:"" help:"List the provider's events that wait for a person, or have waited for long."`
	Retry  receiptRetryCommand  `cmd:"" help:"Act on a parked event once more: read the provider, and settle what it shows."`
	Ignore receiptIgnoreCommand `cmd:"" help:"Be done with a parked event that a person has looked at."`
}

type receiptListCommand struct {
	Database cli.Database `kong:"-"`

	Limit int  `default:"100" help:"Most rows (default ${default}, at most 1000)."`
	JSON  bool `name:"json" help:"Print JSON, for scripts."`
}

// Help says more than the summary.
func (*receiptListCommand) Help() string {
	return "Exit codes: 0 there are none; 1 there are; 2 wrong use; 3 could not tell."
}

// Configure reads the environment and checks the page.
func (c *receiptListCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	if c.Limit < 1 || c.Limit > 1000 {
		p.Add("--limit: %d is not between 1 and 1000", c.Limit)
	}
}

// Run lists them.
func (c *receiptListCommand) Run(ctx context.Context, io cli.IO) error {
	var stuck []payments.StuckEvent
	err := withPool(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		stuck, err = payments.StuckEvents(ctx, pool, c.Limit)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		err = cli.PrintJSON(io.Out, map[string]any{"events": stuck})
	} else if err = printLine(io, len(stuck) == 0, "nothing"); err == nil {
		for _, e := range stuck {
			err = errors.Join(err, printLine(io, true, e.String()))
		}
	}
	if err == nil && len(stuck) > 0 {
		return &cli.ExitError{Code: cli.ExitProblem} // the rows say it all
	}
	return err
}

type receiptRetryCommand struct {
	receiptDecision `embed:""`
}

// Run decides.
func (c *receiptRetryCommand) Run(ctx context.Context, io cli.IO) error {
	return c.decide(ctx, io, payments.RetryEvent, "it is acted on within seconds of a reconciler's running; see: reconciler events list")
}

type receiptIgnoreCommand struct {
	receiptDecision `embed:""`
}

// Run decides.
func (c *receiptIgnoreCommand) Run(ctx context.Context, io cli.IO) error {
	return c.decide(ctx, io, payments.IgnoreEvent, "nothing more comes of it")
}

// receiptDecision is what both decisions need.
type receiptDecision struct {
	Database cli.Database `kong:"-"`

	ID       string       `arg:"" help:"The event's id, evt_…; see: reconciler events list."`
	Operator cli.Operator `embed:""`
}

// Help says more than the summary.
func (*receiptDecision) Help() string {
	return "An event moves no money by itself, whatever it tells. The act is kept with who and why.\n\nExit codes: 0 done; 1 refused; 2 wrong use; 3 could not tell."
}

// Configure reads the environment and checks the arguments.
func (c *receiptDecision) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.Operator.Configure(p)
}

func (c *receiptDecision) decide(ctx context.Context, io cli.IO, act payments.EventAct, then string) error {
	err := withPool(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) error {
		return payments.DecideEvent(ctx, pool, c.ID, act, outbox.Actor(c.Operator.Name()), c.Operator.Reason)
	})
	if err != nil {
		return err
	}
	return printLine(io, true, fmt.Sprintf("event %s: %s", c.ID, then))
}

func printLine(io cli.IO, wanted bool, line string) error {
	if !wanted {
		return nil
	}
	_, err := fmt.Fprintln(io.Out, cli.Printable(line))
	return err
}

// withPool does a person's work on a small pool, and tells a refusal from not having been able to tell.
func withPool(ctx context.Context, d cli.Database, work func(ctx context.Context, pool *pgxpool.Pool) error) error {
	pool, err := d.Open(ctx, "holdfast-reconciler-command")
	if err != nil {
		return err
	}
	defer pool.Close()
	err = work(ctx, pool)
	var refused *outbox.RefusedError
	var exit *cli.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &cli.ExitError{Code: cli.ExitProblem, Err: err}
	case errors.Is(err, domain.ErrNotFound):
		return &cli.ExitError{Code: cli.ExitUsage, Err: errors.New("there is no such event; see: reconciler events list")}
	}
	if err = d.Explain(err); errors.As(err, &exit) {
		return err
	}
	return &cli.ExitError{Code: cli.ExitUnknown, Err: err}
}
