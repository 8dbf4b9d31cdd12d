// Command withdb runs a command with a PostgreSQL for tests around it:
//
//	go run ./internal/testdb/cmd/withdb -- go test ./...
//
// It starts a private server, migrates the template that package testdb clones, names the server to the command in
// HOLDFAST_TEST_DATABASE_URL, passes signals on, stops the server and exits with the command's status. A server that
// the variable names already is used instead. With HOLDFAST_KEEP_DB=1 the server stays up after a failure until it
// is interrupted, so that the databases of the failed tests can be looked at.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"holdfast/internal/pgserver"
	"holdfast/internal/pgserver/child"
	"holdfast/internal/testdb"
)

const (
	exitUsage   = 2
	exitUnknown = 3 // the command was not run, so nothing is known about it
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, signals))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, signals <-chan os.Signal) (code int) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		say(stderr, "usage: withdb -- COMMAND [ARGUMENT ...]")
		return exitUsage
	}
	adminURL, _ := os.LookupEnv(testdb.URLEnv)
	if adminURL == "" {
		server, err := pgserver.Start(ctx, pgserver.Options{})
		if err != nil {
			say(stderr, err)
			return exitUnknown
		}
		defer func() {
			if err := server.Stop(); err != nil {
				say(stderr, err)
				code = max(code, 1)
			}
		}()
		adminURL = server.URL()
	}
	if _, err := testdb.Template(ctx, adminURL); err != nil {
		say(stderr, err)
		return exitUnknown
	}
	code, err := runCommand(ctx, args, adminURL, stdout, stderr, signals)
	if err != nil {
		say(stderr, err)
		return exitUnknown
	}
	if keep, _ := os.LookupEnv(testdb.KeepEnv); keep == "1" && code != 0 {
		say(stderr, "databases of failed tests are kept; interrupt to stop the server at "+adminURL)
		<-signals
	}
	return code
}

// runCommand runs the command in a process group of its own and passes signals to all of it: `go test` alone would
// leave its test binaries behind.
func runCommand(ctx context.Context, args []string, adminURL string, stdout, stderr io.Writer, signals <-chan os.Signal) (int, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // running what it is told to is its purpose
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = append(os.Environ(), testdb.URLEnv+"="+adminURL)
	process, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return 0, err
	}
	for {
		select {
		case <-process.Done():
			return process.ExitCode(), nil
		case received := <-signals:
			number, ok := received.(syscall.Signal)
			if !ok {
				continue
			}
			if err := process.SignalGroup(number); err != nil {
				say(stderr, err)
			}
		}
	}
}

func say(to io.Writer, what any) { _, _ = fmt.Fprintln(to, "withdb:", what) }
