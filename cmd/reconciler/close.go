package main

import (
	"context"
	"fmt"
	"strings"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
)

type signOffCommand struct {
	Books  books  `embed:""`
	Person person `embed:""`

	From   string `required:"" placeholder:"DAY" help:"The period's first day."`
	To     string `required:"" placeholder:"DAY" help:"The first day after the period."`
	Zone   string `required:"" placeholder:"ZONE" help:"Whose days, such as Europe/Berlin."`
	Reason string `placeholder:"TEXT" help:"What was checked; kept with who signed it off."`
	JSON   bool   `name:"json" help:"Print JSON, for scripts."`
}

// Help says more than the summary.
func (*signOffCommand) Help() string {
	return `Locks a period that is over, was read whole and has no open exceptions. What differs from it later opens a new exception against it.

Exit codes: 0 done; 1 refused; 2 wrong use; 3 could not tell.`
}

// Configure reads the environment and checks the arguments.
func (c *signOffCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Books.Configure(getenv, p)
	if strings.TrimSpace(c.Reason) == "" {
		p.Add("--reason is missing: it is kept with who signed it off")
	}
}

// Run signs the period off.
func (c *signOffCommand) Run(ctx context.Context, io cli.IO) error {
	return c.Books.with(ctx, io, func(ctx context.Context, d *finance.Desk) error {
		signed, err := d.SignOffPeriod(ctx, finance.Period{From: c.From, To: c.To, Zone: c.Zone}, c.Person.actor(), c.Reason)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return cli.PrintJSON(io.Out, signed)
		}
		_, err = fmt.Fprintf(io.Out, "signed off: %s\n", signed.Days())
		return err
	})
}

// feesCommand says what was agreed.
type feesCommand struct {
	Books stored `embed:""`

	Currency string `arg:"" help:"Of the settlement, such as EUR."`
	Category string `default:"charge" enum:"charge,dispute,refund" help:"charge, dispute or refund."`
	BPS      int64  `name:"bps" help:"Hundredths of a per cent of the amount."`
	Fixed    int64  `help:"And so many minor units."`
	Step     int64  `default:"1" help:"A fee is cut to a multiple of so many minor units."`
	Since    string `default:"2000-01-01" placeholder:"DAY" help:"From which day on (UTC)."`
}

// Configure reads the environment.
func (c *feesCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Books.Configure(getenv, p)
}

// Run stores the schedule.
func (c *feesCommand) Run(ctx context.Context, io cli.IO) error {
	return c.Books.with(ctx, io, func(ctx context.Context, d *finance.Desk) error {
		err := d.SetFees(ctx, finance.FeeSchedule{Currency: c.Currency, Category: c.Category, BasisPoints: c.BPS, Fixed: c.Fixed, Step: c.Step, Since: c.Since})
		if code := strings.ToUpper(c.Currency); err == nil {
			_, err = fmt.Fprintf(io.Out, "agreed for %s in %s from %s on: %g %% and %s %s\n", c.Category, code, c.Since, float64(c.BPS)/100,
				finance.Major(c.Fixed, code), code)
		}
		return err
	})
}
