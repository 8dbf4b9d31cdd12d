package cli

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

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

// Pool sizes the pool of a binary that serves.
type Pool struct {
	DBMaxConns         int           `default:"20" help:"Most connections to the database." setting:"DB_MAX_CONNS"`
	DBLockTimeout      time.Duration `default:"2s" help:"How long a statement waits for a lock." setting:"DB_LOCK_TIMEOUT"`
	DBStatementTimeout time.Duration `default:"10s" help:"How long a statement may run." setting:"DB_STATEMENT_TIMEOUT"`
}

// Configure checks the sizes.
func (s *Pool) Configure(_ func(string) string, p *Problems) {
	if s.DBMaxConns < 4 || s.DBMaxConns > 1000 {
		p.Add("DB_MAX_CONNS (--db-max-conns): %d is not between 4 and 1000", s.DBMaxConns)
	}
	if s.DBLockTimeout <= 0 || s.DBStatementTimeout <= s.DBLockTimeout {
		p.Add("DB_LOCK_TIMEOUT must be more than 0 and less than DB_STATEMENT_TIMEOUT, not %s and %s", s.DBLockTimeout, s.DBStatementTimeout)
	}
}

// Open makes the pool.
func (s *Pool) Open(ctx context.Context, d Database, application string) (*pgxpool.Pool, error) {
	return postgres.Open(ctx, postgres.PoolConfig{
		URL: d.URL.Reveal(), ApplicationName: application, MaxConns: int32(s.DBMaxConns), //nolint:gosec // checked above
		LockTimeout: s.DBLockTimeout, StatementTimeout: s.DBStatementTimeout,
	})
}

// Service is what every long-running command has.
type Service struct {
	MetricsAddr  string        `help:"Where /metrics, /healthz and /readyz are served; empty: nowhere." setting:"METRICS_ADDR" placeholder:"HOST:PORT"`
	LogLevel     slog.Level    `default:"info" help:"debug, info, warn or error." setting:"LOG_LEVEL"`
	DrainTimeout time.Duration `default:"30s" help:"How long a stopping process may finish what it has begun." setting:"DRAIN_TIMEOUT"`
}

// Provider is how to reach the payment provider.
type Provider struct {
	APIKey        domain.Secret `kong:"-"` // STRIPE_API_KEY
	APIBase       string        `kong:"-"` // STRIPE_API_BASE; empty: Stripe itself
	StripeTimeout time.Duration `default:"30s" help:"How long one exchange with the payment provider may take." setting:"STRIPE_TIMEOUT"`
}

// Configure reads the key.
func (s *Provider) Configure(getenv func(string) string, p *Problems) {
	s.APIKey, s.APIBase = domain.Secret(getenv("STRIPE_API_KEY")), getenv("STRIPE_API_BASE")
	if s.APIKey == "" {
		p.Add("STRIPE_API_KEY is not set; want sk_test_… or sk_live_…")
	}
	if u, err := url.Parse(s.APIBase); s.APIBase != "" && (err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http")) {
		p.Add("STRIPE_API_BASE is not a URL such as http://127.0.0.1:12111; leave it unset for Stripe itself")
	}
	if s.StripeTimeout <= 0 {
		p.Add("STRIPE_TIMEOUT (--stripe-timeout): %s is not more than 0", s.StripeTimeout)
	}
}
