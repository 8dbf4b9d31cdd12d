package pgserver_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// contextForParent is the context of the program that waits to be killed, which is no test.
func contextForParent() context.Context { return context.Background() }

// query runs one statement on a connection of its own and returns its only value, if it has one.
func query(t *testing.T, dsn, sql string, args ...any) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	rows, err := conn.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// openDir is a temporary directory that another account may enter, as t.TempDir's may not be.
func openDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "pgserver-test-") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(parent)) })
	require.NoError(t, os.Chmod(parent, 0o755))
	return filepath.Join(parent, "postgres")
}

// loggerThatSees returns a logger and a channel that is closed at its first record with this message.
func loggerThatSees(t *testing.T, message string) (*slog.Logger, <-chan struct{}) {
	t.Helper()
	seen := make(chan struct{})
	return slog.New(&watcher{Handler: slog.DiscardHandler, message: message, seen: seen}), seen
}

type watcher struct {
	slog.Handler
	message string
	once    sync.Once
	seen    chan struct{}
}

func (w *watcher) Enabled(context.Context, slog.Level) bool { return true }

func (w *watcher) Handle(_ context.Context, record slog.Record) error {
	if record.Message == w.message {
		w.once.Do(func() { close(w.seen) })
	}
	return nil
}
