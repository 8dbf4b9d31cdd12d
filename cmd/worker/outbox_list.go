package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

type outboxListCommand struct {
	desk

	Stuck   bool   `help:"Only what needs attention: parked, in doubt, late, or carried by no live job."`
	Booking string `placeholder:"ID" help:"Only the effects of this booking, finished ones too, oldest first."`
	Kind    string `enum:",charge,cancel,refund,refresh,publish" default:"" placeholder:"KIND" help:"Only this kind: charge, cancel, refund, refresh or publish."`
	Status  string `enum:",pending,in_doubt,parked,done,not_needed,discarded" default:"" placeholder:"STATUS" help:"Only this status: pending, in_doubt, parked, done, not_needed or discarded."`
	Older   string `name:"older-than" placeholder:"AGE" help:"Only effects that are at least so old, such as 15m."`
	Limit   int    `default:"100" help:"Most rows of a page (default ${default}, at most 1000)."`
	After   string `placeholder:"CURSOR" help:"Go on after the page that ended with this."`
	JSON    bool   `name:"json" help:"Print JSON, for scripts."`

	booking domain.BookingID
	older   time.Duration
}

// Help says more than the summary.
func (*outboxListCommand) Help() string {
	return "Without --status, finished effects are left out, but for those of a --booking. What is paused is told first.\n\nExit codes: 0 nothing listed is stuck; 1 something is; 2 wrong use; 3 could not tell."
}

// Configure reads the environment and checks the page.
func (c *outboxListCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
	c.older = parseAge(c.Older, p)
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
	var page operator.Page
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		page, err = desk.List(ctx, outbox.Filter{
			Stuck: c.Stuck, Booking: c.booking, Kind: domain.EffectKind(c.Kind), Status: domain.EffectStatus(c.Status), OlderThan: c.older,
			Limit: c.Limit, After: c.After, DeadAfter: c.Liveness.WorkerDeadAfter,
		})
		if err == nil && len(page.Rows) == 0 && c.Booking != "" && !c.narrowed() {
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
	if slices.ContainsFunc(page.Rows, func(r operator.Row) bool { return r.Stuck }) {
		return &cli.ExitError{Code: cli.ExitProblem} // the rows say it all
	}
	return nil
}

func (c *outboxListCommand) print(io cli.IO, page operator.Page) error {
	if c.JSON {
		return cli.PrintJSON(io.Out, page)
	}
	for _, paused := range page.Pauses {
		if _, err := fmt.Fprintln(io.Out, cli.Printable(paused.String())); err != nil {
			return err
		}
	}
	if len(page.Rows) == 0 {
		_, err := fmt.Fprintln(io.Out, c.nothing())
		return err
	}
	if err := printEffects(io, page.Rows); err != nil {
		return err
	}
	hint := "\nlook: worker outbox show ID"
	if page.Next != "" {
		hint = "\nmore: --after " + page.Next + hint
	}
	_, err := fmt.Fprintln(io.Out, hint)
	return err
}

// narrowed tells whether more than the booking was asked for.
func (c *outboxListCommand) narrowed() bool {
	return c.Stuck || c.Kind != "" || c.Status != "" || c.After != "" || c.Older != ""
}

// nothing says what an empty list means, and where to look next.
func (c *outboxListCommand) nothing() string {
	switch {
	case c.After != "":
		return "nothing more"
	case c.Kind != "" || c.Status != "" || c.Older != "" || c.Booking != "":
		return "nothing like that; without the filters: worker outbox list"
	case c.Stuck:
		return "nothing is stuck; what is on its way: worker outbox list"
	default:
		return "nothing is under way: every effect is finished; those of a booking: worker outbox list --booking ID"
	}
}

// parseAge reads an age of effects; empty: any.
func parseAge(text string, p *cli.Problems) time.Duration {
	if text == "" {
		return 0
	}
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 {
		p.Add("--older-than: %q is not a duration of more than 0 such as 90s, 15m or 24h", text)
	}
	return age
}
