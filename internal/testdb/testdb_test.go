package testdb_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/internal/testdb"
	"holdfast/migrations"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestNewIsMigrated(t *testing.T) {
	t.Parallel()
	want, err := migrations.Version()
	require.NoError(t, err)
	got, err := migrations.Current(t.Context(), testdb.New(t).Pool)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	one, two := testdb.New(t), testdb.New(t)
	require.NotEqual(t, one.URL, two.URL)
	_, err := one.Pool.Exec(t.Context(), `CREATE TABLE only_here ()`)
	require.NoError(t, err)
	require.False(t, hasTable(t, two, "only_here"))
	require.True(t, hasTable(t, one, "only_here"))
}

func TestDatabaseIsGoneAfterItsTest(t *testing.T) { //nolint:tparallel // looks at what its subtest leaves
	t.Parallel()
	observer := testdb.New(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		db := testdb.New(t)
		name = db.Name
		require.True(t, exists(t, observer, name))
		// Somebody is still connected, as after a failure.
		conn, err := pgx.Connect(t.Context(), db.URL)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	})
	require.False(t, exists(t, observer, name))
}

func TestTxIsRolledBack(t *testing.T) { //nolint:tparallel // looks at what its subtest leaves
	t.Parallel()
	t.Run("inner", func(t *testing.T) {
		_, err := testdb.Tx(t).Exec(t.Context(), `CREATE TABLE in_transaction ()`)
		require.NoError(t, err)
	})
	var found bool
	require.NoError(t, testdb.Tx(t).QueryRow(t.Context(), `SELECT to_regclass('in_transaction') IS NOT NULL`).Scan(&found))
	require.False(t, found)
}

// failing is a test that has failed, and that records what it is told.
type failing struct {
	testing.TB
	cleanups []func()
	logged   []string
}

func (f *failing) Failed() bool           { return true }
func (f *failing) Cleanup(cleanup func()) { f.cleanups = append(f.cleanups, cleanup) }
func (f *failing) Logf(format string, args ...any) {
	f.logged = append(f.logged, fmt.Sprintf(format, args...))
}
func (f *failing) Errorf(_ string, _ ...any) {}

func TestFailedTestTellsItsURLAndKeepsItsDatabaseWhenAsked(t *testing.T) {
	observer := testdb.New(t)
	for name, keep := range map[string]string{"kept": "1", "dropped": ""} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(testdb.KeepEnv, keep)
			fake := &failing{TB: t}
			db := testdb.New(fake)
			for _, cleanup := range fake.cleanups {
				cleanup()
			}
			require.Len(t, fake.logged, 1)
			require.Contains(t, fake.logged[0], db.URL)
			require.Equal(t, keep == "1", exists(t, observer, db.Name))
		})
	}
}

// TestProcessesShareOneTemplate runs test binaries that meet on one server with no template yet, as `go test ./...`
// does.
func TestProcessesShareOneTemplate(t *testing.T) {
	t.Parallel()
	admin := testdb.New(t)
	var dropped string
	require.NoError(t, admin.Pool.QueryRow(t.Context(),
		`SELECT datname FROM pg_database WHERE datistemplate AND datname LIKE 'holdfast_template_%'`).Scan(&dropped))

	server := startServer(t)
	processes := make([]*exec.Cmd, 4)
	outputs := make([]strings.Builder, len(processes))
	for i := range processes {
		processes[i] = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNewIsMigrated$", "-test.v")
		processes[i].Env = append(os.Environ(), testdb.URLEnv+"="+server.URL())
		processes[i].Stdout, processes[i].Stderr = &outputs[i], &outputs[i]
		require.NoError(t, processes[i].Start())
	}
	for i, process := range processes {
		require.NoError(t, process.Wait(), "%s", &outputs[i])
		require.Contains(t, outputs[i].String(), "--- PASS: TestNewIsMigrated")
	}
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), `SELECT datname FROM pg_database WHERE datname NOT IN ('postgres', 'template0', 'template1')`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{dropped}, names, "one template of the same name, and no database of a test")
}

// TestMissingDatabaseFails runs this package's tests where there is no PostgreSQL.
func TestMissingDatabaseFails(t *testing.T) {
	t.Parallel()
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "-test.run=^TestNewIsMigrated$", "-test.v")...)
		cmd.Env = []string{"HOLDFAST_PG_BIN=" + filepath.Join(t.TempDir(), "nothing"), "TMPDIR=" + os.TempDir()}
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	output, err := run()
	require.Error(t, err)
	require.Contains(t, output, "this test needs PostgreSQL")
	require.Contains(t, output, "apt-get install postgresql")

	output, err = run("-test.short")
	require.NoError(t, err, output)
	require.Contains(t, output, "--- SKIP")
}
