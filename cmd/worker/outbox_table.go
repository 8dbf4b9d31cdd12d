package main

import (
	"fmt"
	"strconv"
	"time"

	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/payments"
)

// printEffects lists effects for people: a line of facts, and under it why it is where it is and what comes next.
func printEffects(io cli.IO, rows []operator.Row) error {
	lines := make([]cli.Row, 0, len(rows))
	for _, r := range rows {
		stuck, look := "", cli.Plain
		if r.Stuck {
			stuck, look = "stuck", cli.Bad
		}
		lines = append(lines, cli.Row{
			Cells: []cli.Cell{
				{Text: r.ID.String()},
				{Text: kindOf(r)},
				{Text: string(r.Status), Look: look},
				{Text: stuck, Look: look},
				{Text: age(r)},
				{Text: strconv.Itoa(r.Attempts)},
				{Text: stake(r)},
			},
			Below: below(r),
		})
	}
	return io.Table([]string{"ID", "KIND", "STATUS", "", "AGE", "TRIES", "AT STAKE"}, lines)
}

// below is what stands under an effect's line. Of what is finished there is nothing to say.
func below(r operator.Row) []cli.Cell {
	if r.Status.Finished() {
		return nil
	}
	return []cli.Cell{{Text: r.Reason}, {Text: "next: " + next(r.Next), Look: cli.Dim}}
}

func kindOf(r operator.Row) string {
	if r.EventType == "" {
		return string(r.Kind)
	}
	return fmt.Sprintf("%s %d %s", r.Kind, r.EventSeq, r.EventType)
}

func age(r operator.Row) string {
	return cli.Age(time.Duration(r.AgeSeconds * float64(time.Second)))
}

func stake(r operator.Row) string {
	if r.AtStake == nil {
		return "–"
	}
	return payments.ForPeople(*r.AtStake)
}

func next(n operator.Next) string {
	if n.At == nil {
		return n.What
	}
	return n.What + ", at " + cli.When(time.Time(*n.At))
}

// fact is one line of a thing's description.
type fact struct {
	name, value string
	look        cli.Look
}

const nameWidth = 12 // characters, of a fact's name

// printFacts lists what is known of one thing, without what is empty.
func printFacts(io cli.IO, facts ...fact) error {
	for _, f := range facts {
		name := f.name
		for _, line := range cli.Wrap(cli.Printable(f.value), cli.LineWidth-nameWidth) {
			if _, err := fmt.Fprintf(io.Out, "%-*s%s\n", nameWidth, name, io.Paint(f.look, line)); err != nil {
				return err
			}
			name = ""
		}
	}
	return nil
}
