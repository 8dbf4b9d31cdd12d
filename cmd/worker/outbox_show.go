package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/outbox"
)

type outboxShowCommand struct {
	Database cli.Database `kong:"-"`

	ID   string `arg:"" help:"The effect's id; an event's id is the same."`
	JSON bool   `name:"json" help:"Print JSON, for scripts."`

	id domain.EffectID
}

// Configure reads the environment and checks the argument.
func (c *outboxShowCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.id = checkID(c.ID, p)
}

// Run shows the effect.
func (c *outboxShowCommand) Run(ctx context.Context, io cli.IO) error {
	var shown outbox.Shown
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		shown, err = outbox.Show(ctx, pool, c.id)
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
	if err == nil && shown.Effect.Stuck {
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
