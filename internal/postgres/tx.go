package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Beginner begins a transaction: a pool, or a transaction, which then makes a savepoint.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// CommitError says that COMMIT was sent, or may have been, and no answer came back: the transaction may have committed,
// and may even be committing still. Whoever gets it reads back on another connection, by key, before doing anything.
type CommitError struct{ Err error }

func (e *CommitError) Error() string { return "the outcome of COMMIT is unknown: " + e.Err.Error() }

// Unwrap gives what the connection said.
func (e *CommitError) Unwrap() error { return e.Err }

// InTx runs fn in one transaction. It returns nil only if the transaction has committed. If fn fails, or the server
// answers COMMIT with a rollback, nothing has happened; a *CommitError means that nobody knows.
func InTx(ctx context.Context, db Beginner, fn func(tx pgx.Tx) error) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer rollback(ctx, tx)
	if err := fn(tx); err != nil {
		return err
	}
	return commit(ctx, tx)
}

func commit(ctx context.Context, tx pgx.Tx) error {
	err := tx.Commit(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback), isServerError(err):
		return fmt.Errorf("commit: %w", err) // the server itself says that nothing was committed
	default:
		return &CommitError{Err: err}
	}
}

// rollback is deferred without condition. Once the transaction has ended there is nothing left to do, and pgx says so.
// It ignores the caller's cancellation: a cancelled request must still give its locks back at once.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}
