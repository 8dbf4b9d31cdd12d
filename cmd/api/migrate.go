package main

import (
	"context"
	"fmt"

	"holdfast/migrations"
)

type migrateCommand struct {
	database `kong:"-"`
}

// Help says more than the summary.
func (*migrateCommand) Help() string {
	return "Prints each migration that it applies, or that the schema is up to date. Two runs at once are safe: one waits for the other. " +
		"A migration that fails leaves the earlier ones applied; run it again once the cause is gone."
}

// Run applies what is missing.
func (c *migrateCommand) Run(ctx context.Context, io streams) error {
	applied, err := migrations.Up(ctx, c.url.Reveal())
	if err != nil {
		return err
	}
	for _, m := range applied {
		_, _ = fmt.Fprintf(io.out, "applied %04d %s\n", m.Version, m.Name)
	}
	if len(applied) == 0 {
		_, _ = fmt.Fprintln(io.out, "up to date")
	}
	return nil
}
