package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/pgserver"
	"holdfast/internal/pgserver/child"
	"holdfast/internal/postgres"
	"holdfast/migrations"
)

const (
	throughputDB = "throughput"
	pickupDB     = "pickup"
	resources    = 1000 // over which fresh bookings are spread
	readyWithin  = 30 * time.Second
	stopWithin   = 30 * time.Second
	poolSize     = 20 // as the binaries have it
)

// bed is what is measured upon.
type bed struct {
	server  *pgserver.Server
	admin   *pgx.Conn
	pgbench string
	version string
	dir     string
	pool    *pgxpool.Pool // of the throughput database: the store's, and for counting
	api     *process
	slots   int // that have been given out
}

// newBed starts PostgreSQL, makes the two databases and starts the API on the first one.
func newBed(ctx context.Context, out *printer) (b *bed, err error) {
	out.progress("building api and worker")
	build := exec.CommandContext(ctx, "go", "build", "-o", outputDir+"/", "./cmd/api", "./cmd/worker")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the binaries (run this from the module's root): %w\n%s", err, output)
	}
	b = &bed{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(context.WithoutCancel(ctx)))
		}
	}()
	if b.dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return nil, err
	}
	out.progress("starting PostgreSQL, fsync on")
	if b.server, err = pgserver.Start(ctx, pgserver.Options{Durable: true}); err != nil {
		return nil, err
	}
	if b.admin, err = pgx.Connect(ctx, b.server.URL()); err != nil {
		return nil, err
	}
	err = b.admin.QueryRow(ctx, `SELECT setting || '/pgbench', current_setting('server_version') FROM pg_config() WHERE name = 'BINDIR'`).
		Scan(&b.pgbench, &b.version)
	if err != nil {
		return nil, fmt.Errorf("find pgbench: %w", err)
	}
	if _, err := os.Stat(b.pgbench); err != nil {
		return nil, fmt.Errorf("pgbench is not beside the server (Debian and Ubuntu: it is in postgresql-contrib or postgresql): %w", err)
	}
	// No checkpoint by time or size falls into a measurement: settle makes one before.
	for _, set := range []string{"max_wal_size = '8GB'", "checkpoint_timeout = '1h'", "commit_siblings = 0"} {
		if _, err := b.admin.Exec(ctx, "ALTER SYSTEM SET "+set); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{throughputDB, pickupDB} {
		if err := b.database(ctx, name); err != nil {
			return nil, err
		}
	}
	if b.pool, err = b.open(ctx, throughputDB, poolSize); err != nil {
		return nil, err
	}
	b.api, err = b.start(ctx, "api", []string{"serve"}, func(address string) []string {
		return []string{"DATABASE_URL=" + b.server.DSN(throughputDB), "HTTP_ADDR=" + address, "LOG_LEVEL=warn"}
	})
	return b, err
}

func (b *bed) database(ctx context.Context, name string) error {
	if _, err := b.admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	if _, err := migrations.Up(ctx, b.server.DSN(name)); err != nil {
		return err
	}
	pool, err := b.open(ctx, name, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err = pool.Exec(ctx, pgbenchFunctions); err != nil { // the bench's own, and not of the schema
		return fmt.Errorf("make pgbench's functions: %w", err)
	}
	_, err = pool.Exec(ctx, `
		INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold)
		SELECT bench_resource(i), 'Court', 'UTC', 1, 60, 2500, 'EUR', '15 min' FROM generate_series(0, $1::int - 1) i`, resources)
	return err
}

// open makes a pool as the binaries do.
func (b *bed) open(ctx context.Context, database string, size int32) (*pgxpool.Pool, error) {
	return postgres.Open(ctx, postgres.PoolConfig{URL: b.server.DSN(database), ApplicationName: "holdfast-bench", MaxConns: size})
}

// setFlush makes every commit wait for so many microseconds before its flush, as a slower disk would; 0: not.
func (b *bed) setFlush(ctx context.Context, micros int) error {
	if _, err := b.admin.Exec(ctx, "ALTER SYSTEM SET commit_delay = "+strconv.Itoa(micros)); err != nil {
		return fmt.Errorf("set the flush: %w", err)
	}
	if _, err := b.admin.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return fmt.Errorf("set the flush: %w", err)
	}
	return until(ctx, readyWithin, "the flush is set", func() (bool, error) {
		var now string
		err := b.admin.QueryRow(ctx, "SELECT setting FROM pg_settings WHERE name = 'commit_delay'").Scan(&now)
		return now == strconv.Itoa(micros), err
	})
}

// settle writes out what earlier measurements left, and then books for a moment what nobody counts, so that
// neither the checkpoint nor the full pages after it fall to whoever is measured first.
func (b *bed) settle(ctx context.Context) error {
	if _, err := b.admin.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return b.warm(ctx)
}

// take reserves slots that nobody else books.
func (b *bed) take(n int) int {
	from := b.slots
	b.slots += (n + resources - 1) / resources * resources
	return from
}

// deadlocks counts those of all databases, ever. The counters of a connection are complete once it has ended.
func (b *bed) deadlocks(ctx context.Context) (int, error) {
	err := until(ctx, readyWithin, "every connection is closed", func() (bool, error) {
		var open int
		err := b.admin.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = ANY ($1) AND backend_type = 'client backend'`, []string{throughputDB, pickupDB}).Scan(&open)
		return open == 0, err
	})
	if err != nil {
		return 0, err
	}
	var n int
	err = b.admin.QueryRow(ctx, `SELECT sum(deadlocks)::int FROM pg_stat_database`).Scan(&n)
	return n, err
}

// stopClients ends whatever has a connection.
func (b *bed) stopClients() error {
	var err error
	if b.api != nil {
		err = b.api.stop()
		b.api = nil
	}
	if b.pool != nil {
		b.pool.Close()
		b.pool = nil
	}
	return err
}

func (b *bed) close(ctx context.Context) error {
	err := b.stopClients()
	if b.admin != nil {
		err = errors.Join(err, b.admin.Close(ctx))
	}
	if b.server != nil {
		err = errors.Join(err, b.server.Stop())
	}
	if b.dir != "" {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}

// process is a binary that runs.
type process struct {
	name    string
	address string
	child   *child.Process
}

// start starts a binary at a free address and waits until it says that it is ready. Its log is beside the results.
func (b *bed) start(ctx context.Context, name string, args []string, env func(address string) []string) (*process, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(outputDir, filepath.Base(name)+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()                                                              // the process has a descriptor of its own
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(outputDir, name), args...) //nolint:gosec // the binary just built
	cmd.Env, cmd.Stdout, cmd.Stderr = append(env(address), "TMPDIR="+b.dir), log, log
	p := &process{name: name, address: address}
	if p.child, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, err
	}
	err = until(ctx, readyWithin, name+" is ready", func() (bool, error) {
		select {
		case <-p.child.Done():
			return false, fmt.Errorf("%s ended instead of becoming ready; see %s", name, log.Name())
		default:
			return ready(ctx, address), nil
		}
	})
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *process) stop() error {
	if err := p.child.Stop(syscall.SIGTERM, stopWithin); err != nil {
		return err
	}
	if err := p.child.Err(); err != nil {
		return fmt.Errorf("%s, after SIGTERM: %w", p.name, err)
	}
	return nil
}

func ready(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// until waits for a condition.
func until(ctx context.Context, limit time.Duration, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		held, err := holds()
		if held || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
