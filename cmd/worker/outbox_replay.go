package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/outbox"
)

type outboxReplayCommand struct {
	Database cli.Database `kong:"-"`

	ID       string   `arg:"" help:"The effect's id; see: worker outbox list."`
	Operator operator `embed:""`
	Yes      bool     `help:"Do not ask."`
	JSON     bool     `name:"json" help:"Print JSON, for scripts."`

	id domain.EffectID
}

// Help says more than the summary.
func (*outboxReplayCommand) Help() string {
	return `A pending or parked effect is tried again with a fresh count of attempts; one in doubt is the next that the reconciler looks at; a finished one is refused. The provider's keys stay the same, so money moves at most once.

Exit codes: 0 accepted; 1 refused; 2 wrong use; 3 could not tell: look with "worker outbox show" and replay again if need be.`
}

// Configure reads the environment and checks the arguments.
func (c *outboxReplayCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.id = checkID(c.ID, p)
	if strings.TrimSpace(c.Operator.Reason) == "" {
		p.Add("--reason is missing: it is kept with what was done")
	}
}

// replayAnswer is what --json prints, accepted or not.
type replayAnswer struct {
	Accepted bool                 `json:"accepted"`
	EffectID domain.EffectID      `json:"effect_id"`
	Refused  string               `json:"refused,omitempty"`
	Replay   *outbox.ReplayResult `json:"replay,omitempty"`
}

// Run replays the effect.
func (c *outboxReplayCommand) Run(ctx context.Context, io cli.IO) error {
	answer := replayAnswer{EffectID: c.id}
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) error {
		if err := c.confirm(ctx, io, pool); err != nil {
			return err
		}
		result, err := outbox.Replay(ctx, pool, c.id, c.Operator.actor(), c.Operator.Reason)
		if err == nil {
			answer.Accepted, answer.Replay = true, &result
		}
		return err
	})
	var refused *outbox.RefusedError
	if errors.As(err, &refused) {
		answer.Refused = refused.Reason
	} else if err != nil {
		return err
	}
	if c.JSON {
		if printErr := cli.PrintJSON(io.Out, answer); printErr != nil {
			return printErr
		}
		if refused != nil {
			return &cli.ExitError{Code: cli.ExitProblem}
		}
		return nil
	}
	if refused != nil {
		return refused
	}
	_, err = fmt.Fprintf(io.Out, "accepted%s\nbefore  %s, %d attempts\nafter   %s, %d attempts\naudit   %s\n",
		inWords(*answer.Replay), answer.Replay.Before.Status, answer.Replay.Before.Attempts,
		answer.Replay.After.Status, answer.Replay.After.Attempts, answer.Replay.ActionID)
	return err
}

func inWords(r outbox.ReplayResult) string {
	switch {
	case r.Action == outbox.ReconcileNow:
		return ": the reconciler asks the provider now"
	case r.Paused:
		return fmt.Sprintf("; %s is paused, carried out after resume", r.Kind)
	default:
		return ": a worker carries it out now"
	}
}

// confirm asks a person at a terminal. Nobody to ask is a refusal: a script must say --yes.
func (c *outboxReplayCommand) confirm(ctx context.Context, io cli.IO, pool *pgxpool.Pool) error {
	if c.Yes {
		return nil
	}
	if !isTerminal(io.In) {
		return &outbox.RefusedError{Reason: "nobody can be asked here; say --yes"}
	}
	shown, err := outbox.Show(ctx, pool, c.id, outbox.DeadAfter)
	if err != nil {
		return err
	}
	if shown.Effect.ID != c.id {
		return domain.ErrNotFound // a booking's id: which of its effects to replay is not for us to guess
	}
	_, err = fmt.Fprintf(io.Err, "%s of booking %s is %s (%s).\nReplay it? [y/N] ",
		shown.Effect.Kind, shown.Effect.BookingID, shown.Effect.Status, cli.Printable(shown.Effect.Reason))
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(io.In).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return &outbox.RefusedError{Reason: "not confirmed"}
	}
	return nil
}

// isTerminal tells whether a person may sit at the other end. (/dev/null is a character device, too.)
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
