package main

import (
	"context"
	"fmt"
	"slices"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

type outboxShowCommand struct {
	desk

	ID   string `arg:"" help:"An effect's id, or an event's, which is the same; or a booking's, to see its charge and all its other effects."`
	JSON bool   `name:"json" help:"Print JSON, for scripts."`

	id domain.EffectID
}

// Help says more than the summary.
func (*outboxShowCommand) Help() string {
	return "Exit codes: 0 it is not stuck; 1 it is, or, of a booking, any of its effects; 2 wrong use; 3 could not tell."
}

// Configure reads the environment and checks the argument.
func (c *outboxShowCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
	c.id = checkID(c.ID, p)
}

// Run shows the effect.
func (c *outboxShowCommand) Run(ctx context.Context, io cli.IO) error {
	var shown operator.Shown
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		shown, err = desk.Show(ctx, c.id)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		err = cli.PrintJSON(io.Out, shown)
	} else {
		err = printShown(io, shown)
	}
	stuck := shown.Effect.Stuck
	if shown.Effect.ID != c.id { // a booking was asked for
		stuck = stuck || slices.ContainsFunc(shown.Others, func(r operator.Row) bool { return r.Stuck })
	}
	if err == nil && stuck {
		return &cli.ExitError{Code: cli.ExitProblem}
	}
	return err
}

func printShown(io cli.IO, shown operator.Shown) error {
	e := shown.Effect
	status, look := string(e.Status), cli.Plain
	if e.Stuck {
		status, look = status+", stuck", cli.Bad
	}
	facts := []fact{
		{"effect", e.ID.String(), cli.Bold},
		{"booking", e.BookingID.String(), cli.Plain},
		{"kind", string(e.Kind), cli.Plain},
		{"status", status, look},
		{"why", e.Reason, cli.Plain},
		{"next", next(e.Next), cli.Plain},
		{"at stake", stake(e), cli.Plain},
		{"age", age(e), cli.Plain},
		{"tries", fmt.Sprint(e.Attempts), cli.Plain},
		{"last error", e.LastError, cli.Plain},
		{"made", cli.When(e.CreatedAt), cli.Plain},
		{"due", cli.When(e.DueAt), cli.Plain},
	}
	if e.FinishedAt != nil {
		facts = append(facts, fact{"finished", cli.When(*e.FinishedAt), cli.Plain})
	}
	if e.JobID != nil {
		facts = append(facts, fact{"job", fmt.Sprint(*e.JobID), cli.Plain})
	}
	if e.EventType != "" {
		facts = append(facts, fact{"event", fmt.Sprintf("%d %s", e.EventSeq, e.EventType), cli.Plain})
	}
	if e.Stream != "" {
		facts = append(facts, fact{"stream", fmt.Sprintf("%s %d", e.Stream, e.StreamSequence), cli.Plain})
	}
	if err := printFacts(io, facts...); err != nil {
		return err
	}
	if err := printChoices(io, shown.Acts); err != nil {
		return err
	}
	if len(shown.Others) > 0 {
		_, _ = fmt.Fprintln(io.Out, "\nOther effects of the booking")
		if err := printEffects(io, shown.Others); err != nil {
			return err
		}
	}
	if len(shown.Actions) > 0 {
		_, _ = fmt.Fprintln(io.Out, "\nDone by hand")
		if err := printActions(io, shown.Actions); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(io.Out, "\nall that has happened: worker outbox timeline %s\n", e.BookingID)
	return err
}

// printChoices lists the acts, and why each is not allowed.
func printChoices(io cli.IO, acts []operator.Choice) error {
	if _, err := fmt.Fprintln(io.Out, "\nActs (before you act: --dry-run)"); err != nil {
		return err
	}
	for _, a := range acts {
		f := fact{string(a.Act), "allowed", cli.Good}
		if !a.Allowed {
			f.value, f.look = "refused: "+a.Why, cli.Dim
		}
		if err := printFacts(io, f); err != nil {
			return err
		}
	}
	return nil
}

// printActions lists what was done by hand.
func printActions(io cli.IO, actions []outbox.Action) error {
	lines := make([]cli.Row, 0, len(actions))
	for _, a := range actions {
		effect := ""
		if a.EffectID != nil {
			effect = a.EffectID.String()
		}
		lines = append(lines, cli.Row{
			Cells: []cli.Cell{{Text: cli.When(a.At)}, {Text: string(a.Actor)}, {Text: a.Action}, {Text: effect}},
			Below: []cli.Cell{{Text: a.Reason}},
		})
	}
	return io.Table([]string{"WHEN", "WHO", "WHAT", "EFFECT"}, lines)
}
