package migrations

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	riverMigration = 1 // our number for River's tables: everything of ours comes after them
	riverVersion   = 8 // River's own number, pinned: an upgrade of the library alone changes no schema
)

// river runs River's migrations outside a transaction of ours: one of them adds an enum value that a later one uses,
// which PostgreSQL refuses within one transaction (55P04).
func river(databaseURL string) *goose.Migration {
	return goose.NewGoMigration(riverMigration, &goose.GoFunc{
		RunDB: func(ctx context.Context, _ *sql.DB) error {
			pool, err := pgxpool.New(ctx, databaseURL)
			if err != nil {
				return fmt.Errorf("connect for River's migrations: %w", err)
			}
			defer pool.Close()
			migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
			if err != nil {
				return fmt.Errorf("load River's migrations: %w", err)
			}
			if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: riverVersion}); err != nil {
				return fmt.Errorf("run River's migrations: %w", err)
			}
			return nil
		},
	}, nil)
}
