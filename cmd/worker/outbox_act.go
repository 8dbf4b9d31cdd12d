package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

// act is what the acts on effects have in common: one effect by its id, or many by a filter.
type act struct {
	actingDesk

	ID       string `arg:"" optional:"" help:"The effect's id; see: worker outbox list."`
	Bulk     bulk   `embed:"" group:"many"`
	Operator person `embed:""`
	Yes      bool   `help:"Do not ask."`
	DryRun   bool   `help:"Say what would happen, with what the provider shows now, and do nothing."`
	JSON     bool   `name:"json" help:"Print JSON, for scripts; of many effects one line for each."`

	id domain.EffectID
}

const exitCodes = "Exit codes: 0 accepted; 1 refused, or it waits for a second person; 2 wrong use; 3 could not tell: look with \"worker outbox show\" and do it again if need be."

// Configure reads the environment and checks the arguments.
func (c *act) Configure(getenv func(string) string, p *cli.Problems) {
	c.configure(getenv, p)
	c.Bulk.configure(p)
	switch {
	case c.ID == "" && !c.Bulk.chosen():
		p.Add("want an effect's id, or --stuck, --kind, --status or --older-than to choose many; see: worker outbox list")
	case c.ID != "" && c.Bulk.chosen():
		p.Add("want either an effect's id or a choice of many, not both")
	case c.ID != "":
		c.id = checkID(c.ID, p)
	}
	if c.DryRun && c.Operator.Reason == "" {
		c.Operator.Reason = "only looked at" // it is kept nowhere
	}
	c.Operator.demand(p)
}

// do does an act, to one effect or many.
func (c *act) do(ctx context.Context, io cli.IO, what operator.Act) error {
	if c.ID == "" {
		return c.many(ctx, io, what)
	}
	if c.DryRun {
		return c.preview(ctx, io, what)
	}
	answer := actAnswer{EffectID: c.id}
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) error {
		seen, err := c.confirm(ctx, io, desk, what)
		if err != nil {
			return err
		}
		result, err := desk.Do(ctx, operator.Order{
			Act: what, On: operator.Target{Effect: c.id}, By: c.Operator.actor(), Reason: c.Operator.Reason, Seen: seen,
		})
		if err == nil {
			answer.Accepted, answer.Result = result.Request == nil, &result
		}
		return err
	})
	var refused *outbox.RefusedError
	if errors.As(err, &refused) {
		answer.refuse(refused)
	} else if err != nil {
		return err
	}
	return answer.print(io, c.JSON)
}

// actAnswer is what --json prints of an act on one effect, accepted or not.
type actAnswer struct {
	Accepted bool             `json:"accepted"`
	EffectID domain.EffectID  `json:"effect_id"`
	Refused  string           `json:"refused,omitempty"`
	Code     outbox.Refusal   `json:"code,omitempty"`
	By       outbox.Actor     `json:"by,omitempty"`
	At       *domain.Instant  `json:"at,omitempty"`
	Result   *operator.Result `json:"result,omitempty"`

	refusal *outbox.RefusedError
}

func (a *actAnswer) refuse(r *outbox.RefusedError) {
	a.Refused, a.Code, a.By, a.At, a.refusal = r.Reason, r.Code, r.By, r.At, r
}

// print says what has happened, and what that means for the exit code.
func (a *actAnswer) print(io cli.IO, asJSON bool) error {
	switch {
	case asJSON:
		if err := cli.PrintJSON(io.Out, a); err != nil || a.Accepted {
			return err
		}
		return &cli.ExitError{Code: cli.ExitProblem}
	case a.refusal != nil && a.By != "" && a.At != nil:
		return fmt.Errorf("%w (by %s at %s)", a.refusal, a.By, cli.When(time.Time(*a.At)))
	case a.refusal != nil:
		return a.refusal
	case !a.Accepted:
		return printRequested(io, a.Result.Request)
	default:
		return printResult(io, *a.Result)
	}
}

func printResult(io cli.IO, r operator.Result) error {
	facts := []fact{{"accepted", r.Said, cli.Good}}
	if r.Ack != nil {
		kept := "the stream had it, and dropped the repeat"
		if r.Ack.Kept {
			kept = "stored anew"
		}
		facts = append(facts, fact{"stream", fmt.Sprintf("%s %d, %s", r.Ack.Stream, r.Ack.Sequence, kept), cli.Plain})
	}
	return printFacts(io, append(facts,
		fact{"before", state(r.Before), cli.Plain},
		fact{"after", state(r.After), cli.Plain},
		fact{"audit", r.ActionID.String(), cli.Plain},
	)...)
}

func state(s outbox.Snapshot) string {
	if s.Status == "" {
		return ""
	}
	return fmt.Sprintf("%s (tries: %d)", s.Status, s.Attempts)
}

