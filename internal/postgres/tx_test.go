package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

// failing is a transaction whose COMMIT is sent and whose answer never comes.
type failing struct{ pgx.Tx }

func (f failing) Commit(context.Context) error { return errors.New("connection reset") }

type beginner struct{ postgres.Beginner }

func (b beginner) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := b.Beginner.Begin(ctx)
	return failing{tx}, err
}

// A failed COMMIT is an unknown outcome, never a nil error and never "failed"; a rollback by the server is a plain no.
func TestInTx(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	insert := func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO clients (id, name) VALUES (gen_random_uuid(), 'one')`)
		return err
	}
	count := func() (n int) {
		require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM clients`).Scan(&n))
		return n
	}
	unknown := &postgres.CommitError{}
	require.ErrorAs(t, postgres.InTx(t.Context(), beginner{db.Pool}, insert), &unknown)
	require.Zero(t, count(), "here it was rolled back")

	ours := errors.New("ours")
	require.ErrorIs(t, postgres.InTx(t.Context(), db.Pool, func(tx pgx.Tx) error { return errors.Join(insert(tx), ours) }), ours)
	require.Zero(t, count())

	err := postgres.InTx(t.Context(), db.Pool, func(tx pgx.Tx) error {
		_ = insert(tx)
		_, err := tx.Exec(t.Context(), `SELECT 1/0`)
		require.Error(t, err)
		return nil // the transaction is aborted, and COMMIT rolls it back
	})
	require.Error(t, err)
	require.NotErrorAs(t, err, &unknown)
	require.Zero(t, count())

	require.NoError(t, postgres.InTx(t.Context(), db.Pool, insert))
	require.Equal(t, 1, count())
}
