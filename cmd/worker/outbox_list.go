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

type outboxListCommand struct {
	Database cli.Database `kong:"-"`

	Liveness cli.Liveness `embed:""`

	Stuck   bool   `help:"Only what needs attention: parked, in doubt, late, or carried by no live job."`
	Booking string `placeholder:"ID" help:"Only the effects of this booking, finished ones too, oldest first."`
	Kind    string `enum:",charge,cancel,refund,refresh,publish" default:"" placeholder:"KIND" help:"Only this kind: charge, cancel, refund, refresh or publish."`
	Status  string `enum:",pending,in_doubt,parked,done,not_needed,discarded" default:"" placeholder:"STATUS" help:"Only this status: pending, in_doubt, parked, done, not_needed or discarded."`
	Limit   int    `default:"100" help:"Most rows of a page (default ${default}, at most 1000)."`
	After   string `placeholder:"CURSOR" help:"Go on after the page that ended with this."`
	JSON    bool   `name:"json" help:"Print JSON, for scripts."`

	booking domain.BookingID
}

// Help says more than the summary.
func (*outboxListCommand) Help() string {
	return "Without --status, finished effects are left out, but for those of a --booking. What is paused is told first.\n\nExit codes: 0 nothing listed is stuck; 1 something is; 2 wrong use; 3 could not tell."
}

// Configure reads the environment and checks the page.
func (c *outboxListCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.Database.Configure(getenv, p)
	c.Liveness.Configure(getenv, p)
	if c.Booking != "" {
		id, err := domain.ParseID[domain.BookingID](c.Booking)
		if err != nil {
			p.Add("--booking: %s", err)
		}
		c.booking = id
	}
	if c.Limit < 1 || c.Limit > 1000 {
		p.Add("--limit: %d is not between 1 and 1000", c.Limit)
	}
	if c.Stuck && domain.EffectStatus(c.Status).Finished() {
		p.Add("--stuck: what is %s is not stuck", c.Status)
	}
}

// Run lists one page.
func (c *outboxListCommand) Run(ctx context.Context, io cli.IO) error {
	var page outbox.Page
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		page, err = outbox.List(ctx, pool, outbox.Filter{
			Stuck: c.Stuck, Booking: c.booking, Kind: domain.EffectKind(c.Kind), Status: domain.EffectStatus(c.Status),
			Limit: c.Limit, After: c.After, DeadAfter: c.Liveness.WorkerDeadAfter,
		})
		if err == nil && len(page.Rows) == 0 && c.Booking != "" && !c.Stuck && c.Kind == "" && c.Status == "" && c.After == "" {
			return &cli.ExitError{Code: cli.ExitUsage, Err: fmt.Errorf("there is no booking %s", c.Booking)} // each has effects
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.print(io, page); err != nil {
		return err
	}
	if slices.ContainsFunc(page.Rows, func(r outbox.Row) bool { return r.Stuck }) {
		return &cli.ExitError{Code: cli.ExitProblem} // the rows say it all
	}
	return nil
}

func (c *outboxListCommand) print(io cli.IO, page outbox.Page) error {
	if c.JSON {
		return cli.PrintJSON(io.Out, page)
	}
	for _, paused := range page.Pauses {
		if _, err := fmt.Fprintln(io.Out, cli.Printable(paused.String())); err != nil {
			return err
		}
	}
	if len(page.Rows) == 0 {
		_, err := fmt.Fprintln(io.Out, "nothing")
		return err
	}
	if err := printTable(io.Out, page.Rows); err != nil {
		return err
	}
	if page.Next == "" {
		return nil
	}
	_, err := fmt.Fprintf(io.Out, "\nmore: --after %s\n", page.Next)
	return err
}
