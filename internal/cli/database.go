package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Database is where the rows are. The URL comes from the environment only, since it may hold a password.
type Database struct {
	URL domain.Secret `kong:"-"` // DATABASE_URL
}

const wantDatabase = "want postgres://user:password@host:port/database"

// Configure reads DATABASE_URL.
func (d *Database) Configure(getenv func(string) string, p *Problems) {
	d.URL = domain.Secret(getenv("DATABASE_URL"))
	if d.URL == "" {
		p.Add("DATABASE_URL is not set; " + wantDatabase)
		return
	}
	if _, err := pgxpool.ParseConfig(d.URL.Reveal()); err != nil { // its text may quote the password
		p.Add("DATABASE_URL cannot be parsed; " + wantDatabase)
	}
}

// Open makes the small pool of a command that runs once.
func (d *Database) Open(ctx context.Context, application string) (*pgxpool.Pool, error) {
	return postgres.Open(ctx, postgres.PoolConfig{URL: d.URL.Reveal(), ApplicationName: application, MaxConns: 2})
}

var errNoSchema = errors.New("the database has no schema yet, or an older one; run: api migrate")

// Explain says in one line what keeps a command from its work on the database, with the exit code that it means. Any
// other error comes back as it is.
func (d *Database) Explain(err error) error {
	var dial *pgconn.ConnectError
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, context.Canceled): // nobody has refused anything
		return err
	case postgres.IsUndefinedTable(err):
		return &ExitError{Code: ExitUsage, Err: errNoSchema}
	case !errors.As(err, &dial):
		return err
	case !errors.As(dial, &refused):
		return &ExitError{Code: ExitUnknown, Err: fmt.Errorf("cannot reach the database at %s", d.address())}
	}
	code := ExitUsage // no such user or database, a wrong password
	if postgres.IsUnavailable(refused) {
		code = ExitUnknown // it is starting, or has no connection left
	}
	return &ExitError{Code: code, Err: fmt.Errorf("the database at %s refuses the connection: %s", d.address(), refused.Message)}
}

// address is every HOST:PORT that the URL names, and nothing else of it.
func (d *Database) address() string {
	config, err := pgxpool.ParseConfig(d.URL.Reveal())
	if err != nil {
		return "DATABASE_URL"
	}
	at := []string{net.JoinHostPort(config.ConnConfig.Host, strconv.Itoa(int(config.ConnConfig.Port)))}
	for _, f := range config.ConnConfig.Fallbacks {
		at = append(at, net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))))
	}
	return strings.Join(slices.Compact(at), " or ")
}
