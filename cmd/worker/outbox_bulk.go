package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

// bulk chooses many effects.
type bulk struct {
	Stuck     bool   `help:"Every effect that needs attention."`
	Kind      string `enum:",charge,cancel,refund,refresh,publish" default:"" placeholder:"KIND" help:"Only this kind: charge, cancel, refund, refresh or publish."`
	Status    string `enum:",pending,in_doubt,parked,done,not_needed,discarded" default:"" placeholder:"STATUS" help:"Only this status: pending, in_doubt, parked, done, not_needed or discarded."`
	OlderThan string `placeholder:"AGE" help:"Only effects that are at least so old, such as 15m."`
	Cap       int    `placeholder:"N" help:"Most effects to act on, 1 to 10000; needed where many are chosen."`

	older time.Duration
}

const maxCap = 10_000

func (b *bulk) chosen() bool {
	return b.Stuck || b.Kind != "" || b.Status != "" || b.OlderThan != ""
}

func (b *bulk) configure(p *cli.Problems) {
	b.older = parseAge(b.OlderThan, p)
	switch {
	case b.Stuck && domain.EffectStatus(b.Status).Finished():
		p.Add("--stuck: what is %s is not stuck", b.Status)
	case b.chosen() && (b.Cap < 1 || b.Cap > maxCap):
		p.Add("--cap: want the most effects to act on, 1 to %d", maxCap)
	case !b.chosen() && b.Cap != 0:
		p.Add("--cap: nothing is chosen; want --stuck, --kind, --status or --older-than")
	}
}

func (b *bulk) filter(deadAfter time.Duration) outbox.Filter {
	return outbox.Filter{
		Stuck: b.Stuck, Kind: domain.EffectKind(b.Kind), Status: domain.EffectStatus(b.Status), OlderThan: b.older, DeadAfter: deadAfter,
	}
}

// many does an act to all that is chosen: it says what would happen, asks, writes down the choice, and goes through it.
func (c *act) many(ctx context.Context, io cli.IO, what operator.Act) error {
	order := operator.RunOrder{
		ID: uuid.Must(uuid.NewV7()), Act: what, Filter: c.Bulk.filter(c.Liveness.WorkerDeadAfter), Cap: c.Bulk.Cap,
		By: c.Operator.actor(), Reason: c.Operator.Reason,
	}
	return c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) error {
		if c.DryRun || !c.Yes {
			v, err := desk.DryRun(ctx, order)
			if err != nil {
				return err
			}
			if c.DryRun {
				return c.printDryRun(io, what, v)
			}
			if !cli.IsTerminal(io.In) {
				return nobody()
			}
			if err := printDryRun(cli.IO{Out: io.Err, Colour: io.Colour}, what, v); err != nil {
				return err
			}
			if v.Matched == 0 {
				return nil
			}
			if err := ask(io, fmt.Sprintf("%s %d effects?", what, v.Matched)); err != nil {
				return err
			}
		}
		run, err := desk.StartRun(ctx, order)
		if err != nil {
			return err
		}
		return carryOn(ctx, io, desk, run, c.JSON)
	})
}

func (c *act) printDryRun(io cli.IO, what operator.Act, v operator.DryRun) error {
	if c.JSON {
		return cli.PrintJSON(io.Out, v)
	}
	return printDryRun(io, what, v)
}

func printDryRun(io cli.IO, what operator.Act, v operator.DryRun) error {
	if v.Matched == 0 {
		_, err := fmt.Fprintln(io.Out, "nothing matches; see: worker outbox list")
		return err
	}
	if err := printItems(io, v.Items); err != nil {
		return err
	}
	more, money := "", ""
	if v.More {
		more = ", and more that the cap leaves out"
	}
	for _, m := range v.Money {
		money += ", " + payments.ForPeople(m)
	}
	if money == "" {
		money = ", none"
	}
	return printFacts(io,
		fact{"would", fmt.Sprintf("%s %d effects%s", what, v.Matched, more), cli.Bold},
		fact{"allowed", strconv.Itoa(v.Allowed), cli.Good},
		fact{"refused", strconv.Itoa(v.Refused), cli.Warn},
		fact{"at stake", money[2:], cli.Plain},
	)
}

