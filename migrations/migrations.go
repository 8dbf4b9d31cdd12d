// Package migrations is the schema: numbered, embedded, and run under a lock, River's tables included.
//
// A migration is never edited once released. A River upgrade is a new numbered migration (see river.go).
package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver that goose runs on
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Applied is one migration that Up has run.
type Applied struct {
	Version int64
	Name    string
}

// Up brings the database at databaseURL to the newest schema and returns what it ran, in order; nothing if it was
// there already. Two processes may call it at once: a session lock lets one run while the other waits.
// A failed migration leaves the earlier ones applied.
func Up(ctx context.Context, databaseURL string) ([]Applied, error) {
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		return nil, errors.New("open the database: DATABASE_URL cannot be parsed") // the parser's error may quote the password
	}
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db, databaseURL)
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	applied := make([]Applied, 0, len(results))
	for _, r := range results {
		applied = append(applied, Applied{Version: r.Source.Version, Name: r.Source.Path})
	}
	return applied, nil
}

// Version is the newest schema version that this build knows.
func Version() (int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return 0, fmt.Errorf("list migrations: %w", err)
	}
	version := int64(riverMigration)
	for _, name := range names {
		v, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("number of migration %s: %w", name, err)
		}
		version = max(version, v)
	}
	return version, nil
}

// Current tells the schema version of a database, for readiness checks: a binary serves only a schema that is at
// least as new as itself.
func Current(ctx context.Context, db interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
},
) (int64, error) {
	var v int64
	if err := db.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v); err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	return v, nil
}

// Fingerprint names this exact schema; test beds key their template databases by it.
func Fingerprint() (string, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return "", fmt.Errorf("list migrations: %w", err)
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "river %d\n", riverVersion)
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read migration %s: %w", name, err)
		}
		_, _ = fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func newProvider(db *sql.DB, databaseURL string) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithGoMigrations(river(databaseURL)))
	if err != nil {
		return nil, fmt.Errorf("load migrations: %w", err)
	}
	return provider, nil
}
