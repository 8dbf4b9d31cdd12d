package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Exit codes, the same for every command of every binary.
const (
	exitDone    = 0
	exitProblem = 1 // something needs a person
	exitUsage   = 2 // wrong use or configuration
	exitUnknown = 3 // could not tell: something is unreachable
)

// streams are where a command writes: results to out, everything else to err.
type streams struct{ out, err io.Writer }

// run is the whole program, without the process around it.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	io := streams{out: stdout, err: stderr}
	command, printed, err := parse(args, getenv, io)
	switch {
	case printed: // the help that was asked for
		return exitDone
	case err != nil:
		return report(io, err)
	}
	return report(io, command.Run(ctx, io))
}

// report prints every problem on a line of its own and returns the exit code that they mean.
func report(io streams, err error) int {
	if err == nil {
		return exitDone
	}
	var usage *usageError
	if errors.As(err, &usage) {
		for _, problem := range usage.problems {
			_, _ = fmt.Fprintln(io.err, "api: "+problem)
		}
		return exitUsage
	}
	_, _ = fmt.Fprintln(io.err, "api: "+err.Error())
	return exitCode(err)
}

func exitCode(err error) int {
	var invalid *domain.ValidationError
	switch {
	case errors.As(err, &invalid), errors.Is(err, domain.ErrNotFound):
		return exitUsage
	case errors.Is(err, domain.ErrBusy), errors.Is(err, context.Canceled), postgres.IsUnavailable(err), postgres.IsTransient(err):
		return exitUnknown
	default:
		return exitProblem
	}
}

// usageError is everything that is wrong with the arguments and the environment, at once.
type usageError struct{ problems []string }

func (e *usageError) Error() string {
	return fmt.Sprintf("%d problems with the configuration", len(e.problems))
}
