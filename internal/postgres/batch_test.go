package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

// What a dossier rests on: a batch waits for a lock, and the statements after it see what the lock's holder has committed.
// One statement with joins would show the rows as of before the wait.
func TestSend_SeesWhatWasCommittedWhileItWaited(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	exec := func(q postgres.Querier, sql string) {
		_, err := q.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	exec(db.Pool, `CREATE TABLE parent (id int PRIMARY KEY)`)
	exec(db.Pool, `CREATE TABLE child (id int)`)
	exec(db.Pool, `INSERT INTO parent VALUES (1)`)
	holder, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	exec(holder, `SELECT FROM parent FOR UPDATE`)
	exec(holder, `INSERT INTO child VALUES (7)`)

	type row struct{ ID int }
	var parent row
	var children []row
	done := make(chan error, 1)
	go func() {
		done <- postgres.InTx(t.Context(), db.Pool, func(tx pgx.Tx) error {
			var b pgx.Batch
			postgres.One(&b, "lock", func(r row) { parent = r }, `SELECT id FROM parent FOR UPDATE`)
			postgres.All(&b, "read", &children, `SELECT id FROM child`)
			return postgres.Send(t.Context(), tx, &b)
		})
	}()
	require.Eventually(t, func() bool {
		var waits int
		err := db.Pool.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits)
		return err == nil && waits == 1
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, holder.Commit(t.Context()))
	require.NoError(t, <-done)
	require.Equal(t, row{1}, parent)
	require.Equal(t, []row{{7}}, children)
}

// The first error is the batch's, says what failed, and undoes all of it, in a transaction and on a pool.
func TestSend_TheFirstErrorCounts(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	var b pgx.Batch
	none := func(tag pgconn.CommandTag) error {
		require.Equal(t, int64(1), tag.RowsAffected())
		return nil
	}
	postgres.ExecAnd(&b, "insert", none, `INSERT INTO clients (id, name) VALUES (gen_random_uuid(), 'batch')`)
	postgres.Exec(&b, "divide", `SELECT 1 / 0`)
	postgres.Exec(&b, "never", `SELECT 1 FROM no_such_function()`)
	err := postgres.Send(t.Context(), db.Pool, &b)
	require.ErrorContains(t, err, "no_such_function", "what cannot be prepared is found before anything runs")

	b = pgx.Batch{}
	postgres.ExecAnd(&b, "insert", none, `INSERT INTO clients (id, name) VALUES (gen_random_uuid(), 'batch')`)
	postgres.Exec(&b, "divide", `SELECT 1 / 0`)
	require.ErrorContains(t, postgres.Send(t.Context(), db.Pool, &b), "divide: ")
	var rows int
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM clients`).Scan(&rows))
	require.Zero(t, rows)
	require.NoError(t, postgres.Send(t.Context(), db.Pool, &pgx.Batch{}), "nothing to send is fine")
}
