package testdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/migrations"
)

const (
	templatePrefix = "holdfast_template_"
	namePrefix     = "hf_"
	nameRoom       = 40         // of PostgreSQL's 63 bytes for a name
	templateLock   = 0x486f6c64 // any number that all of Holdfast's test binaries agree on
)

// Template makes sure that the server has a migrated template for this build's schema and returns its name. Many
// processes may call it at once: one migrates, the others wait for it.
func Template(ctx context.Context, adminURL string) (name string, err error) {
	fingerprint, err := migrations.Fingerprint()
	if err != nil {
		return "", err
	}
	name = templatePrefix + fingerprint
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return "", fmt.Errorf("connect to the test server: %w", err)
	}
	// Closing the connection releases the lock, whatever happened in between.
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return "", fmt.Errorf("lock the template: %w", err)
	}
	var finished bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)`, name).Scan(&finished)
	if err != nil {
		return "", fmt.Errorf("look for template %s: %w", name, err)
	}
	if finished {
		return name, nil
	}
	return name, buildTemplate(ctx, conn, adminURL, name)
}

// buildTemplate migrates a new database and marks it as a template last, so that one left half-built by a killed
// process is not taken for a finished one. Nobody may connect to a template: PostgreSQL refuses to copy a database
// in use.
func buildTemplate(ctx context.Context, conn *pgx.Conn, adminURL, name string) error {
	u, err := url.Parse(adminURL)
	if err != nil {
		return fmt.Errorf("build template %s: the server's URL cannot be parsed", name)
	}
	u.Path = "/" + name
	quoted := pgx.Identifier{name}.Sanitize()
	for _, step := range []string{
		`DROP DATABASE IF EXISTS ` + quoted + ` WITH (FORCE)`,
		`CREATE DATABASE ` + quoted + ` TEMPLATE template0`,
	} {
		if _, err := conn.Exec(ctx, step); err != nil {
			return fmt.Errorf("build template %s: %w", name, err)
		}
	}
	if _, err := migrations.Up(ctx, u.String()); err != nil {
		return fmt.Errorf("build template %s: %w", name, err)
	}
	if _, err := conn.Exec(ctx, `ALTER DATABASE `+quoted+` WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`); err != nil {
		return fmt.Errorf("build template %s: %w", name, err)
	}
	return nil
}

// clone copies the template into a database named after the test.
func (b *bed) clone(ctx context.Context, test string) (string, error) {
	name := databaseName(test)
	_, err := b.admin.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize()+
		` TEMPLATE `+pgx.Identifier{b.template}.Sanitize()+b.strategy)
	if err != nil {
		return "", fmt.Errorf("clone template %s: %w", b.template, err)
	}
	return name, nil
}

// dropDatabase drops a database, cutting off whoever is still connected: a test that failed may have left somebody.
func (b *bed) dropDatabase(ctx context.Context, name string) error {
	_, err := b.admin.Exec(ctx, `DROP DATABASE IF EXISTS `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`)
	return err
}

// databaseName turns a test's name into a unique one that a person can recognise and need not quote.
func databaseName(test string) string {
	words := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(test), "_"), "_")
	if len(words) > nameRoom {
		words = words[:nameRoom]
	}
	return namePrefix + words + "_" + strings.ToLower(rand.Text()[:10])
}
