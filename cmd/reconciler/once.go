package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"holdfast/internal/cli"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
)

type onceCommand struct {
	Settings settings `embed:""`
	JSON     bool     `help:"Print one JSON object, for scripts." name:"json"`
}

// Help says more than the summary.
func (*onceCommand) Help() string {
	return "Exit codes: 0 done; 1 something is still stuck and needs time or a person; 3 something could not be reached, and the rest was done."
}

// Configure reads the environment and checks all settings.
func (c *onceCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Settings.Configure(getenv, p)
}

// Run does one round.
func (c *onceCommand) Run(ctx context.Context, io cli.IO) error {
	logger := telemetry.NewLogger(io.Err, slog.LevelWarn, "reconciler")
	pool, err := c.Settings.Pool.Open(ctx, c.Settings.Database, "holdfast-reconciler-once")
	if err != nil {
		return err
	}
	defer pool.Close()
	waker := outbox.NewWaker(pool, logger)
	defer waker.Close()
	reconciler, err := c.Settings.reconciler(pool, waker, 0, logger)
	if err != nil {
		return err
	}
	done, err := reconciler.Once(ctx)
	stuck, listErr := outbox.List(ctx, pool, outbox.Filter{Stuck: true, Limit: listed})
	if err = errors.Join(err, listErr); err != nil {
		return &cli.ExitError{Code: cli.ExitUnknown, Err: errors.Join(err, c.print(io, done, nil))}
	}
	if err := c.print(io, done, stuck.Rows); err != nil {
		return err
	}
	if len(stuck.Rows) > 0 {
		return &cli.ExitError{Code: cli.ExitProblem}
	}
	return nil
}

// listed is how many stuck effects a round tells of; worker outbox list has them all.
const listed = 20

func (c *onceCommand) print(io cli.IO, done map[string]int, stuck []outbox.Row) error {
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{"done": done, "stuck": stuck})
	}
	if len(done) == 0 {
		if _, err := fmt.Fprintln(io.Out, "nothing to do"); err != nil {
			return err
		}
	}
	for _, row := range stuck {
		if _, err := fmt.Fprintf(io.Out, "stuck: %s %s of booking %s: %s\n", row.Kind, row.ID, row.BookingID, row.Reason); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(done)) {
		if _, err := fmt.Fprintf(io.Out, "%s: %d\n", name, done[name]); err != nil {
			return err
		}
	}
	return nil
}
