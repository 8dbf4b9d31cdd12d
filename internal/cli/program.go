package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Exit codes, the same for every command of every binary.
const (
	ExitDone    = 0
	ExitProblem = 1 // found something that needs a person, or was refused
	ExitUsage   = 2 // wrong use or configuration
	ExitUnknown = 3 // could not tell: something is unreachable, or a listing incomplete
)

// IO is where a command reads answers and writes: results to Out, everything else to Err.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Colour   bool // Out is a terminal on which colours are welcome
}

// Command is a sub-command with its settings.
type Command interface {
	Run(ctx context.Context, io IO) error
}

// Program is a binary: its name, what it is for, and a kong struct of its sub-commands.
type Program struct {
	Name        string
	Description string
	Root        any
}

// ExitError ends a command with a code of its own. A nil Err prints nothing more.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap gives the reason.
func (e *ExitError) Unwrap() error { return e.Err }

// Main runs the program as the process's main and exits. The first SIGINT or SIGTERM cancels the command's context, so
// that it can end in order; a second one ends it at once.
func (p Program) Main() {
	if os.Getenv("COMP_LINE") != "" {
		os.Exit(p.Complete(IO{Out: os.Stdout, Err: os.Stderr}))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := p.Run(ctx, os.Args[1:], os.Getenv, IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Colour: colourful(os.Stdout, os.Getenv),
	})
	stop()
	os.Exit(code)
}

// Run is the whole program without the process around it. It returns the exit code.
func (p Program) Run(ctx context.Context, args []string, getenv func(string) string, io IO) int {
	command, printed, err := p.parse(args, getenv, io)
	switch {
	case printed: // the help that was asked for
		return ExitDone
	case err != nil:
		return p.report(io, err)
	}
	err = command.Run(ctx, io)
	var told *ExitError // the command says itself how to go on after the signal
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.As(err, &told) {
		err = &ExitError{Code: exitCode(err), Err: errInterrupted}
	}
	return p.report(io, err)
}

var errInterrupted = errors.New("interrupted: what it had not done by then is not done; run it again")

// report prints every problem on a line of its own and returns the exit code that they mean.
func (p Program) report(io IO, err error) int {
	if err == nil {
		return ExitDone
	}
	var usage *UsageError
	if errors.As(err, &usage) {
		for _, problem := range usage.Problems {
			_, _ = fmt.Fprintln(io.Err, p.Name+": "+problem)
		}
		return ExitUsage
	}
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Err != nil {
		_, _ = fmt.Fprintln(io.Err, p.Name+": "+printableLines(err.Error()))
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var exit *ExitError
	var invalid *domain.ValidationError
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &invalid), errors.Is(err, domain.ErrNotFound):
		return ExitUsage
	case errors.Is(err, domain.ErrBusy), errors.Is(err, context.Canceled), postgres.IsUnavailable(err), postgres.IsTransient(err):
		return ExitUnknown
	default:
		return ExitProblem
	}
}

// UsageError is everything that is wrong with the arguments and the environment, at once.
type UsageError struct{ Problems []string }

func (e *UsageError) Error() string {
	return fmt.Sprintf("%d problems with the configuration", len(e.Problems))
}
