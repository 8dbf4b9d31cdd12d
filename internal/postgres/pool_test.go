package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// Incident 04: a spell in which the database refuses writes, as after a failover to a standby. Expected: while it lasts
// the database counts as unavailable; when it is over the pool works, and keeps no connection that would go on refusing.
func TestIncident04_AReadOnlySpellPasses(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	pool, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: db.URL, ApplicationName: "spell"})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	write := func() error {
		_, err := pool.Exec(t.Context(), `INSERT INTO clients (id, name) VALUES (gen_random_uuid(), gen_random_uuid()::text)`)
		return err
	}
	require.NoError(t, write())

	name := pgx.Identifier{db.Name}.Sanitize()
	admin(t, db, `ALTER DATABASE `+name+` SET default_transaction_read_only = on`)
	admin(t, db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'spell' AND datname = current_database()`)
	for range 5 {
		err := write()
		require.Error(t, err)
		require.True(t, postgres.IsUnavailable(err), "%v", err)
	}
	admin(t, db, `ALTER DATABASE `+name+` RESET default_transaction_read_only`)
	require.NoError(t, write())
}

// admin runs a statement on a connection that may write whatever the database's default says.
func admin(t *testing.T, db *testdb.DB, sql string) {
	t.Helper()
	config, err := pgx.ParseConfig(db.URL)
	require.NoError(t, err)
	config.RuntimeParams["default_transaction_read_only"] = "off"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

// Only a server's own word says that a statement did nothing.
func TestErrorsAnswerQuestions(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	_, err := db.Pool.Exec(t.Context(), `SELECT 1 FROM there_is_no_such_table`)
	require.True(t, postgres.IsUndefinedTable(err))
	require.False(t, postgres.IsTransient(err) || postgres.IsUnavailable(err))
	_, err = db.Pool.Exec(t.Context(), `DO $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$`)
	require.True(t, postgres.IsUnavailable(err), "a full disk is no fault of the request")
	_, err = db.Pool.Exec(t.Context(), `DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'HF422', COLUMN = 'end', HINT = 'code'; END $$`)
	raised, ok := postgres.AsRaised(err)
	require.True(t, ok)
	require.Equal(t, postgres.Raised{Code: "HF422", Column: "end", Message: "no", Hint: "code"}, raised)
}
