package e2e_test

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Moments at which a transaction of a binary can be halted.
const (
	recording = "recording" // a send, for the first time
	settling  = "settling"  // the answer to a send
)

// halts stop transactions of the binaries inside their COMMIT: everything is written, and nothing is decided. Whoever
// waits for the COMMIT's reply can be killed there, and the test decides afterwards what has become of it. The halt is a
// deferred trigger of the test's own database that waits for a lock which the test holds, so it does not matter in how
// many statements, or in how many round trips, a transaction is made.
type halts struct {
	bed  *bed
	conn *pgxpool.Conn // holds the locks
}

const haltClass = 0x68616c74 // of advisory locks: any number that nobody else uses

func (b *bed) newHalts() *halts {
	b.Helper()
	conn, err := b.db.Pool.Acquire(b.Context())
	require.NoError(b, err)
	b.Cleanup(func() {
		_, err := conn.Exec(contextOf(b.T), `SELECT pg_advisory_unlock_all()`) // or a failed test's binaries could not stop
		require.NoError(b, err)
		conn.Release()
	})
	_, err = conn.Exec(b.Context(), `
		CREATE TABLE halts (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL, moment text NOT NULL);
		CREATE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(x'68616c74'::int, id) FROM halts
			  WHERE starts_with(NEW.key, halts.key) AND moment = TG_ARGV[0];
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER halt_recording AFTER INSERT ON provider_calls
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION halt('recording');
		CREATE CONSTRAINT TRIGGER halt_settling AFTER UPDATE ON provider_calls
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.http_status IS DISTINCT FROM OLD.http_status)
			EXECUTE FUNCTION halt('settling')`)
	require.NoError(b, err)
	return &halts{bed: b, conn: conn}
}

// at halts the transactions of a key, named by how it begins, from now on.
func (h *halts) at(key, moment string) {
	h.bed.Helper()
	_, err := h.conn.Exec(h.bed.Context(), `
		WITH made AS (INSERT INTO halts (key, moment) VALUES ($1, $2) RETURNING id)
		SELECT pg_advisory_lock($3, id) FROM made`, key, moment, haltClass)
	require.NoError(h.bed, err)
}

const halted = `
	SELECT l.pid FROM halts h JOIN pg_locks l ON l.locktype = 'advisory' AND l.classid = $2 AND l.objid = h.id::oid AND NOT l.granted
	  JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
	 WHERE h.key = $1`

// waiting tells whether a transaction of the key is halted.
func (h *halts) waiting(key string) bool {
	h.bed.Helper()
	return count(h.bed, `SELECT count(*) FROM (`+halted+`) AS h`, key, haltClass) == 1
}

// undo ends the connection of the key's transaction, which is rolled back.
func (h *halts) undo(key string) {
	h.bed.Helper()
	require.True(h.bed, value[bool](h.bed, `SELECT pg_terminate_backend(pid, 10000) FROM (`+halted+`) AS h`, key, haltClass))
}

// end lets all halted transactions commit, and returns when their connections are gone. It is for after the kill.
func (h *halts) end(application string) {
	h.bed.Helper()
	_, err := h.conn.Exec(context.WithoutCancel(h.bed.Context()), `DELETE FROM halts`)
	require.NoError(h.bed, err)
	_, err = h.conn.Exec(h.bed.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(h.bed, err)
	eventually(h.bed.T, soon, "nothing is left of the connections of "+application, func() bool {
		return count(h.bed, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = $1`, application) == 0
	})
}
