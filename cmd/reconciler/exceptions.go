package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
)

// exceptionsCommands are about what does not match.
type exceptionsCommands struct {
	List    exceptionsListCommand    `cmd:"" help:"List what does not match."`
	Note    exceptionsNoteCommand    `cmd:"" help:"Write a note to one, or give it to another owner."`
	SignOff exceptionsSignOffCommand `cmd:"" help:"Take one off the list, with a reason."`
}

type exceptionsListCommand struct {
	Books stored `embed:""`

	Status string        `default:"open" enum:"open,closed,signed_off,all" help:"open, closed (explained by a later run), signed_off or all."`
	Kind   string        `placeholder:"KIND" help:"Only those of a kind, such as charged_without_booking."`
	Owner  string        `placeholder:"NAME" help:"Only those of an owner."`
	Older  time.Duration `placeholder:"TIME" help:"Only what happened longer ago, such as 72h."`
	After  int64         `placeholder:"NO" help:"Only those after this number: the next page."`
	Limit  int           `default:"100" help:"Most of them."`
	JSON   bool          `name:"json" help:"Print JSON, for scripts."`
}

// Help says more than the summary.
func (*exceptionsListCommand) Help() string {
	return "Below them stands what each kind means, and what to do about it.\n\nExit codes: 0 none that is open was listed; 1 some are open; 2 wrong use; 3 could not tell."
}

// Configure reads the environment.
func (c *exceptionsListCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Books.Configure(getenv, p)
	c.Kind = strings.ReplaceAll(c.Kind, " ", "_") // as the list shows it
	if c.Kind != "" && finance.KindOf(c.Kind).Means == "" {
		var known []string
		for _, k := range finance.Kinds() {
			known = append(known, k.Name)
		}
		p.Add("--kind: %s is none of %s", c.Kind, strings.Join(known, ", "))
	}
	if c.Older < 0 {
		p.Add("--older: %s is less than 0", c.Older)
	}
	if c.Limit < 1 || c.Limit > 10000 {
		p.Add("--limit: %d is not between 1 and 10000", c.Limit)
	}
}

// Run lists.
func (c *exceptionsListCommand) Run(ctx context.Context, io cli.IO) error {
	return c.Books.with(ctx, io, func(ctx context.Context, d *finance.Desk) error {
		status := c.Status
		if status == "all" {
			status = ""
		}
		items, err := d.Items(ctx, finance.Filter{Status: status, Kind: c.Kind, Owner: c.Owner, Older: c.Older, After: c.After, Limit: c.Limit})
		if err != nil {
			return err
		}
		if c.JSON {
			err = cli.PrintJSON(io.Out, items)
		} else {
			err = finance.WriteItems(io.Out, items)
		}
		if err != nil {
			return err
		}
		for _, i := range items {
			if i.Status == "open" {
				return &cli.ExitError{Code: cli.ExitProblem}
			}
		}
		return nil
	})
}

type exceptionsNoteCommand struct {
	Books  stored `embed:""`
	Person person `embed:""`

	No    int64  `arg:"" name:"no" help:"The exception's number."`
	Note  string `placeholder:"TEXT" help:"What is known of it."`
	Owner string `placeholder:"NAME" help:"Who sees to it."`
	JSON  bool   `name:"json" help:"Print JSON, for scripts."`
}

// Configure reads the environment and checks the arguments.
func (c *exceptionsNoteCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Books.Configure(getenv, p)
	if strings.TrimSpace(c.Note+c.Owner) == "" {
		p.Add("--note or --owner is missing: say what is known of it, or who sees to it")
	}
}

// Run writes the note.
func (c *exceptionsNoteCommand) Run(ctx context.Context, io cli.IO) error {
	return c.Books.with(ctx, io, func(ctx context.Context, d *finance.Desk) error {
		i, err := d.Note(ctx, c.No, c.Person.actor(), c.Note, c.Owner)
		return printItem(io, c.JSON, i, err, "noted")
	})
}

type exceptionsSignOffCommand struct {
	Books  stored `embed:""`
	Person person `embed:""`

	No     int64  `arg:"" name:"no" help:"The exception's number."`
	Reason string `placeholder:"TEXT" help:"Why it is right as it is; kept with who signed it off."`
	JSON   bool   `name:"json" help:"Print JSON, for scripts."`
}

// Configure reads the environment and checks the arguments.
func (c *exceptionsSignOffCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Books.Configure(getenv, p)
	if strings.TrimSpace(c.Reason) == "" {
		p.Add("--reason is missing: it is kept with who signed it off")
	}
}

// Run signs it off.
func (c *exceptionsSignOffCommand) Run(ctx context.Context, io cli.IO) error {
	return c.Books.with(ctx, io, func(ctx context.Context, d *finance.Desk) error {
		i, err := d.SignOff(ctx, c.No, c.Person.actor(), c.Reason)
		return printItem(io, c.JSON, i, err, "signed off")
	})
}

func printItem(io cli.IO, asJSON bool, i finance.Item, err error, done string) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return cli.PrintJSON(io.Out, i)
	}
	_, err = fmt.Fprintf(io.Out, "%s: %d %s %s\n", done, i.ID, i.Kind, cli.Printable(i.About))
	return err
}
