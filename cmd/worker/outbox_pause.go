package main

import (
	"context"
	"fmt"
	"strings"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

type outboxPauseCommand struct{ pauseSwitch }

// Help says more than the summary.
func (*outboxPauseCommand) Help() string {
	return "While charge is paused no money is taken, and a booking whose hold ends meanwhile expires unpaid; while publish is paused no event is told. It holds in every process, from the next effect on, until: worker outbox resume."
}

// Run pauses the kind.
func (c *outboxPauseCommand) Run(ctx context.Context, io cli.IO) error { return c.set(ctx, io, true) }

type outboxResumeCommand struct{ pauseSwitch }

// Run resumes the kind.
func (c *outboxResumeCommand) Run(ctx context.Context, io cli.IO) error { return c.set(ctx, io, false) }

// pauseSwitch is what pause and resume have in common. A reason is not demanded: in an emergency the switch must work
// at once, and who threw it, and when, is kept in any case.
type pauseSwitch struct {
	desk

	Kind     string `arg:"" enum:"charge,publish" help:"charge or publish."`
	Operator person `embed:""`
	JSON     bool   `name:"json" help:"Print JSON, for scripts."`
}

// Configure reads the environment.
func (c *pauseSwitch) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
	if c.Operator.Reason == "" {
		c.Operator.Reason = outbox.NoReason
	}
}

func (c *pauseSwitch) set(ctx context.Context, io cli.IO, paused bool) error {
	var v operator.PauseResult
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		v, err = desk.SetPause(ctx, domain.EffectKind(c.Kind), paused, c.Operator.actor(), c.Operator.Reason)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, struct {
			operator.PauseResult

			Changed bool `json:"changed"`
		}{v, v.Change != outbox.Unchanged})
	}
	lines := append([]string{c.Kind + " " + said(v.Change, paused)}, cli.Wrap(cli.Printable(v.Said), cli.LineWidth)...)
	_, err = fmt.Fprintln(io.Out, strings.Join(lines, "\n"))
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
	desk

	JSON bool `name:"json" help:"Print JSON, for scripts."`
}

// Configure reads the environment.
func (c *outboxPausesCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
}

// Run lists what is paused.
func (c *outboxPausesCommand) Run(ctx context.Context, io cli.IO) error {
	var pauses []outbox.Pausing
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		pauses, err = desk.Pauses(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{"pauses": pauses})
	}
	if len(pauses) == 0 {
		_, err := fmt.Fprintln(io.Out, "nothing is paused; to stop taking money: worker outbox pause charge --reason TEXT")
		return err
	}
	lines := make([][]string, 0, len(pauses))
	for _, p := range pauses {
		lines = append(lines, []string{string(p.Kind), domain.Instant(p.PausedAt).String(), string(p.Actor), p.Reason})
	}
	return cli.PrintTable(io.Out, []string{"KIND", "SINCE", "WHO", "WHY"}, lines)
}
