package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Batcher sends queued statements in one round trip: a transaction, or a pool.
type Batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Send sends the queued statements in one round trip and returns the first error. In a transaction each statement sees
// what was committed before it began, as if they had been sent one by one: a row that is read after a lock was waited for
// is as new as the lock. On a pool they commit together, or not at all.
func Send(ctx context.Context, db Batcher, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return db.SendBatch(ctx, b).Close()
}

// Exec queues a statement; what says in an error what it was to do.
func Exec(b *pgx.Batch, what, sql string, args ...any) { ExecAnd(b, what, nil, sql, args...) }

// ExecAnd is Exec, and hands what the statement did to then.
func ExecAnd(b *pgx.Batch, what string, then func(pgconn.CommandTag) error, sql string, args ...any) {
	b.Queue(sql, args...).Fn = func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		if err == nil && then != nil {
			err = then(tag)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
}

// One queues a query whose only row is read by its columns' names and handed to then. Without a row then is not called.
func One[T any](b *pgx.Batch, what string, then func(T), sql string, args ...any) {
	b.Queue(sql, args...).Fn = func(results pgx.BatchResults) error {
		rows, err := results.Query()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		}
		then(row)
		return nil
	}
}

// All queues a query whose rows are read by their columns' names into all.
func All[T any](b *pgx.Batch, what string, all *[]T, sql string, args ...any) {
	b.Queue(sql, args...).Fn = func(results pgx.BatchResults) error {
		rows, err := results.Query()
		if err == nil {
			*all, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
}