func printItems(io cli.IO, items []operator.RunItem) error {
	if len(items) == 0 {
		return nil
	}
	rows := make([]cli.Row, 0, len(items))
	for _, i := range items {
		look := cli.Plain
		switch i.Status {
		case "done":
			look = cli.Good
		case "refused", "failed", "left_out":
			look = cli.Warn
		}
		rows = append(rows, cli.Row{
			Cells: []cli.Cell{{Text: strconv.Itoa(i.Position)}, {Text: i.EffectID.String()}, {Text: i.Status, Look: look}},
			Below: []cli.Cell{{Text: i.Said, Look: cli.Dim}},
		})
	}
	return io.Table([]string{"NO", "EFFECT", "RESULT"}, rows)
}

const batch = 25 // effects between two signs of progress

// carryOn goes through the rest of a run. Whatever interrupts it, each effect was acted on once or not at all.
func carryOn(ctx context.Context, io cli.IO, desk *operator.Desk, run operator.Run, asJSON bool) error {
	p := newProgress(io, run)
	for run.FinishedAt == nil {
		left := run.Left
		var err error
		if run, err = desk.ContinueRun(ctx, run.ID, batch); err == nil && run.Left == left && run.FinishedAt == nil {
			err = pause(ctx, time.Second) // what is left has failed and is tried again later, or somebody else is at it
		}
		if err != nil {
			p.end()
			return interrupted(ctx, run.ID, err)
		}
		p.show(run)
	}
	p.end()
	if err := printRun(ctx, io, desk, run, asJSON); err != nil {
		return err
	}
	if run.Refused+run.Failed+run.LeftOut > 0 {
		return &cli.ExitError{Code: cli.ExitProblem} // the rows say it all
	}
	return nil
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// interrupted says how to go on.
func interrupted(ctx context.Context, id uuid.UUID, err error) error {
	says := "stopped by an error"
	if ctx.Err() != nil {
		says, err = "interrupted", ctx.Err()
	}
	return &cli.ExitError{Code: cli.ExitUnknown, Err: fmt.Errorf(
		"%s (%w); nothing is lost, and what was done is done once; give up: worker outbox runs end %s --reason TEXT; go on: worker outbox runs resume %s", says, err, id, id)}
}

const pageOfItems = 500

// printRun says what became of each effect: for scripts one line for each, for people in a table.
func printRun(ctx context.Context, io cli.IO, desk *operator.Desk, run operator.Run, asJSON bool) error {
	for from := 0; ; {
		items, err := desk.RunItems(ctx, run.ID, from, pageOfItems)
		if err != nil || len(items) == 0 {
			return errors.Join(err, summary(io, run, asJSON))
		}
		from = items[len(items)-1].Position + 1
		if !asJSON {
			err = printItems(io, items)
		}
		for i := 0; asJSON && err == nil && i < len(items); i++ {
			err = cli.PrintJSON(io.Out, items[i])
		}
		if err != nil {
			return err
		}
	}
}

func summary(io cli.IO, run operator.Run, asJSON bool) error {
	if asJSON {
		return nil
	}
	more := ""
	if run.More {
		more = "; more matched than the cap let in"
	}
	facts := []fact{
		{"run", run.ID.String(), cli.Plain},
		{"total", strconv.Itoa(run.Total) + more, cli.Plain},
		{"done", strconv.Itoa(run.Done), cli.Good},
		{"refused", strconv.Itoa(run.Refused), cli.Warn},
	}
	if run.Failed > 0 {
		facts = append(facts, fact{"failed", strconv.Itoa(run.Failed) + ": each was tried five times", cli.Warn})
	}
	if run.EndedBy != "" {
		facts = append(facts, fact{"left out", fmt.Sprintf("%d: %s ended the run: %s", run.LeftOut, run.EndedBy, run.EndedReason), cli.Warn})
	}
	return printFacts(io, append(facts, fact{"left", strconv.Itoa(run.Left), cli.Plain})...)
}
