package main

import (
	"context"

	"holdfast/internal/cli"
	"holdfast/internal/operator"
)

type outboxReplayCommand struct{ act }

// Help says more than the summary.
func (*outboxReplayCommand) Help() string {
	return `A pending or parked effect is tried again with a fresh count of attempts; one in doubt is the next that the reconciler looks at; a finished one is refused. The provider's keys stay the same, so money moves at most once.

Many at once: worker outbox replay --stuck --kind charge --cap 500 --reason TEXT. The effects are chosen and written down first; Ctrl-C stops between two of them, and "worker outbox runs resume ID" goes on.

` + exitCodes
}

// Run replays.
func (c *outboxReplayCommand) Run(ctx context.Context, io cli.IO) error {
	return c.do(ctx, io, operator.Replay)
}

type outboxResolveCommand struct{ act }

// Help says more than the summary.
func (*outboxResolveCommand) Help() string {
	return "Reads the provider now and settles what it shows, through the same door as the workers. It sends nothing, so it moves no money; it needs STRIPE_API_KEY in the environment, " +
		"and is refused where the provider shows nothing that could be adopted.\n\n" + exitCodes
}

// Run resolves.
func (c *outboxResolveCommand) Run(ctx context.Context, io cli.IO) error {
	return c.do(ctx, io, operator.Resolve)
}

type outboxDiscardCommand struct{ act }

// Help says more than the summary.
func (*outboxDiscardCommand) Help() string {
	return "It will never happen. What could still take or give money is refused: the provider is read for the proof that it cannot, which needs STRIPE_API_KEY in the environment. " +
		"A discarded event leaves a skip marker under its number, so that consumers do not wait for it.\n\n" + exitCodes
}

// Run discards.
func (c *outboxDiscardCommand) Run(ctx context.Context, io cli.IO) error {
	return c.do(ctx, io, operator.Discard)
}
