package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/outbox"
)

type outboxShowCommand struct {
	Database cli.Database `kong:"-"`

	Liveness cli.Liveness `embed:""`

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
	c.Database.Configure(getenv, p)
	c.Liveness.Configure(getenv, p)
	c.id = checkID(c.ID, p)
}

// Run shows the effect.
func (c *outboxShowCommand) Run(ctx context.Context, io cli.IO) error {
	var shown outbox.Shown
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		shown, err = outbox.Show(ctx, pool, c.id, c.Liveness.WorkerDeadAfter)
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
		stuck = stuck || slices.ContainsFunc(shown.Others, func(r outbox.Row) bool { return r.Stuck })
	}
	if err == nil && stuck {
		return &cli.ExitError{Code: cli.ExitProblem}
	}
	return err
}

func printShown(io cli.IO, shown outbox.Shown) error {
	e := shown.Effect
	facts := [][]string{
		{"effect", e.ID.String()},
		{"booking", e.BookingID.String()},
		{"kind", string(e.Kind)},
		{"status", string(e.Status)},
		{"why", e.Reason},
		{"attempts", fmt.Sprint(e.Attempts)},
		{"last error", e.LastError},
		{"made", domain.Instant(e.CreatedAt).String()},
		{"due", domain.Instant(e.DueAt).String()},
	}
	if e.FinishedAt != nil {
		facts = append(facts, []string{"finished", domain.Instant(*e.FinishedAt).String()})
	}
	if e.JobID != nil {
		facts = append(facts, []string{"job", fmt.Sprint(*e.JobID)})
	}
	if e.Kind == domain.EffectPublish {
		facts = append(facts, []string{"event", fmt.Sprintf("%d %s", e.EventSeq, e.EventType)})
	}
	if e.Stream != "" {
		facts = append(facts, []string{"stream", fmt.Sprintf("%s %d", e.Stream, e.StreamSequence)})
	}
	if err := cli.PrintTable(io.Out, facts[0], facts[1:]); err != nil {
		return err
	}
	if len(shown.Others) > 0 {
		_, _ = fmt.Fprintln(io.Out, "\nOther effects of the booking")
		if err := printTable(io.Out, shown.Others); err != nil {
			return err
		}
	}
	if len(shown.Actions) == 0 {
		return nil
	}
	lines := make([][]string, 0, len(shown.Actions))
	for _, a := range shown.Actions {
		effect := ""
		if a.EffectID != nil {
			effect = a.EffectID.String()
		}
		lines = append(lines, []string{domain.Instant(a.At).String(), string(a.Actor), a.Action, effect, a.Reason})
	}
	_, _ = fmt.Fprintln(io.Out, "\nDone by hand")
	return cli.PrintTable(io.Out, []string{"WHEN", "WHO", "WHAT", "EFFECT", "WHY"}, lines)
}
