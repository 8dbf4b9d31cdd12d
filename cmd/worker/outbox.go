package main

import (
	"os"
	"os/user"
	"strings"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/outbox"
)

// outboxCommands are the operators'. Only what reads the provider needs its key, and only what sends events the broker.
type outboxCommands struct {
	List     outboxListCommand     `cmd:"" help:"List effects that are not finished, or only those that are stuck."`
	Show     outboxShowCommand     `cmd:"" help:"Show one effect, or a booking's charge, with the booking's other effects and what was done to them by hand."`
	Timeline outboxTimelineCommand `cmd:"" help:"Show all that has happened to a booking, in order."`

	Replay    outboxReplayCommand    `cmd:"" help:"Let an effect happen now, or many. Safe at any moment, any number of times."`
	Republish outboxRepublishCommand `cmd:"" help:"Send an event to the stream once more under its own id, or those of a span of time."`
	Resolve   outboxResolveCommand   `cmd:"" help:"Read the provider, and settle what it shows."`
	Discard   outboxDiscardCommand   `cmd:"" help:"Give an effect up, with the proof that it cannot take money."`
	Runs      outboxRunsCommands     `cmd:"" help:"Acts on many effects: list, look, go on."`

	Requests outboxRequestsCommand `cmd:"" help:"List the acts that wait for a second person."`
	Approve  outboxApproveCommand  `cmd:"" help:"Do an act that somebody else has asked for."`
	Withdraw outboxWithdrawCommand `cmd:"" help:"End a request without doing the act."`

	Pause  outboxPauseCommand  `cmd:"" help:"Take no more money, or publish no more events. Fences and reads go on."`
	Resume outboxResumeCommand `cmd:"" help:"Undo pause."`
	Pauses outboxPausesCommand `cmd:"" help:"List what is paused."`
}

// person is who acts and why.
type person struct {
	Reason string `placeholder:"TEXT" help:"Why; kept with what was done."`
	Actor  string `placeholder:"NAME" help:"Who, if not the user that runs this." setting:"HOLDFAST_ACTOR"`
}

func (o *person) actor() outbox.Actor {
	if o.Actor != "" {
		return outbox.Actor(o.Actor)
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return outbox.Actor(name + "@" + host)
}

// demand notes a missing reason.
func (o *person) demand(p *cli.Problems) {
	if strings.TrimSpace(o.Reason) == "" {
		p.Add("--reason is missing: it is kept with what was done")
	}
}

// checkID notes an argument that cannot be an effect's id.
func checkID(text string, p *cli.Problems) domain.EffectID {
	id, err := domain.ParseID[domain.EffectID](text)
	if err != nil {
		p.Add("the argument: %s; see: worker outbox list", err)
	}
	return id
}
