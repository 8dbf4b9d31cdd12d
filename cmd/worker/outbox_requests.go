package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

type outboxRequestsCommand struct {
	desk

	All  bool `help:"Decided ones, too, the newest first."`
	JSON bool `name:"json" help:"Print JSON, for scripts."`
}

// Help says more than the summary.
func (*outboxRequestsCommand) Help() string {
	return "TWO_PERSON_ABOVE, such as eur=50000,usd=50000 in minor units, says above which amount an act needs a second person; " +
		"REQUEST_LIFE for how long it waits for one.\n\nExit codes: 0 none waits; 1 some do; 2 wrong use; 3 could not tell."
}

// Configure reads the environment.
func (c *outboxRequestsCommand) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
}

// Run lists them.
func (c *outboxRequestsCommand) Run(ctx context.Context, io cli.IO) error {
	var requests []operator.Request
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		requests, err = desk.Requests(ctx, c.All)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		err = cli.PrintJSON(io.Out, map[string]any{"requests": append([]operator.Request{}, requests...)})
	} else {
		err = printRequests(io, requests)
	}
	for _, r := range requests {
		if err == nil && r.Status == operator.RequestOpen {
			return &cli.ExitError{Code: cli.ExitProblem}
		}
	}
	return err
}

func printRequests(io cli.IO, requests []operator.Request) error {
	if len(requests) == 0 {
		_, err := fmt.Fprintln(io.Out, "nothing waits for a second person; decided ones: worker outbox requests --all")
		return err
	}
	rows := make([]cli.Row, 0, len(requests))
	for _, r := range requests {
		on := "booking " + r.BookingID.String()
		if r.EffectID != nil {
			on = "effect " + r.EffectID.String()
		}
		decided := ""
		if r.DecidedAt != nil {
			decided = fmt.Sprintf("; %s by %s at %s", r.Status, r.DecidedBy, cli.When(time.Time(*r.DecidedAt)))
		}
		rows = append(rows, cli.Row{
			Cells: []cli.Cell{
				{Text: r.ID.String()}, {Text: string(r.Act)}, {Text: payments.ForPeople(r.Money)}, {Text: string(r.Status)}, {Text: string(r.By)}, {Text: cli.When(time.Time(r.ExpiresAt))},
			},
			Below: []cli.Cell{{Text: on + ": " + r.Reason + decided}},
		})
	}
	if err := io.Table([]string{"REQUEST", "ACT", "MONEY", "STATUS", "BY", "UNTIL"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(io.Out, "\nsomebody else: worker outbox approve REQUEST --reason TEXT; either: worker outbox withdraw REQUEST --reason TEXT")
	return err
}

// decision is what approve and withdraw have in common.
type decision struct {
	actingDesk

	ID       string `arg:"" help:"The request's id; see: worker outbox requests."`
	Operator person `embed:""`
	Yes      bool   `help:"Do not ask."`
	JSON     bool   `name:"json" help:"Print JSON, for scripts."`

	id uuid.UUID
}

// Configure reads the environment and checks the arguments.
func (c *decision) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
	c.id = checkUUID(c.ID, "worker outbox requests", p)
	c.Operator.demand(p)
}

type outboxApproveCommand struct{ decision }

// Help says more than the summary.
func (*outboxApproveCommand) Help() string {
	return "Does the act, as it would be done now; the audit names both people. What the act itself needs (STRIPE_API_KEY, NATS_URL) is needed here.\n\n" + exitCodes
}

// Run approves.
func (c *outboxApproveCommand) Run(ctx context.Context, io cli.IO) error {
	var answer actAnswer
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) error {
		if err := c.confirm(ctx, io, desk); err != nil {
			return err
		}
		result, err := desk.Approve(ctx, c.id, c.Operator.actor(), c.Operator.Reason)
		if err != nil {
			return err
		}
		answer.Accepted, answer.Result = true, &result
		if result.EffectID != nil {
			answer.EffectID = *result.EffectID
		}
		return nil
	})
	var refused *outbox.RefusedError
	if errors.As(err, &refused) {
		answer.refuse(refused)
	} else if err != nil {
		return err
	}
	return answer.print(io, c.JSON)
}

// confirm shows the request and what it would do, and asks.
func (c *outboxApproveCommand) confirm(ctx context.Context, io cli.IO, desk *operator.Desk) error {
	if c.Yes {
		return nil
	}
	if !cli.IsTerminal(io.In) {
		return nobody()
	}
	r, err := desk.Request(ctx, c.id)
	if err != nil {
		return err
	}
	to := cli.IO{Out: io.Err, Colour: io.Colour}
	if err := printRequests(to, []operator.Request{r}); err != nil {
		return err
	}
	on := operator.Target{Booking: r.BookingID}
	if r.EffectID != nil {
		on = operator.Target{Effect: *r.EffectID}
	}
	amount := int64(0)
	if r.Act == operator.Refund {
		amount = r.Money.Amount
	}
	v, err := desk.Preview(ctx, r.Act, on, amount)
	if err != nil {
		return err
	}
	if err := printPreview(to, v); err != nil {
		return err
	}
	return ask(io, "Approve it?")
}

type outboxWithdrawCommand struct{ decision }

// Run withdraws.
func (c *outboxWithdrawCommand) Run(ctx context.Context, io cli.IO) error {
	var r operator.Request
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		r, err = desk.Withdraw(ctx, c.id, c.Operator.actor(), c.Operator.Reason)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, r)
	}
	_, err = fmt.Fprintf(io.Out, "request %s is %s; the act is not done\n", r.ID, r.Status)
	return err
}
