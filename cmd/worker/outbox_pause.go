package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/outbox"
)

type outboxPauseCommand struct{ pauseSwitch }

// Run pauses the kind.
func (c *outboxPauseCommand) Run(ctx context.Context, io cli.IO) error {
	return c.set(ctx, io, outbox.Pause, true)
}

type outboxResumeCommand struct{ pauseSwitch }

// Run resumes the kind.
func (c *outboxResumeCommand) Run(ctx context.Context, io cli.IO) error {
	return c.set(ctx, io, outbox.Resume, false)
}

// pauseSwitch is what pause and resume have in common. A reason is not demanded: in an emergency the switch must work
// at once, and who threw it, and when, is kept in any case.
type pauseSwitch struct {
	Database cli.Database `kong:"-"`

	Kind     string   `arg:"" enum:"charge,publish" help:"charge or publish."`
	Operator operator `embed:""`
	JSON     bool     `name:"json" help:"Print JSON, for scripts."`
}

// Configure reads the environment.
func (c *pauseSwitch) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	if c.Operator.Reason == "" {
		c.Operator.Reason = outbox.NoReason
	}
}

type setPause func(
	ctx context.Context, pool *pgxpool.Pool, kind domain.EffectKind, actor outbox.Actor, reason string,
) (outbox.PauseChange, error)

func (c *pauseSwitch) set(ctx context.Context, io cli.IO, set setPause, paused bool) error {
	var change outbox.PauseChange
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		change, err = set(ctx, pool, domain.EffectKind(c.Kind), c.Operator.actor(), c.Operator.Reason)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{
			"kind": c.Kind, "paused": paused, "changed": change != outbox.Unchanged, "change": change,
		})
	}
	_, err = fmt.Fprintf(io.Out, "%s %s\n", c.Kind, said(change, paused))
	return err
}

func said(change outbox.PauseChange, paused bool) string {
	switch change {
	case outbox.PauseBegun:
		return "is paused"
	case outbox.PauseRestated:
		return "is paused, as before; the reason and who gave it are updated"
	case outbox.PauseEnded:
		return "is going on"
	case outbox.Unchanged:
		if paused {
			return "is paused, as before"
		}
		return "was not paused"
	default:
		return string(change)
	}
}

type outboxPausesCommand struct {
	Database cli.Database `kong:"-"`

	JSON bool `name:"json" help:"Print JSON, for scripts."`
}

// Configure reads the environment.
func (c *outboxPausesCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
}

// Run lists what is paused.
func (c *outboxPausesCommand) Run(ctx context.Context, io cli.IO) error {
	var pauses []outbox.Pausing
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		pauses, err = outbox.Pauses(ctx, pool)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{"pauses": pauses})
	}
	if len(pauses) == 0 {
		_, err := fmt.Fprintln(io.Out, "nothing is paused")
		return err
	}
	lines := make([][]string, 0, len(pauses))
	for _, p := range pauses {
		lines = append(lines, []string{string(p.Kind), domain.Instant(p.PausedAt).String(), string(p.Actor), p.Reason})
	}
	return cli.PrintTable(io.Out, []string{"KIND", "SINCE", "WHO", "WHY"}, lines)
}
