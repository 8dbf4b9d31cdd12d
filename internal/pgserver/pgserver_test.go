package pgserver_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/internal/pgserver"
)

func TestStart(t *testing.T) {
	t.Parallel()
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })

	for name, dsn := range map[string]string{
		"answers over loopback TCP": server.URL(),
		"answers over its socket":   server.SocketDSN("postgres"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, "1", query(t, dsn, "SELECT 1::text"))
		})
	}

	t.Run("has the settings that tests rely on", func(t *testing.T) {
		t.Parallel()
		for setting, want := range map[string]string{
			"fsync": "off", "max_connections": "300", "timezone": "UTC", "lc_messages": "C",
			"listen_addresses": "127.0.0.1", "server_encoding": "UTF8",
		} {
			require.Equal(t, want, query(t, server.URL(), "SELECT current_setting($1)", setting), setting)
		}
	})

	t.Run("lets nobody in without the password", func(t *testing.T) {
		t.Parallel()
		config, err := pgx.ParseConfig(server.URL())
		require.NoError(t, err)
		config.Password = "guess"
		_, err = pgx.ConnectConfig(t.Context(), config)
		require.ErrorContains(t, err, "password authentication failed")
	})
}

func TestStopLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	require.NoError(t, err)
	home := filepath.Dir(server.LogFile())
	require.DirExists(t, home)

	require.NoError(t, server.Stop())
	require.NoError(t, server.Stop(), "stopping twice is harmless")

	require.NoDirExists(t, home)
	require.ErrorIs(t, syscall.Kill(server.PID(), 0), syscall.ESRCH)
	require.NoError(t, server.Wait())
}

func TestKeptDirectoryIsReused(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	first, err := pgserver.Start(t.Context(), pgserver.Options{Dir: dir, Durable: true})
	require.NoError(t, err)
	require.Equal(t, "on", query(t, first.URL(), "SELECT current_setting('fsync')"))
	query(t, first.URL(), "CREATE TABLE kept AS SELECT 'still here' AS text")

	// As a crash would leave it.
	require.NoError(t, syscall.Kill(first.PID(), syscall.SIGKILL))
	<-first.Done()
	require.Error(t, first.Wait())
	require.NoError(t, first.Stop(), "a supervisor cleans up after a crash")

	second, err := pgserver.Start(t.Context(), pgserver.Options{Dir: dir, Durable: true, Port: first.Port()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Stop()) })
	require.Equal(t, first.URL(), second.URL(), "same port, same password")
	require.Equal(t, "still here", query(t, second.URL(), "SELECT text FROM kept"))
}

func TestStartFailureQuotesTheLog(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	server, err := pgserver.Start(t.Context(), pgserver.Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, server.Stop())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "postgresql.conf"), []byte("nonsense = 1\n"), 0o600))

	_, err = pgserver.Start(t.Context(), pgserver.Options{Dir: dir})
	require.ErrorContains(t, err, `unrecognized configuration parameter "nonsense"`)
}

func TestTakenPortIsTriedUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, text, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)

	logger, retried := loggerThatSees(t, "postgres start is tried again")
	go func() {
		<-retried
		_ = listener.Close()
	}()
	server, err := pgserver.Start(t.Context(), pgserver.Options{Port: port, Logger: logger})
	require.NoError(t, err)
	require.Equal(t, port, server.Port())
	require.NoError(t, server.Stop())
}

func TestMissingBinariesSayWhatToInstall(t *testing.T) {
	t.Parallel()
	_, err := pgserver.Start(t.Context(), pgserver.Options{BinDir: t.TempDir()})
	require.ErrorIs(t, err, pgserver.ErrNotInstalled)
	require.ErrorContains(t, err, "apt-get install postgresql")
}

func TestUnreachableDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	closed := t.TempDir()
	require.NoError(t, os.Chmod(closed, 0o700))
	server, err := pgserver.Start(t.Context(), pgserver.Options{Dir: filepath.Join(closed, "inner")})
	if os.Geteuid() != 0 { // nobody but root drops to another account: the directory's owner reaches it
		require.NoError(t, err)
		require.NoError(t, server.Stop())
		return
	}
	require.ErrorIs(t, err, pgserver.ErrUnreachable)
	require.ErrorContains(t, err, "chmod o+x")
}
