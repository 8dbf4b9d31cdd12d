package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/cli"
	"holdfast/internal/postgres"
)

// errNoSchema says what to do about a database that is there and empty.
var errNoSchema = errors.New("the database has no schema yet; run: api migrate")

// once runs a command's work on a small pool.
func once(ctx context.Context, d cli.Database, work func(ctx context.Context, pool *pgxpool.Pool) error) error {
	pool, err := d.Open(ctx, "holdfast-api-command")
	if err != nil {
		return err
	}
	defer pool.Close()
	err = work(ctx, pool)
	if postgres.IsUndefinedTable(err) {
		return fmt.Errorf("%w (%w)", errNoSchema, err)
	}
	return err
}
