package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// stackOptions says where a stack lives.
type stackOptions struct {
	root  string   // the checkout
	state string   // directory of everything that the stack writes
	bin   string   // directory of built binaries; "" builds them
	file  string   // where the description goes, and the environment beside it; "" keeps both to ourselves
	keep  bool     // database and stream outlive the stack
	extra []string // environment that the caller's does not override
}

func (o stackOptions) logs() string              { return filepath.Join(o.state, "logs") }
func (o stackOptions) log(name string) string    { return filepath.Join(o.logs(), name+".log") }
func (o stackOptions) postgresDir() string       { return filepath.Join(o.state, "postgres") }
func (o stackOptions) natsStore() string         { return filepath.Join(o.state, "nats") }
func (o stackOptions) binary(name string) string { return filepath.Join(o.bin, name) }
func (o stackOptions) envFile() string           { return filepath.Join(filepath.Dir(o.file), "env") }

// shown is a file as somebody in the checkout would write it.
func (o stackOptions) shown(file string) string {
	if relative, err := filepath.Rel(o.root, file); err == nil && filepath.IsLocal(relative) {
		return relative
	}
	return file
}

// prepare makes the directories, and removes what an earlier stack that was killed has left.
func (o stackOptions) prepare() error {
	if !o.keep {
		if err := o.removeData(); err != nil {
			return cannotWrite(o.state, err)
		}
	}
	for _, dir := range []string{o.logs(), o.natsStore()} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return cannotWrite(o.state, err)
		}
	}
	if err := o.removePublished(); err != nil {
		return cannotWrite(o.state, err)
	}
	return nil
}

// removePublished takes away what tells others of the stack.
func (o stackOptions) removePublished() error {
	if o.file == "" {
		return nil
	}
	var problems []error
	for _, file := range []string{o.file, o.envFile()} {
		if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func (o stackOptions) removeData() error {
	var problems []error
	for _, dir := range []string{o.postgresDir(), o.openPostgresDir(), o.natsStore()} {
		problems = append(problems, os.RemoveAll(dir))
	}
	return errors.Join(problems...)
}

// ports are the loopback ports of what the stack starts. They are picked once, so that a process that is started again
// is found where it was.
type ports struct {
	postgres, nats, stripe, api, apiMetrics, workerMetrics, reconcilerMetrics int
}

func pickPorts(ctx context.Context) (ports, error) {
	var p ports
	var held []net.Listener // all at once, so that no port is given out twice
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	for _, port := range []*int{
		&p.postgres, &p.nats, &p.stripe, &p.api, &p.apiMetrics, &p.workerMetrics, &p.reconcilerMetrics,
	} {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback+":0")
		if err != nil {
			return ports{}, fmt.Errorf("pick a free port: %w", err)
		}
		held = append(held, listener)
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return ports{}, fmt.Errorf("pick a free port: unexpected address %v", listener.Addr())
		}
		*port = address.Port
	}
	return p, nil
}

// checkFree says that an address that the caller gave cannot be had, which its would-be server can only say in its log.
func checkFree(ctx context.Context, variable, address string) error {
	if address == "" {
		return nil // a picked port
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return &usageError{reason: fmt.Sprintf("%s=%s: want HOST:PORT, such as %s:8080", variable, address, loopback)}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return &usageError{reason: fmt.Sprintf("%s=%s is in use: stop what uses it or choose another", variable, address)}
	case err != nil:
		return &usageError{reason: fmt.Sprintf("%s=%s cannot be listened on (%v): want HOST:PORT of this machine", variable, address, err)}
	}
	return listener.Close()
}

// cannotWrite says what to do about a directory of ours that is not to be written to.
func cannotWrite(dir string, err error) error {
	return &usageError{reason: fmt.Sprintf("%s cannot be written to (%v): make it writable for this user, or remove it", dir, err)}
}

// makeWritable makes a directory, and sees that files can be made in it.
func makeWritable(dir string) error {
	err := os.MkdirAll(dir, 0o755) //nolint:gosec // PostgreSQL passes through as another account
	if err != nil {
		return cannotWrite(dir, err)
	}
	probe, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return cannotWrite(dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func localAddress(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// browsable turns an address to listen on into a URL to call.
func browsable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "http://" + address
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = loopback
	}
	return "http://" + net.JoinHostPort(host, port)
}

// environment is a list of NAME=value in which later entries win.
type environment []string

func (e environment) get(name string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(e[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// with returns a copy with more entries.
func (e environment) with(entries ...string) environment {
	return append(append(environment{}, e...), entries...)
}

// withDefaults returns a copy in which entries fill in what is not set.
func (e environment) withDefaults(entries ...string) environment {
	filled := e.with()
	for _, entry := range entries {
		name, _, _ := strings.Cut(entry, "=")
		if e.get(name) == "" {
			filled = append(filled, entry)
		}
	}
	return filled
}
