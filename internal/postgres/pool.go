package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PoolConfig sets up a pool. Zero durations and sizes take the defaults.
type PoolConfig struct {
	URL              string        // may hold a password; never logged
	ApplicationName  string        // mandatory: who holds this connection, as pg_stat_activity shows it
	MaxConns         int32         // default 20
	LockTimeout      time.Duration // how long a statement waits for a lock; default 2 s
	StatementTimeout time.Duration // default 10 s

	// AsyncCommit commits without waiting for the disk (synchronous_commit = off): a crash of the server, and only that,
	// may undo the newest commits, in order. It is for what can be done again at any time, and never for money.
	AsyncCommit bool
}

// Open makes a pool. It does not connect yet: a database that is down is found by the first use, or by Ping.
func Open(ctx context.Context, c PoolConfig) (*pgxpool.Pool, error) {
	if c.ApplicationName == "" {
		return nil, errors.New("open the pool: no application name given")
	}
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		// The parser's own error may quote parts of the password.
		return nil, errors.New("open the pool: DATABASE_URL cannot be parsed; want postgres://user:password@host:port/database")
	}
	config.MaxConns = 20
	if c.MaxConns > 0 {
		config.MaxConns = c.MaxConns
	}
	lock, statement := 2*time.Second, 10*time.Second
	if c.LockTimeout > 0 {
		lock = c.LockTimeout
	}
	if c.StatementTimeout > 0 {
		statement = c.StatementTimeout
	}
	params := config.ConnConfig.RuntimeParams
	params["application_name"] = c.ApplicationName
	params["timezone"] = "UTC"
	params["lock_timeout"] = millis(lock)
	params["statement_timeout"] = millis(statement)
	// The longer one: it ends only a transaction that its owner has forgotten.
	params["idle_in_transaction_session_timeout"] = millis(3 * statement)
	if c.AsyncCommit {
		params["synchronous_commit"] = "off"
	}
	// A connection to a standby, or opened while the server refuses writes, would go on refusing them for as long as it
	// lives. It is not taken into the pool; whoever needs it is told that the database is away.
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the pool: %w", err)
	}
	return pool, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Querier is what a single statement needs: a pool or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
