package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// Exit statuses: see each command's help.
const (
	exitUnmet   = 1 // the demo's summary does not hold
	exitUsage   = 2
	exitUnknown = 3 // the stack did not start, or did not stay up

	exitInterrupted = 130 // before it was done, as a shell would say it
)

const sameInterrupt = 2 * time.Second

type commandLine struct {
	Up   upCommand   `cmd:"" help:"Start the stack and keep it up until interrupted."`
	Demo demoCommand `cmd:"" help:"Show a booking, a lost response, its resolution and a replay on a fresh stack."`
	NATS natsCommand `cmd:"" name:"nats" hidden:"" help:"Run NATS with JetStream, as a process of the stack."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A later interrupt ends this process at once, and with it all that it started. One that follows at once is the same
	// one again: a terminal, make and `go run` may each pass it on.
	context.AfterFunc(ctx, func() { time.AfterFunc(sameInterrupt, stop) })
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	var line commandLine
	parser, err := kong.New(&line, kong.Name("local"),
		kong.Description("Runs the whole of Holdfast on this machine's loopback."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(newPrinter(os.Stdout)))
	if err != nil {
		return complain(err, exitUsage)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return complain(err, exitUsage)
	}
	if err := command.Run(); err != nil {
		return complain(err, exitStatus(err))
	}
	return 0
}

func exitStatus(err error) int {
	var unmet *unmetError
	var wrong *usageError
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &unmet):
		return exitUnmet
	case errors.As(err, &wrong):
		return exitUsage
	default:
		return exitUnknown
	}
}

func complain(err error, code int) int {
	_, _ = fmt.Fprintln(os.Stderr, "local:", err)
	return code
}

// usageError is a wrong environment or command line: trying again does not help.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }
