package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/telemetry"
	"holdfast/outbox"
	"holdfast/payments"
)

type onceCommand struct {
	Settings settings `embed:""`
	JSON     bool     `help:"Print one JSON object, for scripts." name:"json"`
}

// Help says more than the summary.
func (*onceCommand) Help() string {
	return "Exit codes: 0 done; 1 something is still stuck and needs time or a person; 2 wrong use or configuration; 3 something " +
		"could not be reached, such as the provider for every read, and the rest was done."
}

// Configure reads the environment and checks all settings.
func (c *onceCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Settings.Configure(getenv, p)
}

// Run does one round.
func (c *onceCommand) Run(ctx context.Context, io cli.IO) error {
	logger := telemetry.NewLogger(io.Err, slog.LevelWarn, "reconciler")
	parts, err := c.Settings.open(ctx, "holdfast-reconciler-once", logger)
	if err != nil {
		return err
	}
	defer parts.close()
	provider := &readings{Gateway: parts.gateway}
	everything := outbox.SweepConfig{Budget: math.MaxInt} // there is no next call that goes on
	done, err := c.Settings.reconciler(parts, provider, everything, 0).Once(ctx)
	stuck, listErr := outbox.List(ctx, parts.pool, outbox.Filter{
		Stuck: true, Limit: listed, DeadAfter: c.Settings.Liveness.WorkerDeadAfter,
	})
	events, eventsErr := payments.StuckEvents(ctx, parts.pool, listed)
	err = errors.Join(err, listErr, eventsErr, c.print(io, done, stuck, events))
	switch {
	case err != nil:
		err = c.Settings.Database.Explain(err)
		var exit *cli.ExitError
		if errors.As(err, &exit) {
			return err
		}
		return &cli.ExitError{Code: cli.ExitUnknown, Err: err}
	case provider.none():
		return &cli.ExitError{Code: cli.ExitUnknown, Err: errors.New("the provider could not be read; every doubt stands as it was")}
	case len(stuck.Rows)+len(events) > 0:
		return &cli.ExitError{Code: cli.ExitProblem}
	}
	return nil
}

// listed is how many stuck effects a round tells of; worker outbox list has them all.
const listed = 20

func (c *onceCommand) print(io cli.IO, done payments.Done, stuck outbox.Page, events []payments.StuckEvent) error {
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{"done": done, "stuck": stuck.Rows, "stuck_events": events, "pauses": stuck.Pauses})
	}
	lines := make([]string, 0, len(done)+len(stuck.Rows)+1)
	if len(done) == 0 {
		lines = append(lines, "nothing was due")
	}
	for _, name := range slices.Sorted(maps.Keys(done)) {
		lines = append(lines, fmt.Sprintf("%s: %d", name, done[name]))
	}
	for _, paused := range stuck.Pauses {
		lines = append(lines, paused.String())
	}
	for _, row := range stuck.Rows {
		lines = append(lines, fmt.Sprintf("stuck: %s %s of booking %s: %s", row.Kind, row.ID, row.BookingID, row.Reason))
		if row.Status == domain.EffectInDoubt && row.DueAt.After(time.Now()) {
			lines = append(lines, fmt.Sprintf("  to have it looked at now: worker outbox replay %s --reason …", row.ID))
		}
	}
	if stuck.Next != "" {
		lines = append(lines, "and more; see: worker outbox list --stuck")
	}
	for _, e := range events {
		if e.Status != "parked" {
			lines = append(lines, "a webhook receipt has waited for long: "+e.String())
			continue
		}
		lines = append(lines, "a webhook receipt waits for a person: "+e.String(),
			fmt.Sprintf("  once looked at: reconciler events retry %s --reason …, or: reconciler events ignore %s --reason …", e.ID, e.ID))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(io.Out, cli.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
