package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/testdb"
)

func TestMain(m *testing.M) {
	// The server of the surrounding run would be used instead of one that this package starts.
	if err := os.Unsetenv(testdb.URLEnv); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func TestCommandGetsAServerAndItsStatusIsOurs(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"--", "/bin/sh", "-c", "echo $" + testdb.URLEnv + "; exit 7"}, &stdout, &stderr, nil)
	require.Equal(t, 7, code, "%s", &stderr)
	require.True(t, strings.HasPrefix(stdout.String(), "postgres://"), "%s", &stdout)

	_, err := pgx.Connect(t.Context(), strings.TrimSpace(stdout.String()))
	require.ErrorContains(t, err, "connection refused", "the server is stopped")
}

func TestSignalReachesTheWholeCommand(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	signals := make(chan os.Signal, 1)
	go func() {
		_, _ = reader.Read(make([]byte, 1)) // the inner shell runs
		signals <- syscall.SIGTERM
		_, _ = io.Copy(io.Discard, reader)
	}()
	code := run(t.Context(), []string{"/bin/sh", "-c", `/bin/sh -c 'echo ready; exec sleep 600'; exit 5`}, writer, io.Discard, signals)
	require.NoError(t, writer.Close())
	require.Equal(t, 128+int(syscall.SIGTERM), code)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), []string{"--"}, io.Discard, &stderr, nil))
	require.Contains(t, stderr.String(), "usage: withdb -- COMMAND")
	require.Equal(t, exitUnknown, run(t.Context(), []string{"/no/such/command"}, io.Discard, &stderr, nil))
	require.Contains(t, stderr.String(), "/no/such/command")
}
