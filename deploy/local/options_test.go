package main

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	require.EqualError(t, checkFree(t.Context(), "HTTP_ADDR", listener.Addr().String()),
		"HTTP_ADDR="+listener.Addr().String()+" is in use: stop what uses it or choose another")
}

func TestWrongAddressSaysWhatIsWanted(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkFree(t.Context(), "HTTP_ADDR", ""), "a picked port")
	for _, address := range []string{"rubbish", "127.0.0.1", "127.0.0.1:99999", "192.0.2.1:80"} {
		err := checkFree(t.Context(), "HTTP_ADDR", address)
		require.ErrorContains(t, err, "HTTP_ADDR="+address)
		require.ErrorContains(t, err, "want HOST:PORT")
		require.NotContains(t, err.Error(), "stop what uses it")
	}
}

// Both addresses are told at once, before anything is started or removed.
func TestWrongAddressesStartNothing(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	_, err := startStack(t.Context(), &printer{w: io.Discard}, stackOptions{
		root: state, state: state, bin: state, keep: true, extra: []string{"HTTP_ADDR=rubbish", "METRICS_ADDR=rubble"},
	})
	require.ErrorContains(t, err, "HTTP_ADDR=rubbish")
	require.ErrorContains(t, err, "METRICS_ADDR=rubble")
	require.Equal(t, exitUsage, exitStatus(err))
	left, err := os.ReadDir(state)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestStateThatCannotBeWrittenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), stateDir)
	require.NoError(t, os.WriteFile(state, nil, 0o600))
	_, err := lockState(state) // a file in its place: what its permissions refuse, root may do all the same
	require.ErrorContains(t, err, state+" cannot be written to (")
	require.ErrorContains(t, err, "make it writable for this user, or remove it")
	require.Equal(t, exitUsage, exitStatus(err))
	if os.Getuid() == 0 {
		return
	}
	require.NoError(t, os.Remove(state))
	require.NoError(t, os.Mkdir(state, 0o555))
	_, err = lockState(state)
	require.ErrorContains(t, err, "make it writable for this user, or remove it")
}

func TestExitStatuses(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{
		exitUnmet: &unmetError{broken: 1}, exitUsage: &usageError{reason: "x"}, exitUnknown: io.ErrUnexpectedEOF, exitInterrupted: errInterrupted,
	} {
		require.Equal(t, want, exitStatus(errors.Join(err, nil)))
	}
}

func TestEnvironmentOfAShell(t *testing.T) {
	t.Parallel()
	file, bin := filepath.Join(t.TempDir(), "env"), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "worker"), []byte("#!/bin/sh\necho \"$DATABASE_URL\"\n"), 0o700))
	odd := `postgres://u:it's "$HOME" \x` + "`@h/d"
	require.NoError(t, writeEnvironment(file, environment{"DATABASE_URL=" + odd, "NATS_URL=n", "STRIPE_API_BASE=b", "STRIPE_API_KEY=k", "TWO_PERSON_ABOVE=eur=100"}, bin))
	output, err := exec.CommandContext(t.Context(), "sh", "-c",
		`. "$0" && worker && echo "$NATS_URL $STRIPE_API_BASE $STRIPE_API_KEY $TWO_PERSON_ABOVE ${REQUEST_LIFE-unset}"`, file).Output()
	require.NoError(t, err)
	require.Equal(t, odd+"\nn b k eur=100 unset\n", string(output))
}

// The compiler is silent for minutes where nothing is built yet.
func TestFirstBuildSaysThatItTakesLong(t *testing.T) {
	tools := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte("#!/bin/sh\n"), 0o700))
	t.Setenv("PATH", tools)
	var said strings.Builder
	opts := stackOptions{root: t.TempDir()}
	require.NoError(t, build(t.Context(), &printer{w: &said}, &opts))
	require.Contains(t, said.String(), "the first time takes a few minutes")
	require.NoError(t, os.WriteFile(opts.binary("api"), nil, 0o600))
	said.Reset()
	again := stackOptions{root: opts.root}
	require.NoError(t, build(t.Context(), &printer{w: &said}, &again))
	require.Contains(t, said.String(), "building the binaries")
	require.NotContains(t, said.String(), "minutes")
}

func TestPortsAreDistinct(t *testing.T) {
	t.Parallel()
	p, err := pickPorts(t.Context())
	require.NoError(t, err)
	seen := map[int]bool{p.postgres: true, p.nats: true, p.stripe: true, p.api: true, p.apiMetrics: true, p.workerMetrics: true, p.reconcilerMetrics: true}
	require.Len(t, seen, 7)
}
