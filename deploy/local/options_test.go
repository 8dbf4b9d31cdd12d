package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := environment{"A=1", "B=", "A=2"}
	require.Equal(t, "2", env.get("A"), "the last one wins")
	require.Empty(t, env.get("C"))
	require.Equal(t, "2", env.withDefaults("A=3").get("A"), "a default changes nothing that is set")
	require.Equal(t, "3", env.withDefaults("B=3").get("B"), "empty is not set")
	require.Equal(t, "3", env.with("A=3").get("A"))
	require.Len(t, env, 3, "the original stays as it is")
}

func TestBrowsable(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80", ":80": "http://127.0.0.1:80", "0.0.0.0:80": "http://127.0.0.1:80", "[::1]:80": "http://[::1]:80",
	} {
		require.Equal(t, want, browsable(address))
	}
}

func TestTakenAddressIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", loopback+":0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	require.ErrorContains(t, checkFree(t.Context(), "HTTP_ADDR", listener.Addr().String()), "HTTP_ADDR="+listener.Addr().String())
}

func TestPortsAreDistinct(t *testing.T) {
	t.Parallel()
	p, err := pickPorts(t.Context())
	require.NoError(t, err)
	seen := map[int]bool{p.postgres: true, p.nats: true, p.stripe: true, p.api: true, p.apiMetrics: true, p.workerMetrics: true, p.reconcilerMetrics: true}
	require.Len(t, seen, 7)
}
