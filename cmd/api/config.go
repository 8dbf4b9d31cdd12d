package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// commands is every sub-command with its flags. A flag's environment variable is in its tag "setting".
type commands struct {
	Serve    serveCommand     `cmd:"" help:"Serve the API."`
	Migrate  migrateCommand   `cmd:"" help:"Bring the database to this build's schema."`
	Token    tokenCommands    `cmd:"" help:"Make, list and revoke API tokens."`
	Resource resourceCommands `cmd:"" help:"Make and list what can be booked."`
}

// setEnvironment hands out what is read from the environment only.
func (c *commands) setEnvironment(getenv func(string) string) {
	url := domain.Secret(getenv("DATABASE_URL"))
	for _, d := range []*database{
		&c.Serve.database, &c.Migrate.database, &c.Token.Create.database, &c.Token.List.database, &c.Token.Revoke.database,
		&c.Resource.Create.database, &c.Resource.List.database,
	} {
		d.url = url
	}
}

// database is where the rows are.
type database struct {
	url domain.Secret // DATABASE_URL; may hold a password, and so is never a flag
}

func (d *database) check(p *problems) {
	if d.url == "" {
		p.add("DATABASE_URL is not set; want postgres://user:password@host:port/database")
		return
	}
	if _, err := pgxpool.ParseConfig(d.url.Reveal()); err != nil { // its text may quote the password
		p.add("DATABASE_URL cannot be parsed; want postgres://user:password@host:port/database")
	}
}

// open makes the small pool of a command that runs once.
func (d *database) open(ctx context.Context) (*pgxpool.Pool, error) {
	return postgres.Open(ctx, postgres.PoolConfig{URL: d.url.Reveal(), ApplicationName: "holdfast-api-cli", MaxConns: 2})
}
