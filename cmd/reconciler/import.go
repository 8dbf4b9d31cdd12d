package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"holdfast/internal/cli"
	"holdfast/internal/finance"
)

type importCommand struct {
	Books books `embed:""`

	File   string `arg:"" type:"existingfile" help:"A report of the provider's, as CSV."`
	Report string `default:"" enum:",activity,payout-reconciliation,payouts" help:"Which one it is, if its header does not tell: activity (balance_change_from_activity.itemized), payout-reconciliation (payout_reconciliation.itemized), payouts (payouts.itemized)."`
	From   string `placeholder:"DAY" help:"The first day that an activity report was made for. Without it the file adds what it has, and proves nothing about what it lacks."`
	To     string `placeholder:"DAY" help:"The first day after what it was made for."`
	Zone   string `placeholder:"ZONE" help:"Whose days these are."`
	JSON   bool   `name:"json" help:"Print JSON, for scripts."`
}

// Help says more than the summary.
func (*importCommand) Help() string {
	return `Times must be in the columns that end in _utc; amounts are in major units. Ask for the metadata columns payment_metadata[payment_id], payment_metadata[booking_id] and refund_metadata[refund_id], too: they name our bookings. A file with anything wrong in it stores nothing, and the line is named. Importing it again changes nothing.

Exit codes: 0 done; 1 the file contradicts what is stored, or has what the provider has not listed; 2 wrong use, or a file that cannot be read; 3 could not tell.`
}

// Configure reads the environment and checks the arguments.
func (c *importCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Books.Configure(getenv, p)
	if (c.From == "") != (c.To == "") {
		p.Add("--from and --to go together")
	}
	if c.From+c.To != "" && c.Zone == "" {
		p.Add("--zone is missing: whose days --from and --to are, such as Europe/Berlin")
	}
}

// Run imports the file.
func (c *importCommand) Run(ctx context.Context, io cli.IO) error {
	return c.Books.with(ctx, io, func(ctx context.Context, d *finance.Desk) error {
		f, err := os.Open(c.File)
		if err != nil {
			return &cli.ExitError{Code: cli.ExitUsage, Err: err}
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			return &cli.ExitError{Code: cli.ExitUsage, Err: err}
		}
		file := finance.File{Name: c.File, ReadSeeker: f, Size: info.Size(), Kind: c.Report}
		if c.From != "" {
			w, err := d.Window(ctx, finance.Period{From: c.From, To: c.To, Zone: c.Zone})
			if err != nil {
				return err
			}
			file.Covers = &w
		}
		done, err := d.Import(ctx, file)
		var bad *finance.FileError
		if errors.As(err, &bad) {
			return fmt.Errorf("%s: %w; nothing was stored", cli.Printable(c.File), err)
		}
		if err != nil {
			return err
		}
		if c.JSON {
			err = cli.PrintJSON(io.Out, done)
		} else {
			_, err = fmt.Fprintf(io.Out, "%s: %d rows, %d of them new\n", done.Kind, done.Rows, done.NewRows)
		}
		if err == nil {
			err = doubts(done)
		}
		return err
	})
}

// doubts are what a person has to look at after an import.
func doubts(done finance.Imported) error {
	var all []error
	if done.Differs > 0 {
		all = append(all, fmt.Errorf("%d rows have other amounts than what is stored, such as %s: what is stored was kept", done.Differs, cli.Printable(done.FirstBad)))
	}
	if done.Unlisted > 0 {
		all = append(all, fmt.Errorf("%d rows are new, such as %s, although the provider's API had listed all of that time without them: is this the file of this account? "+
			"They were stored, and change balances", done.Unlisted, cli.Printable(done.FirstNew)))
	}
	if len(all) == 0 {
		return nil
	}
	return &cli.ExitError{Code: cli.ExitProblem, Err: errors.Join(all...)}
}
