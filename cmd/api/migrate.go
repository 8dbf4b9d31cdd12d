package main

import (
	"context"
	"fmt"

	"holdfast/internal/cli"
	"holdfast/migrations"
)

type migrateCommand struct {
	cli.Database `kong:"-"`
}

// Help says more than the summary.
func (*migrateCommand) Help() string {
	return "Prints each migration that it applies, or that the schema is up to date. Two runs at once are safe: one waits for the other. " +
		"A migration that fails leaves the earlier ones applied; run it again once the cause is gone."
}

// Run applies what is missing.
func (c *migrateCommand) Run(ctx context.Context, io cli.IO) error {
	applied, err := migrations.Up(ctx, c.Database.URL.Reveal())
	if err != nil {
		return err
	}
	for _, m := range applied {
		name := m.Name
		if name == "" {
			name = "the job queue's tables" // River's, run by code instead of from a file
		}
		_, _ = fmt.Fprintf(io.Out, "applied %04d %s\n", m.Version, name)
	}
	if len(applied) == 0 {
		_, _ = fmt.Fprintln(io.Out, "up to date")
	}
	return nil
}
