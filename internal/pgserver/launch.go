package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/pgserver/child"
)

const (
	pollInterval  = 10 * time.Millisecond
	retryInterval = 100 * time.Millisecond
	logTailLines  = 15
)

// passing lists what the server's log says when a start fails for a reason that goes away: the port was taken between
// picking and binding it, or a killed predecessor on the same data directory is still on its way out.
func passing(log string) bool {
	for _, text := range []string{
		"could not create any TCP/IP sockets",
		`lock file "postmaster.pid" already exists`,
		"pre-existing shared memory block",
	} {
		if strings.Contains(log, text) {
			return true
		}
	}
	return false
}

// launch starts the server and waits for it, again with another free port while the reason of a failure is a passing
// one and ctx allows.
func (s *Server) launch(ctx context.Context, opts Options) error {
	for {
		s.port = opts.Port
		if s.port == 0 {
			port, err := freePort(ctx)
			if err != nil {
				return err
			}
			s.port = port
		}
		err := s.launchOnce(ctx, opts.Durable)
		var failure *startError
		if !errors.As(err, &failure) || !passing(failure.log) {
			return err
		}
		s.logger.InfoContext(ctx, "postgres start is tried again", "port", s.port, "error", failure.cause)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryInterval):
		}
	}
}

func (s *Server) launchOnce(ctx context.Context, durable bool) error {
	log, err := os.OpenFile(s.home.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the postgres log: %w", err)
	}
	defer func() { _ = log.Close() }() // the server has its own descriptor
	before, err := log.Seek(0, 2)
	if err != nil {
		return fmt.Errorf("open the postgres log: %w", err)
	}

	cmd := s.home.command(context.WithoutCancel(ctx), "postgres", s.arguments(durable)...)
	cmd.Stdout, cmd.Stderr = log, log
	// SIGQUIT is the immediate shutdown: it cannot hang, and the next start recovers from the write-ahead log.
	s.process, err = child.Start(cmd, syscall.SIGQUIT)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx); err != nil {
		// A slow start that is given up on must not stay behind.
		_ = s.process.Stop(syscall.SIGQUIT, fastShutdown)
		return &startError{cause: err, file: s.home.logFile(), log: readFrom(s.home.logFile(), before)}
	}
	return nil
}

func (s *Server) arguments(durable bool) []string {
	onOff := map[bool]string{true: "on", false: "off"}[durable]
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(s.port),
		"unix_socket_directories=" + s.home.socketDir(),
		"max_connections=300",
		"fsync=" + onOff,
		"full_page_writes=" + onOff,
		"synchronous_commit=" + onOff,
		"timezone=UTC",
		"log_timezone=UTC",
		"lc_messages=C",
		"jit=off", // compiling a plan costs more than running the short statements this serves
		"log_line_prefix=%m [%p] %q%a ",
		"logging_collector=off",
	}
	args := []string{"-D", s.home.data}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// awaitReady waits until the server answers over its private socket. The socket cannot belong to anybody else, unlike
// the port, and the server binds it after the port.
func (s *Server) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.process.Done():
			return fmt.Errorf("postgres ended at once: %w", s.process.Err())
		case <-ctx.Done():
			return fmt.Errorf("postgres did not answer in time: %w", ctx.Err())
		case <-ticker.C:
		}
		if conn, err := pgx.Connect(ctx, s.SocketDSN(superuser)); err == nil {
			return conn.Close(ctx)
		}
	}
}

// freePort asks the kernel for a loopback port that is free now. PostgreSQL cannot do that itself, so another program
// may take it in between: launch tries again.
func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("pick a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return 0, fmt.Errorf("pick a free port: %w", err)
	}
	return strconv.Atoi(port)
}

// startError is a failed start with the server's own words.
type startError struct {
	cause error
	file  string
	log   string
}

func (e *startError) Error() string {
	lines := strings.Split(strings.TrimSpace(e.log), "\n")
	if len(lines) > logTailLines {
		lines = lines[len(lines)-logTailLines:]
	}
	return fmt.Sprintf("start postgres: %v; the end of its log %s:\n\t%s", e.cause, e.file, strings.Join(lines, "\n\t"))
}

func (e *startError) Unwrap() error { return e.cause }

func readFrom(file string, offset int64) string {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil || int64(len(text)) < offset {
		return ""
	}
	return string(text[offset:])
}

// command prepares one of PostgreSQL's programs to run as the unprivileged account, away from the caller's
// environment: PG* variables, locale and working directory would change what it does.
func (h *home) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, program), args...) //nolint:gosec // a program we looked up
	cmd.Dir = h.run
	cmd.Env = []string{"PATH=" + h.bin + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	if path, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+path)
	}
	cmd.SysProcAttr = h.account.attributes()
	return cmd
}
