package testdb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/internal/pgserver"
)

// URLEnv names the environment variable with the administrator's URL of a server to use instead of a private one.
const URLEnv = "HOLDFAST_TEST_DATABASE_URL"

const openLimit = 2 * time.Minute

// shared is the one server of this test binary. Tests of a package share it, so it is a package variable.
var shared bed //nolint:gochecknoglobals // see above

// bed is a server with a template on it.
type bed struct {
	mu       sync.Mutex
	inMain   bool
	opened   bool
	openErr  error
	server   *pgserver.Server // nil when the server is somebody else's
	adminURL *url.URL
	admin    *pgxpool.Pool
	template string
	strategy string // how to copy it

	txName string // the database behind Tx, made by the first call
	tx     *pgxpool.Pool
	txErr  error
}

// open returns the bed, ready for use. The first caller starts it; an error stays, so that a missing PostgreSQL
// fails each test at once rather than after a wait of its own.
func (b *bed) open(tb testing.TB) *bed {
	tb.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.True(tb, b.inMain,
		"testdb needs this package's TestMain: func TestMain(m *testing.M) { testdb.Main(m) }")
	if !b.opened {
		b.opened = true
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), openLimit)
		defer cancel()
		b.openErr = b.start(ctx)
	}
	if errors.Is(b.openErr, pgserver.ErrNotInstalled) && testing.Short() {
		tb.Skip("no PostgreSQL, and -short: ", b.openErr)
	}
	require.NoError(tb, b.openErr, "this test needs PostgreSQL")
	return b
}

func (b *bed) start(ctx context.Context) error {
	adminURL, given := os.LookupEnv(URLEnv)
	if !given || adminURL == "" {
		server, err := pgserver.Start(ctx, pgserver.Options{})
		if err != nil {
			return err
		}
		b.server, adminURL = server, server.URL()
	}
	parsed, err := url.Parse(adminURL)
	if err != nil || (parsed.Scheme != "postgres" && parsed.Scheme != "postgresql") {
		return fmt.Errorf("%s must be a URL such as postgres://user:password@host:port/postgres", URLEnv)
	}
	b.adminURL = parsed
	if b.admin, err = newPool(ctx, adminURL); err != nil {
		return fmt.Errorf("connect to the server in %s: %w", URLEnv, err)
	}
	if b.strategy, err = copyStrategy(ctx, b.admin); err != nil {
		return fmt.Errorf("connect to the server in %s: %w", URLEnv, err)
	}
	b.template, err = Template(ctx, adminURL)
	return err
}

// copyStrategy is twice as fast as the default where fsync is off. PostgreSQL 14 knows no other, and not the word.
func copyStrategy(ctx context.Context, admin *pgxpool.Pool) (strategy string, err error) {
	err = admin.QueryRow(ctx,
		`SELECT CASE WHEN current_setting('server_version_num')::int >= 150000 THEN ' STRATEGY file_copy' ELSE '' END`).Scan(&strategy)
	return strategy, err
}

// transactions returns the pool behind Tx.
func (b *bed) transactions() (*pgxpool.Pool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tx != nil || b.txErr != nil {
		return b.tx, b.txErr
	}
	ctx, cancel := context.WithTimeout(context.Background(), openLimit) // the pool outlives the test that opens it
	defer cancel()
	if b.txName, b.txErr = b.clone(ctx, "tx"); b.txErr == nil {
		b.tx, b.txErr = newPool(ctx, b.databaseURL(b.txName))
	}
	return b.tx, b.txErr
}

// stop closes what the tests shared and stops the server, if it is ours.
func (b *bed) stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
	defer cancel()
	var problems []error
	if b.tx != nil && !closed(ctx, b.tx) {
		problems = append(problems, errors.New("a connection behind testdb.Tx was never released"))
	}
	if b.txName != "" {
		problems = append(problems, b.dropDatabase(ctx, b.txName))
	}
	if b.admin != nil {
		b.admin.Close()
	}
	if b.server != nil {
		problems = append(problems, b.server.Stop())
	}
	return errors.Join(problems...)
}

// databaseURL is the administrator's URL with another database in it.
func (b *bed) databaseURL(name string) string {
	u := *b.adminURL
	u.Path = "/" + name
	return u.String()
}
