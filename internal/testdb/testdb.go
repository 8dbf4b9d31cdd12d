package testdb

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

const (
	// KeepEnv names the environment variable that, set to 1, keeps the databases of failed tests.
	KeepEnv = "HOLDFAST_KEEP_DB"

	poolSize     = 20 // enough for the goroutines of a race test, opened only when used
	cleanupLimit = time.Minute
)

// DB is a database that belongs to one test.
type DB struct {
	URL  string
	Name string
	Pool *pgxpool.Pool // closed after the test
}

// New returns a fresh, migrated database, dropped after the test.
func New(tb testing.TB) *DB {
	tb.Helper()
	bed := shared.open(tb)
	name, err := bed.clone(tb.Context(), tb.Name())
	require.NoError(tb, err)
	db := &DB{URL: bed.databaseURL(name), Name: name}
	tb.Cleanup(func() { db.drop(tb, bed) })
	db.Pool, err = newPool(tb.Context(), db.URL)
	require.NoError(tb, err)
	return db
}

// Tx returns a transaction on a database that the package's Tx tests share; it is rolled back after the test. It
// serves tests of single functions: what needs a commit, a second connection or River needs New.
func Tx(tb testing.TB) pgx.Tx {
	tb.Helper()
	pool, err := shared.open(tb).transactions()
	require.NoError(tb, err)
	ctx := context.WithoutCancel(tb.Context()) // the test's context ends before its cleanup, and would close the connection
	tx, err := pool.Begin(ctx)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, cleanupLimit)
		defer cancel()
		_ = tx.Rollback(ctx) // done already if the test ended it
	})
	return tx
}

func newPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolSize
	return pgxpool.NewWithConfig(ctx, config)
}

func (db *DB) drop(tb testing.TB, bed *bed) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), cleanupLimit)
	defer cancel()
	if db.Pool != nil && !closed(ctx, db.Pool) {
		tb.Errorf("a connection of the test's pool was never released (rows not closed, or a transaction still open)")
	}
	if keep, _ := os.LookupEnv(KeepEnv); tb.Failed() && keep == "1" {
		tb.Logf("database kept: %s", db.URL)
		return
	}
	if tb.Failed() {
		tb.Logf("database of the failed test, dropped now (%s=1 keeps it): %s", KeepEnv, db.URL)
	}
	if err := bed.dropDatabase(ctx, db.Name); err != nil {
		tb.Errorf("drop the test's database: %v", err)
	}
}

// closed closes the pool, which waits for its connections to come back, and says whether they did while ctx lives.
func closed(ctx context.Context, pool *pgxpool.Pool) bool {
	done := make(chan struct{})
	go func() {
		pool.Close()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
