package cli

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bojanz/currency"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Pool sizes the pool of a binary that serves.
type Pool struct {
	DBMaxConns         int           `default:"20" help:"Most connections to the database; the worker has as many again for its jobs." setting:"DB_MAX_CONNS"`
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
	return postgres.Open(ctx, s.config(d, application))
}

// OpenAsync makes a pool whose commits do not wait for the disk ([postgres.PoolConfig.AsyncCommit]).
func (s *Pool) OpenAsync(ctx context.Context, d Database, application string) (*pgxpool.Pool, error) {
	config := s.config(d, application)
	config.AsyncCommit = true
	return postgres.Open(ctx, config)
}

func (s *Pool) config(d Database, application string) postgres.PoolConfig {
	return postgres.PoolConfig{
		URL: d.URL.Reveal(), ApplicationName: application, MaxConns: int32(s.DBMaxConns), //nolint:gosec // checked above
		LockTimeout: s.DBLockTimeout, StatementTimeout: s.DBStatementTimeout,
	}
}

// Service is what every long-running command has.
type Service struct {
	MetricsAddr  string        `help:"Where /metrics, /healthz and /readyz are served; empty: nowhere." setting:"METRICS_ADDR" placeholder:"HOST:PORT"`
	LogLevel     slog.Level    `default:"info" help:"debug, info, warn or error." setting:"LOG_LEVEL"`
	DrainTimeout time.Duration `default:"30s" help:"How long a stopping process may finish what it has begun." setting:"DRAIN_TIMEOUT"`
}

// Account is the account at the payment provider.
type Account struct {
	APIKey  domain.Secret // STRIPE_API_KEY; empty: none
	APIBase string        // STRIPE_API_BASE; empty: Stripe itself
}

// Configure reads the key, which may be missing.
func (s *Account) Configure(getenv func(string) string, p *Problems) {
	s.APIKey, s.APIBase = domain.Secret(getenv("STRIPE_API_KEY")), getenv("STRIPE_API_BASE")
	if u, err := url.Parse(s.APIBase); s.APIBase != "" && (err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http")) {
		p.Add("STRIPE_API_BASE is not a URL such as http://127.0.0.1:12111; leave it unset for Stripe itself")
	}
}

// Provider is how to charge at the payment provider.
type Provider struct {
	Account       Account       `kong:"-"`
	StripeTimeout time.Duration `default:"30s" help:"How long one exchange with the payment provider may take." setting:"STRIPE_TIMEOUT"`
	ReturnURL     string        `help:"Where a bank's check sends the customer back to; https, or http on this machine. Empty: the customer's page handles the check with Stripe's own library. A change concerns payments not yet sent." setting:"RETURN_URL" placeholder:"URL"`
}

// Configure reads the key.
func (s *Provider) Configure(getenv func(string) string, p *Problems) {
	s.Account.Configure(getenv, p)
	if s.Account.APIKey == "" {
		p.Add("STRIPE_API_KEY is not set; want sk_test_… or sk_live_…")
	}
	if s.ReturnURL != "" && !returnable(s.ReturnURL) {
		p.Add("RETURN_URL (--return-url) is neither an https URL nor an http one on a loopback address, such as https://shop.example/paid")
	}
	if s.StripeTimeout <= 0 {
		p.Add("STRIPE_TIMEOUT (--stripe-timeout): %s is not more than 0", s.StripeTimeout)
	}
}

// returnable is what the provider may be told to send a customer's browser to.
func returnable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && local
}

// Sending is how often, and for how long, a send to the provider may be made again: the same for all who send.
type Sending struct {
	ProviderKeyHorizon   time.Duration `default:"20h" help:"How long after its first send a provider key may be sent again; less than the provider's memory of keys." setting:"PROVIDER_KEY_HORIZON"`
	ProviderKeyRetention time.Duration `default:"24h" help:"How long after its last send a provider key may still bring a refund that the provider does not list; only then is the next key taken. At least the horizon." setting:"PROVIDER_KEY_RETENTION"`
	SendBackoff          time.Duration `default:"1s" help:"Wait after the first send without an answer; doubles, up to a minute." setting:"SEND_BACKOFF"`
}

// Configure checks the bounds.
func (s *Sending) Configure(_ func(string) string, p *Problems) {
	if s.ProviderKeyHorizon <= 0 || s.ProviderKeyHorizon >= 24*time.Hour {
		p.Add("PROVIDER_KEY_HORIZON (--provider-key-horizon): %s is not between 0 and 24h, how long the provider remembers a key at least", s.ProviderKeyHorizon)
	}
	if s.ProviderKeyRetention < s.ProviderKeyHorizon {
		p.Add("PROVIDER_KEY_RETENTION (--provider-key-retention): %s is less than PROVIDER_KEY_HORIZON, %s", s.ProviderKeyRetention, s.ProviderKeyHorizon)
	}
	if s.SendBackoff <= 0 {
		p.Add("SEND_BACKOFF (--send-backoff): %s is not more than 0", s.SendBackoff)
	}
}

// Liveness is when a worker process counts as dead.
type Liveness struct {
	WorkerDeadAfter time.Duration `default:"15s" help:"A worker that has not been heard of for so long counts as dead, and others carry on its jobs; the same for worker and reconciler." setting:"WORKER_DEAD_AFTER"`
}

// Configure checks the bound.
func (s *Liveness) Configure(_ func(string) string, p *Problems) {
	if s.WorkerDeadAfter < time.Second || s.WorkerDeadAfter > 30*time.Minute {
		p.Add("WORKER_DEAD_AFTER (--worker-dead-after): %s is not between 1s and 30m", s.WorkerDeadAfter)
	}
}

// TwoPersons is which of the operators' acts need a second person.
type TwoPersons struct {
	Above       map[string]int64 `kong:"-"` // TWO_PERSON_ABOVE: by currency, minor units; empty: none does
	RequestLife time.Duration    `kong:"-"` // REQUEST_LIFE: how long an act waits for the second one
}

const defaultRequestLife = 24 * time.Hour

// Configure reads TWO_PERSON_ABOVE and REQUEST_LIFE. They come from the environment only, so that all who act are told the same.
func (s *TwoPersons) Configure(getenv func(string) string, p *Problems) {
	s.Above, s.RequestLife = map[string]int64{}, defaultRequestLife
	if text := getenv("TWO_PERSON_ABOVE"); text != "" {
		for entry := range strings.SplitSeq(text, ",") {
			code, amount, _ := strings.Cut(strings.TrimSpace(entry), "=")
			n, err := strconv.ParseInt(strings.TrimSpace(amount), 10, 64)
			code = strings.ToUpper(strings.TrimSpace(code))
			if _, twice := s.Above[code]; err != nil || n < 0 || twice || !currency.IsValid(code) {
				p.Add("TWO_PERSON_ABOVE: %q is not a currency, given once, and an amount in its minor units; want eur=50000,usd=50000", entry)
				continue
			}
			s.Above[code] = n
		}
	}
	if text := getenv("REQUEST_LIFE"); text != "" {
		life, err := time.ParseDuration(text)
		if err != nil || life < time.Minute || life > 30*24*time.Hour {
			p.Add("REQUEST_LIFE: %q is not a duration from 1m to 720h", text)
			return
		}
		s.RequestLife = life
	}
}
