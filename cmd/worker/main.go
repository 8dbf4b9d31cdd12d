// Command worker carries out effects: charges, fences and events; and it holds the operators' commands on them.
package main

import "holdfast/internal/cli"

// commands is every sub-command. A flag's environment variable is in its tag "setting".
type commands struct {
	Run    runCommand     `cmd:"" help:"Carry out effects until stopped."`
	Outbox outboxCommands `cmd:"" help:"See what is stuck, and set it going again."`

	Completion cli.Completion `cmd:"" help:"Print what makes a shell complete these commands."`
}

func program() cli.Program {
	return cli.Program{
		Name: "worker",
		Description: `Carries out what was committed: takes the money, fences what is in doubt, publishes events.

DATABASE_URL, NATS_URL, STRIPE_API_KEY and STRIPE_API_BASE are read from the environment only.`,
		Root: &commands{Completion: cli.Completion{Name: "worker"}},
	}
}

func main() { program().Main() }
