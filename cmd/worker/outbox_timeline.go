package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/payments"
)

type outboxTimelineCommand struct {
	desk

	ID   string `arg:"" help:"A booking's id, or that of one of its effects."`
	JSON bool   `name:"json" help:"Print JSON, for scripts."`

	id domain.EffectID
}

// Help says more than the summary.
func (*outboxTimelineCommand) Help() string {
	return "The client's key, the booking, its effects, every request to the provider, what the provider told, the events, and what was done by hand, from our own tables."
}

// Configure reads the environment and checks the argument.
func (c *outboxTimelineCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
	c.id = checkID(c.ID, p)
}

// Run shows the timeline.
func (c *outboxTimelineCommand) Run(ctx context.Context, io cli.IO) error {
	var line operator.Timeline
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		line, err = desk.Timeline(ctx, domain.BookingID(c.id))
		if !errors.Is(err, domain.ErrNotFound) {
			return err
		}
		shown, err := desk.Show(ctx, c.id)
		if err != nil {
			return err
		}
		line, err = desk.Timeline(ctx, shown.Effect.BookingID)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, line)
	}
	return printTimeline(io, line)
}

func printTimeline(io cli.IO, line operator.Timeline) error {
	b := line.Booking
	ending := ""
	if b.EndingReason != "" {
		ending = ", " + string(b.EndingReason)
	}
	err := printFacts(io,
		fact{"booking", b.ID.String(), cli.Bold},
		fact{"client", b.Client, cli.Plain},
		fact{"resource", fmt.Sprintf("%s, %s to %s", b.Resource, cli.When(time.Time(b.Start)), cli.When(time.Time(b.End))), cli.Plain},
		fact{"status", string(b.Status) + ending, cli.Plain},
		fact{"payment", fmt.Sprintf("%s, %s", b.PaymentStatus, payments.ForPeople(b.Total)), cli.Plain},
		fact{"hold until", cli.When(time.Time(b.HoldExpiresAt)), cli.Plain},
	)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(io.Out); err != nil {
		return err
	}
	if line.More {
		if _, err := fmt.Fprintln(io.Out, "(older entries are left out)"); err != nil {
			return err
		}
	}
	rows := make([]cli.Row, 0, len(line.Entries))
	for _, e := range line.Entries {
		row := cli.Row{Cells: []cli.Cell{
			{Text: time.Time(e.At).UTC().Format("2006-01-02 15:04:05.000")}, {Text: e.What}, {Text: e.Title, Look: cli.Bold}, {Text: e.ID, Look: cli.Dim},
		}}
		if e.Detail != "" {
			row.Below = append(row.Below, cli.Cell{Text: e.Detail})
		}
		if facts := inline(e.Facts); facts != "" {
			row.Below = append(row.Below, cli.Cell{Text: facts, Look: cli.Dim})
		}
		rows = append(rows, row)
	}
	return io.Table([]string{"WHEN (UTC)", "WHAT", "", "ID"}, rows)
}

func inline(facts []operator.Fact) string {
	said := make([]string, 0, len(facts))
	for _, f := range facts {
		said = append(said, f.Name+": "+f.Value)
	}
	return strings.Join(said, "; ")
}
