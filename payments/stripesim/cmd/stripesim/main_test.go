package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItServesUntilToldToStop(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, flags{Addr: "127.0.0.1:0", KeyRetention: time.Hour, LockWait: time.Second}, stdout)
	}()

	line, err := bufio.NewReader(reader).ReadString('\n')
	require.NoError(t, err)
	_, url, found := strings.Cut(strings.TrimSpace(line), "stripesim listens on ")
	require.True(t, found, line)

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/_sim/ledger", http.NoBody)
	require.NoError(t, err)
	res, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)

	stop()
	require.NoError(t, <-ended)
}

func TestOnlyLoopbackUnlessTold(t *testing.T) {
	t.Parallel()
	valid := flags{KeyRetention: time.Hour, LockWait: time.Second}
	for addr, allowed := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "example.com:1": false,
	} {
		f := valid
		f.Addr = addr
		require.Equal(t, allowed, checkLoopback(f) == nil, addr)
		f.AnyAddress = true
		require.NoError(t, checkLoopback(f), addr)
	}
	require.Error(t, checkLoopback(flags{Addr: "nonsense"}))
}
