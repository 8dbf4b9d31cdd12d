package testdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/pgserver"
	"holdfast/internal/testdb"
)

func startServer(t *testing.T) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

func hasTable(t *testing.T, db *testdb.DB, table string) bool {
	t.Helper()
	var found bool
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT to_regclass($1) IS NOT NULL`, table).Scan(&found))
	return found
}

func exists(t *testing.T, observer *testdb.DB, name string) bool {
	t.Helper()
	var found bool
	require.NoError(t, observer.Pool.QueryRow(t.Context(),
		`SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&found))
	return found
}
