package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"holdfast/internal/cli"
	"holdfast/internal/operator"
)

type outboxRunsCommands struct {
	List   outboxRunsListCommand   `cmd:"" default:"withargs" help:"List acts on many effects, the newest first."`
	Show   outboxRunsShowCommand   `cmd:"" help:"Show one, and what became of each effect."`
	Resume outboxRunsResumeCommand `cmd:"" help:"Go on with one that was interrupted."`
	End    outboxRunsEndCommand    `cmd:"" help:"End one: nothing is done to the effects that are left."`
}

type outboxRunsListCommand struct {
	desk

	Unfinished bool `help:"Only those that have effects left."`
	JSON       bool `name:"json" help:"Print JSON, for scripts."`
}

// Configure reads the environment.
func (c *outboxRunsListCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
}

// Run lists them.
func (c *outboxRunsListCommand) Run(ctx context.Context, io cli.IO) error {
	var runs []operator.Run
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		runs, err = desk.Runs(ctx, c.Unfinished)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{"runs": append([]operator.Run{}, runs...)})
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintln(io.Out, "there are none; begin one, and see first what it would do: worker outbox replay --stuck --cap 100 --dry-run")
		return err
	}
	rows := make([]cli.Row, 0, len(runs))
	for _, r := range runs {
		left, look := strconv.Itoa(r.Left), cli.Plain
		if r.Left > 0 {
			look = cli.Warn
		}
		rows = append(rows, cli.Row{
			Cells: []cli.Cell{
				{Text: r.ID.String()},
				{Text: string(r.Act)},
				{Text: cli.When(time.Time(r.StartedAt))},
				{Text: strconv.Itoa(r.Done)},
				{Text: strconv.Itoa(r.Refused)},
				{Text: strconv.Itoa(r.Failed)},
				{Text: left, Look: look},
				{Text: string(r.By)},
			},
			Below: []cli.Cell{{Text: chosenBy(r.Filter) + ": " + r.Reason + ended(r), Look: cli.Dim}},
		})
	}
	if err := io.Table([]string{"RUN", "ACT", "STARTED", "DONE", "REFUSED", "FAILED", "LEFT", "BY"}, rows); err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.Out, "\nlook: worker outbox runs show RUN; go on: worker outbox runs resume RUN\ngive up: worker outbox runs end RUN --reason TEXT")
	return err
}

// ended says that somebody has ended a run.
func ended(r operator.Run) string {
	if r.EndedBy == "" {
		return ""
	}
	return fmt.Sprintf("; ended by %s, with %d left out: %s", r.EndedBy, r.LeftOut, r.EndedReason)
}

// chosenBy says in flags how a run's effects were chosen.
func chosenBy(f operator.RunFilter) string {
	var flags []string
	if f.Stuck {
		flags = append(flags, "--stuck")
	}
	for _, flag := range []struct{ name, value string }{
		{"--kind", string(f.Kind)}, {"--status", string(f.Status)}, {"--older-than", f.OlderThan},
	} {
		if flag.value != "" {
			flags = append(flags, flag.name+" "+flag.value)
		}
	}
	return strings.Join(flags, " ")
}

// oneRun is what the commands on one run have in common.
type oneRun struct {
	actingDesk

	ID   string `arg:"" help:"The run's id; see: worker outbox runs."`
	JSON bool   `name:"json" help:"Print JSON, one line for each effect."`

	id uuid.UUID
}

// Configure reads the environment and checks the argument.
func (c *oneRun) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
	c.id = checkUUID(c.ID, "worker outbox runs", p)
}

func checkUUID(text, see string, p *cli.Problems) uuid.UUID {
	id, err := uuid.Parse(text)
	if err != nil {
		p.Add("the argument: %q is not an id; see: %s", text, see)
	}
	return id
}

type outboxRunsShowCommand struct{ oneRun }

// Run shows it.
func (c *outboxRunsShowCommand) Run(ctx context.Context, io cli.IO) error {
	return c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) error {
		run, err := desk.Run(ctx, c.id)
		if err != nil {
			return err
		}
		return printRun(ctx, io, desk, run, c.JSON)
	})
}

type outboxRunsResumeCommand struct{ oneRun }

// Help says more than the summary.
func (*outboxRunsResumeCommand) Help() string {
	return "Goes through the effects that are left. Several may go on with one run at once, and each effect is acted on once.\n\n" +
		"Exit codes: 0 every act was accepted; 1 some were refused; 2 wrong use; 3 interrupted, or could not tell."
}

// Run goes on with it.
func (c *outboxRunsResumeCommand) Run(ctx context.Context, io cli.IO) error {
	return c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) error {
		run, err := desk.Run(ctx, c.id)
		if err != nil {
			return err
		}
		return carryOn(ctx, io, desk, run, c.JSON)
	})
}

type outboxRunsEndCommand struct {
	oneRun

	Operator person `embed:""`
}

// Help says more than the summary.
func (*outboxRunsEndCommand) Help() string {
	return "What was done stays done, and nothing is done to the effects that are left. An effect that somebody is at now is finished by them.\n\n" +
		"Exit codes: 0 it is ended, or was finished; 2 wrong use; 3 could not tell."
}

// Configure reads the environment and checks the arguments.
func (c *outboxRunsEndCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.oneRun.Configure(getenv, p)
	c.Operator.demand(p)
}

// Run ends it.
func (c *outboxRunsEndCommand) Run(ctx context.Context, io cli.IO) error {
	return c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) error {
		run, err := desk.EndRun(ctx, c.id, c.Operator.actor(), c.Operator.Reason)
		if err != nil {
			return err
		}
		if c.JSON {
			return cli.PrintJSON(io.Out, run)
		}
		return summary(io, run, false)
	})
}
