package pgserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"holdfast/internal/pgserver/child"
)

const (
	superuser    = "postgres"
	startTimeout = time.Minute // covers crash recovery of a kept data directory
	fastShutdown = 20 * time.Second
)

// Options says what kind of server to start. The zero value is a throw-away server for tests.
type Options struct {
	// Dir keeps the data, the log and the password, and is reused when it already holds them. Empty means a
	// temporary directory that Stop removes, in memory (/dev/shm) unless Durable. Started as root, every directory above Dir must be open to other users
	// (o+x), since the server runs as another one.
	Dir string
	// Durable turns fsync on. Without it a crash of the machine loses the data, and everything is much faster.
	Durable bool
	// Port is the loopback port to listen on; 0 picks a free one.
	Port int
	// BinDir holds `postgres` and `initdb`. Empty means to look for them: see the package comment.
	BinDir string
	// Logger hears about starts, retries and stops. Nil means silence.
	Logger *slog.Logger
}

// Server is a running PostgreSQL.
type Server struct {
	home    *home
	port    int
	process *child.Process
	logger  *slog.Logger

	stop    sync.Once
	stopErr error
}

// Start initialises the data directory where there is none, starts the server and waits until it answers on both the
// socket and the loopback port. ctx limits the start alone; the server then runs until Stop. An error leaves nothing
// behind and quotes the end of the server's own log. ErrNotInstalled means that there are no binaries to run.
func Start(ctx context.Context, opts Options) (*Server, error) {
	logger := opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	bin, err := findBinaries(opts.BinDir)
	if err != nil {
		return nil, err
	}
	home, err := openHome(opts, bin)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	server := &Server{home: home, logger: logger}
	if err := home.initialise(ctx); err != nil {
		return nil, errors.Join(err, home.remove())
	}
	if err := server.launch(ctx, opts); err != nil {
		return nil, errors.Join(err, home.remove())
	}
	logger.InfoContext(ctx, "postgres started", "port", server.port, "pid", server.PID(), "data", home.data)
	return server, nil
}

// URL is the administrator's connection URL: database "postgres", superuser, over loopback TCP.
func (s *Server) URL() string { return s.DSN(superuser) }

// DSN is the superuser's connection URL for a database, over loopback TCP with the server's own random password.
func (s *Server) DSN(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.home.password),
		Host:     "127.0.0.1:" + strconv.Itoa(s.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// SocketDSN is the connection URL for a database over the private unix socket, which needs no password: only this
// user can reach it.
func (s *Server) SocketDSN(database string) string {
	query := url.Values{
		"host": {s.home.socketDir()}, "port": {strconv.Itoa(s.port)}, "user": {superuser}, "sslmode": {"disable"},
	}
	return "postgres:///" + url.PathEscape(database) + "?" + query.Encode()
}

// PID is the process id of the server's first process, the postmaster.
func (s *Server) PID() int { return s.process.PID() }

// Port is the loopback port.
func (s *Server) Port() int { return s.port }

// LogFile is where the server writes its log.
func (s *Server) LogFile() string { return s.home.logFile() }

// Done is closed when the server has ended, by Stop or by itself. A supervisor calls Stop even then, to clean up.
func (s *Server) Done() <-chan struct{} { return s.process.Done() }

// Wait blocks until the server has ended and says how: nil after an orderly shutdown.
func (s *Server) Wait() error { return s.process.Err() }

// Stop shuts the server down fast (open transactions are rolled back, clients are cut off), waits for its end and
// removes what was temporary. It may be called more than once. An error says that the server had to be killed or that
// a file could not be removed.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		err := s.process.Stop(syscall.SIGINT, fastShutdown)
		if removeErr := s.home.remove(); err == nil {
			err = removeErr
		}
		if err != nil {
			s.stopErr = fmt.Errorf("stop postgres: %w", err)
		}
		s.logger.Info("postgres stopped", "port", s.port)
	})
	return s.stopErr
}
