package testdb

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// RequireIndexed fails the test if the planner would read a whole table for a query. It says something only of tables
// that are large enough, and analyzed: of a small one the planner reads all, rightly.
func (db *DB) RequireIndexed(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	rows, err := db.Pool.Query(tb.Context(), `EXPLAIN `+sql, args...)
	require.NoError(tb, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(tb, err)
	require.NotContains(tb, strings.Join(lines, "\n"), "Seq Scan", "the plan of %s", sql)
}
