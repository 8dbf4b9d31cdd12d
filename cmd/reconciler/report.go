package main

import (
	"context"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
)

type reportCommand struct {
	Books books `embed:""`

	From   string `required:"" placeholder:"DAY" help:"The period's first day, such as 2027-03-01."`
	To     string `required:"" placeholder:"DAY" help:"The first day after the period, such as 2027-04-01."`
	Zone   string `required:"" placeholder:"ZONE" help:"Whose days: a zone of the IANA database, such as Europe/Berlin. The server's own zone decides nothing."`
	Signed bool   `help:"The report as it was when just these days were signed off, whatever has changed since; nothing is read or compared."`
	Format string `default:"table" enum:"table,csv,json" help:"table, csv or json."`
}

// Help says more than the summary.
func (*reportCommand) Help() string {
	return `Reads what is not yet known of the provider's books, compares the two sides transaction by transaction, brings the list of exceptions up to date, and prints the period: balances, totals, what is pending and why, and what does not match. Running it again changes nothing.

Exit codes: 0 every transaction is explained; 1 exceptions are open; 2 wrong use; 3 could not tell: the provider's books were not read whole, so that nothing was matched.`
}

// Configure reads the environment.
func (c *reportCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Books.Configure(getenv, p)
}

// Run prints the report.
func (c *reportCommand) Run(ctx context.Context, io cli.IO) error {
	return c.Books.with(ctx, io, func(ctx context.Context, d *finance.Desk) error {
		report := d.Report
		if c.Signed {
			report = d.AsSigned
		}
		r, err := report(ctx, finance.Period{From: c.From, To: c.To, Zone: c.Zone})
		if err != nil {
			return err
		}
		switch c.Format {
		case "json":
			err = cli.PrintJSON(io.Out, r.Shown())
		case "csv":
			err = r.WriteCSV(io.Out)
		default:
			err = r.WriteTable(io.Out)
		}
		switch {
		case err != nil:
			return err
		case !r.Complete:
			return &cli.ExitError{Code: cli.ExitUnknown}
		case r.Open()+r.Broken() > 0:
			return &cli.ExitError{Code: cli.ExitProblem}
		}
		return nil
	})
}
