package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/pgserver"
)

const databaseName = "holdfast"

// postgresService is the stack's own PostgreSQL, which comes back on the same port with the same data.
func postgresService(opts stackOptions, port int, url *string) *service {
	dir := opts.postgresDir()
	var first sync.Once // later starts have the same port and password
	return &service{
		name: "postgres",
		log:  filepath.Join(dir, "postgres.log"),
		start: func(ctx context.Context) (instance, error) {
			server, err := pgserver.Start(ctx, pgserver.Options{Dir: dir, Durable: true, Port: port})
			if errors.Is(err, pgserver.ErrUnreachable) {
				// Root's checkout may be closed to the account that PostgreSQL runs as.
				server, err = pgserver.Start(ctx, pgserver.Options{Dir: opts.openPostgresDir(), Durable: true, Port: port})
			}
			if err != nil {
				return nil, err
			}
			if err := createDatabase(ctx, server.URL()); err != nil {
				return nil, errors.Join(err, server.Stop())
			}
			first.Do(func() { *url = server.DSN(databaseName) })
			return server, nil
		},
	}
}

func createDatabase(ctx context.Context, adminURL string) error {
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return fmt.Errorf("connect to postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var exists bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, databaseName).Scan(&exists)
	if err == nil && !exists {
		_, err = conn.Exec(ctx, `CREATE DATABASE `+databaseName)
	}
	if err != nil {
		return fmt.Errorf("create database %s: %w", databaseName, err)
	}
	return nil
}

// openPostgresDir is a directory for the data outside the state directory, always the same for the same one.
func (o stackOptions) openPostgresDir() string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(o.state))
	return filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-%x", hash.Sum64()))
}
