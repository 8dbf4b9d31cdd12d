package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain lets the test binary play every program of the stack: itself as NATS, a stack that is to be killed, and,
// under their names, the binaries that the stack runs.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	switch _, known := programs()[name]; {
	case known:
		os.Exit(playBinary(name, os.Args[1:]))
	case len(os.Args) > 1 && os.Args[1] == "nats":
		main()
	case len(os.Args) > 1 && os.Args[1] == "stack":
		os.Exit(playStack(os.Args[2], os.Args[3]))
	}
	// The stack would use what these name instead of starting it.
	for _, name := range []string{"DATABASE_URL", "NATS_URL", "STRIPE_API_BASE", "STRIPE_API_KEY", "HTTP_ADDR", "METRICS_ADDR"} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// playBinary is a stand-in for a binary: its commands print what the stack reads, its servers are always ready.
func playBinary(name string, args []string) int {
	if len(args) > 1 && args[1] == "create" {
		answer := map[string]any{"id": "id-of-" + args[3], "name": args[3], "token": "token-of-" + args[3]}
		if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
			return 1
		}
		return 0
	}
	if len(args) > 0 && args[0] == "migrate" {
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var addresses []string
	switch name {
	case "stripesim":
		addresses = []string{os.Getenv("STRIPESIM_ADDR")}
	case "api":
		addresses = []string{os.Getenv("HTTP_ADDR"), os.Getenv("METRICS_ADDR")}
	default:
		addresses = []string{os.Getenv("METRICS_ADDR")}
	}
	for _, address := range addresses {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			fmt.Fprintln(os.Stderr, "fake:", err)
			return 2
		}
		go func() { _ = (&http.Server{ReadHeaderTimeout: time.Second}).Serve(listener) }()
	}
	http.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	<-ctx.Done()
	return 0
}

// playStack keeps a stack up until it is killed.
func playStack(state, bin string) int {
	opts := stackOptions{root: state, state: state, bin: bin, file: filepath.Join(state, "stack.json")}
	if _, err := startStack(context.Background(), newPrinter(os.Stderr), opts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

// fakeBinaries is a directory in which every program is the test binary.
func fakeBinaries(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for name := range programs() {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	return dir
}

// openDir is a temporary directory that PostgreSQL's account may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "local-test-") //nolint:usetesting // t.TempDir's parent is closed to other accounts
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// gone reports the end of a process. An orphan that nobody waits for (a container without an init) stays a zombie.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
