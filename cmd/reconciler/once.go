package main

import (
	"context"
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
	reconciler, err := c.Settings.reconciler(pool, waker, logger)
	if err != nil {
		return err
	}
	done, err := reconciler.Once(ctx)
	if printErr := c.print(io, done); printErr != nil {
		return printErr
	}
	if err != nil {
		return &cli.ExitError{Code: cli.ExitUnknown, Err: err}
	}
	return nil
}

func (c *onceCommand) print(io cli.IO, done map[string]int) error {
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{"done": done})
	}
	if len(done) == 0 {
		_, err := fmt.Fprintln(io.Out, "nothing to do")
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(done)) {
		if _, err := fmt.Fprintf(io.Out, "%s: %d\n", name, done[name]); err != nil {
			return err
		}
	}
	return nil
}
