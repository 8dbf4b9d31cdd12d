package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
	"holdfast/internal/testdb"
)

// work runs `worker run` until ctx ends. No broker answers, which is no reason not to start.
func work(ctx context.Context, logs io.Writer, database, metrics string) int {
	env := map[string]string{
		"DATABASE_URL": database, "NATS_URL": "nats://127.0.0.1:1", "STRIPE_API_KEY": "sk_test_worker",
		"STRIPE_API_BASE": "http://127.0.0.1:1", "METRICS_ADDR": metrics, "WORKER_DEAD_AFTER": "5s",
	}
	return program().Run(ctx, []string{"run"}, func(name string) string { return env[name] }, cli.IO{Out: io.Discard, Err: logs})
}

// TestRunTellsWhyItCannotStart: what is wrong with the set-up is exit 2, a database that is away is exit 3, and each is
// told in one line without the password (G9).
func TestRunTellsWhyItCannotStart(t *testing.T) {
	t.Parallel()
	empty, good := testdb.New(t), testdb.New(t)
	_, err := empty.Pool.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	require.NoError(t, err)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, taken.Close()) })
	for name, test := range map[string]struct {
		database, metrics string
		code              int
		says              string
	}{
		"no schema":   {empty.URL, "", cli.ExitUsage, "worker: the database has no schema yet, or an older one; run: api migrate"},
		"unreachable": {"postgres://user:s3cret@127.0.0.1:1/none", "", cli.ExitUnknown, "worker: cannot reach the database at 127.0.0.1:1"},
		"in use":      {good.URL, taken.Addr().String(), cli.ExitUsage, "worker: listen for metrics on METRICS_ADDR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logs bytes.Buffer
			require.Equal(t, test.code, work(t.Context(), &logs, test.database, test.metrics), logs.String())
			lines := strings.Split(strings.TrimSpace(logs.String()), "\n")
			require.Contains(t, lines[len(lines)-1], test.says)
			require.NotContains(t, logs.String(), "s3cret")
		})
	}
}

// A wrong return URL is told with every other wrong setting, before a customer is sent there.
func TestRunChecksTheReturnURL(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://shop.example/paid": true, "http://localhost:3000/paid": true, "http://127.0.0.1/": true,
		"http://shop.example/paid": false, "shop.example/paid": false, "https://user:s3cret@shop.example": false, "javascript:alert(1)": false,
	} {
		var logs bytes.Buffer
		env := map[string]string{"RETURN_URL": address, "MAX_SENDS": "0"}
		code := program().Run(t.Context(), []string{"run"}, func(name string) string { return env[name] }, cli.IO{Out: io.Discard, Err: &logs})
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, logs.String(), "MAX_SENDS")
		require.Equal(t, !good, strings.Contains(logs.String(), "RETURN_URL"), address)
		require.NotContains(t, logs.String(), "s3cret")
	}
}

// TestRunShowsItsMetrics (G5): alarms rest on what the outbox tells of itself.
func TestRunShowsItsMetrics(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	address := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	var logs bytes.Buffer
	go func() { done <- work(ctx, &logs, db.URL, address) }()
	body := ""
	require.Eventually(t, func() bool {
		body = get(t, "http://"+address+"/metrics")
		return body != ""
	}, 3*time.Minute, 50*time.Millisecond)
	require.Contains(t, body, `holdfast_outbox_effects{kind="charge",status="in_doubt"} 0`)
	require.Contains(t, body, "holdfast_outbox_scrape_success 1")
	require.Equal(t, "ready\n", get(t, "http://"+address+"/readyz"))
	stop()
	require.Zero(t, <-done, "%s", &logs)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// get returns the body of an answer, or "" if there is none.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	request.Close = true // goleak
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}
