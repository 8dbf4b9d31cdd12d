package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"holdfast/internal/pgserver/child"
)

const (
	readyLimit   = time.Minute
	readyPoll    = 50 * time.Millisecond
	stopGrace    = 30 * time.Second
	logTailLines = 15
	logTailBytes = 16 << 10
)

// instance is one run of a service. *pgserver.Server is one too.
type instance interface {
	PID() int
	Done() <-chan struct{}
	Stop() error
}

// service is a process of the stack: how to start it and how to tell that it serves.
type service struct {
	name  string
	log   string // file with its output
	start func(ctx context.Context) (instance, error)
	ready func(ctx context.Context) error // nil: start returns only once it serves
}

// process is an instance of a program.
type process struct{ *child.Process }

// Stop asks the program to finish and kills it when it does not.
func (p process) Stop() error { return p.Process.Stop(syscall.SIGTERM, stopGrace) }

// program is a service that runs a program with its output in a log file.
func program(name, log string, env []string, ready func(context.Context) error, path string, args ...string) *service {
	start := func(ctx context.Context) (instance, error) {
		output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // a file of ours
		if err != nil {
			return nil, fmt.Errorf("log of %s: %w", name, err)
		}
		defer func() { _ = output.Close() }()                                 // the program has its own descriptor
		cmd := exec.CommandContext(context.WithoutCancel(ctx), path, args...) //nolint:gosec // a program of the stack
		cmd.Env, cmd.Stdout, cmd.Stderr = env, output, output
		started, err := child.Start(cmd, syscall.SIGKILL)
		if err != nil {
			return nil, err
		}
		return process{started}, nil
	}
	return &service{name: name, log: log, start: start, ready: ready}
}

// awaitReady waits until a started service serves, and fails when it ends instead.
func (s *service) awaitReady(ctx context.Context, started instance) error {
	if s.ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	var last error
	for {
		select {
		case <-started.Done():
			return fmt.Errorf("%s ended instead of becoming ready; the end of its log %s:\n%s", s.name, s.log, tail(s.log))
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready (%w: %w); the end of its log %s:\n%s",
				s.name, ctx.Err(), last, s.log, tail(s.log))
		case <-ticker.C:
		}
		if last = s.ready(ctx); last == nil {
			return nil
		}
	}
}

// answers is the readiness of an HTTP server: 200 at url.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}

// tail is the end of a log file, indented.
func tail(file string) string {
	text, err := os.ReadFile(file) //nolint:gosec // a file of ours
	if err != nil {
		return "\t(" + err.Error() + ")"
	}
	text = bytes.TrimSpace(text[max(0, len(text)-logTailBytes):])
	lines := strings.Split(string(text), "\n")
	lines = lines[max(0, len(lines)-logTailLines):]
	return "\t" + strings.Join(lines, "\n\t")
}