// printRequested says that nothing has happened yet, and what has to.
func printRequested(io cli.IO, r *operator.Request) error {
	err := printFacts(io,
		fact{"waiting", "nothing is done yet: " + payments.ForPeople(r.Money) + " needs a second person", cli.Warn},
		fact{"until", cli.When(time.Time(r.ExpiresAt)), cli.Plain},
		fact{"request", r.ID.String(), cli.Plain},
		fact{"then", "somebody else: worker outbox approve " + r.ID.String() + " --reason TEXT", cli.Plain},
	)
	if err != nil {
		return err
	}
	return &cli.ExitError{Code: cli.ExitProblem}
}

// preview says what the act would do.
func (c *act) preview(ctx context.Context, io cli.IO, what operator.Act) error {
	var v operator.Preview
	err := c.at(ctx, io, func(ctx context.Context, desk *operator.Desk) (err error) {
		v, err = desk.Preview(ctx, what, operator.Target{Effect: c.id}, 0)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		err = cli.PrintJSON(io.Out, v)
	} else {
		err = printPreview(io, v)
	}
	if err == nil && !v.Allowed {
		return &cli.ExitError{Code: cli.ExitProblem}
	}
	return err
}

func printPreview(io cli.IO, v operator.Preview) error {
	facts := []fact{{"act", string(v.Act), cli.Bold}}
	if e := v.Effect; e != nil {
		facts = append(facts,
			fact{"effect", fmt.Sprintf("%s %s of booking %s", kindOf(*e), e.ID, e.BookingID), cli.Plain},
			fact{"status", fmt.Sprintf("%s, %s old, tries: %d", e.Status, age(*e), e.Attempts), cli.Plain},
			fact{"why", e.Reason, cli.Plain},
			fact{"next", next(e.Next), cli.Plain})
	}
	if v.Money != nil {
		facts = append(facts, fact{"at stake", payments.ForPeople(*v.Money), cli.Plain})
	}
	facts = append(facts, fact{"not read", v.Unread, cli.Warn})
	if side := v.Provider; side != nil {
		facts = append(facts, providerFacts(*side)...)
	}
	if v.Allowed {
		facts = append(facts, fact{"would", v.Would, cli.Good})
	}
	facts = append(facts, fact{"refused", v.Refusal, cli.Bad})
	if v.SecondPerson {
		facts = append(facts, fact{"second", "somebody else has to approve it", cli.Warn})
	}
	return printFacts(io, facts...)
}

func providerFacts(s payments.ProviderSide) []fact {
	facts := []fact{{"provider", s.Says + " (read at " + cli.When(time.Time(s.AsOf)) + ")", cli.Bold}}
	if s.IntentID != "" {
		facts = append(facts, fact{"  intent", s.IntentID + " " + s.Intent, cli.Plain})
	}
	for _, c := range s.Charges {
		facts = append(facts, fact{"  charge", c.ID + " " + c.Status + " " + payments.ForPeople(c.Amount), cli.Plain})
	}
	for _, r := range s.Refunds {
		by := ""
		if !r.Ours {
			by = ", made by hand"
		}
		facts = append(facts, fact{"  refund", r.ID + " " + r.Status + " " + payments.ForPeople(r.Amount) + by, cli.Plain})
	}
	return facts
}

// confirm shows a person at a terminal what would happen, and asks. Nobody to ask is a refusal: a script must say --yes. It
// returns what the person has seen, so that the act is refused if something moves before it is done.
func (c *act) confirm(ctx context.Context, io cli.IO, desk *operator.Desk, what operator.Act) (seen string, err error) {
	if c.Yes {
		return "", nil
	}
	if !cli.IsTerminal(io.In) {
		return "", nobody()
	}
	v, err := desk.Preview(ctx, what, operator.Target{Effect: c.id}, 0)
	if err != nil {
		return "", err
	}
	if err := printPreview(cli.IO{Out: io.Err, Colour: io.Colour}, v); err != nil {
		return "", err
	}
	if !v.Allowed {
		return "", &outbox.RefusedError{Code: outbox.RefusedInapplicable, Reason: v.Refusal}
	}
	return v.Seen, ask(io, fmt.Sprintf("%s it?", strings.ToUpper(string(what[:1]))+string(what[1:])))
}

func nobody() error {
	return &outbox.RefusedError{Code: outbox.RefusedUnconfirmed, Reason: "nobody can be asked here; say --yes"}
}

// ask asks the person at the terminal.
func ask(io cli.IO, question string) error {
	if _, err := fmt.Fprint(io.Err, question+" [y/N] "); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.In).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); err != nil || answer != "y" && answer != "yes" {
		return &outbox.RefusedError{Code: outbox.RefusedUnconfirmed, Reason: "not confirmed"}
	}
	return nil
}
