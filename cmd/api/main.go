// Command api serves Holdfast's customers over HTTP, and holds the commands by which its schema, tokens and resources
// are made.
package main

import "holdfast/internal/cli"

// commands is every sub-command. A flag's environment variable is in its tag "setting".
type commands struct {
	Serve    serveCommand     `cmd:"" help:"Serve the API."`
	Migrate  migrateCommand   `cmd:"" help:"Bring the database to this build's schema."`
	Token    tokenCommands    `cmd:"" help:"Make, list and revoke API tokens."`
	Resource resourceCommands `cmd:"" help:"Make and list what can be booked."`
	Minimums minimumsCommands `cmd:"" help:"Set and list the least that the payment provider charges."`

	Completion cli.Completion `cmd:"" help:"Print what makes a shell complete these commands."`
}

func program() cli.Program {
	return cli.Program{
		Name: "api",
		Description: `Takes a booking and the money for it, once.

DATABASE_URL names the database, in the environment only, since it may hold a password: postgres://user:password@host:port/database`,
		Root: &commands{Completion: cli.Completion{Name: "api"}},
	}
}

func main() { program().Main() }
