// Command reconciler ends doubts by asking the provider, sweeps holds that have ended, and revives effects whose job
// was lost; and it holds finance's commands, which compare our books with the provider's.
package main

import "holdfast/internal/cli"

// commands is every sub-command. A flag's environment variable is in its tag "setting".
type commands struct {
	Run  runCommand  `cmd:"" help:"Reconcile until stopped."`
	Once onceCommand `cmd:"" help:"Do every kind of work once, and say what was done."`

	Events     receiptCommands    `cmd:"" help:"See the provider's events that nobody has understood, and decide about them."`
	Report     reportCommand      `cmd:"" help:"Compare a period's books with the provider's, and report it."`
	Import     importCommand      `cmd:"" help:"Read the provider's books from a report of theirs, instead of its API."`
	Exceptions exceptionsCommands `cmd:"" help:"What does not match: list it, note what is known, sign it off."`
	SignOff    signOffCommand     `cmd:"" help:"Sign off a period: lock it."`
	Fees       feesCommand        `cmd:"" help:"Say which fees were agreed, so that others are found."`

	Completion cli.Completion `cmd:"" help:"Print what makes a shell complete these commands."`
}

func program() cli.Program {
	return cli.Program{
		Name: "reconciler",
		Description: `Ends every doubt by asking the payment provider, never by trying again under a new name.

DATABASE_URL, STRIPE_API_KEY and STRIPE_API_BASE are read from the environment only.`,
		Root: &commands{Completion: cli.Completion{Name: "reconciler"}},
	}
}

func main() { program().Main() }
