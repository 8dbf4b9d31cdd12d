package main

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
	"holdfast/internal/testdb"
)

func TestConsoleIsServed(t *testing.T) {
	t.Parallel()
	p := startServe(t, testdb.New(t).URL)
	resp, err := p.http.Get(p.url + "/console/")
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "/console/sign-in", resp.Request.URL.Path)
	require.Contains(t, string(text), "Your API token")
	p.stop()
	require.Equal(t, cli.ExitDone, <-p.done)
}

func TestConsoleSettings(t *testing.T) {
	t.Parallel()
	pages, err := (&consoling{Console: "off"}).build(nil, nil, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Nil(t, pages, "off: there are none")
	r := run(t, "postgres://127.0.0.1:1/x", words("serve"), "CONSOLE_REFRESH=10ms", "CONSOLE_SIGN_INS=0", "CONSOLE_IDLE=-1s", "OIDC_ISSUER=nowhere", "OIDC_CLIENT_ID=x")
	require.Equal(t, cli.ExitUsage, r.code)
	for _, problem := range []string{"CONSOLE_REFRESH", "CONSOLE_SIGN_INS", "CONSOLE_IDLE", "OIDC_ISSUER is not a URL", "set all or none"} {
		require.Contains(t, r.err, problem)
	}
	require.Equal(t, cli.ExitUsage, run(t, "postgres://127.0.0.1:1/x", words("serve --console maybe")).code)
}
