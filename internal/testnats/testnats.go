package testnats

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

const (
	readyLimit    = time.Minute // on a busy machine
	reconnectWait = 10 * time.Millisecond
	memoryLimit   = 64 << 20
	storeLimit    = 1 << 30
	loopback      = "127.0.0.1"
)

// Server is a NATS server with JetStream that belongs to one test.
type Server struct {
	t     testing.TB
	store string
	port  int // 0: no port, in-process connections only

	mu      sync.Mutex
	current *server.Server // nil while stopped
}

// New starts a server that only this process can reach, by Connect or Conn. It stops with the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, 0)
}

// NewListening starts a server that also listens on a free loopback port, for tests that run built binaries.
func NewListening(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, server.RANDOM_PORT)
}

func start(tb testing.TB, port int) *Server {
	tb.Helper()
	s := &Server{t: tb, store: tb.TempDir(), port: port}
	s.launch()
	tb.Cleanup(s.Stop)
	return s
}

// URL is the address of a listening server. It stays the same over Restart.
func (s *Server) URL() string {
	s.t.Helper()
	require.NotZero(s.t, s.port, "this NATS server listens on no port: use testnats.NewListening, or Connect")
	return "nats://" + net.JoinHostPort(loopback, strconv.Itoa(s.port))
}

// Connect returns a connection that is closed with the test and reconnects at once after a Restart.
func (s *Server) Connect(tb testing.TB, opts ...nats.Option) *nats.Conn {
	tb.Helper()
	conn, err := s.Conn(opts...)
	require.NoError(tb, err)
	tb.Cleanup(conn.Close)
	return conn
}

// Conn returns a connection that the caller closes. opts come after, and so override, the defaults.
func (s *Server) Conn(opts ...nats.Option) (*nats.Conn, error) {
	defaults := []nats.Option{
		nats.InProcessServer(s),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(0, 0),
	}
	return nats.Connect("", append(defaults, opts...)...)
}

// InProcessConn makes Server the thing that in-process clients dial, and so lets them find its successor after a
// Restart.
func (s *Server) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil, errors.New("this NATS server is stopped")
	}
	return s.current.InProcessConn()
}

// Stop ends the server as an outage would: clients are cut off and what is stored stays. Stopping twice is harmless.
func (s *Server) Stop() {
	s.mu.Lock()
	stopping := s.current
	s.current = nil
	s.mu.Unlock()
	if stopping != nil {
		stopping.Shutdown()
		stopping.WaitForShutdown()
	}
}

// Restart stops the server, if it runs, and starts it again on the same store and port.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.launch()
}

func (s *Server) launch() {
	s.t.Helper()
	started, err := server.NewServer(&server.Options{
		ServerName:         "testnats",
		DontListen:         s.port == 0,
		Host:               loopback,
		Port:               s.port,
		JetStream:          true,
		StoreDir:           s.store,
		JetStreamMaxMemory: memoryLimit,
		JetStreamMaxStore:  storeLimit,
		NoLog:              true,
		NoSigs:             true,
	})
	require.NoError(s.t, err)
	started.Start()
	if !started.ReadyForConnections(readyLimit) {
		started.Shutdown()
		require.FailNow(s.t, "the NATS server did not become ready", "port %d, store %s", s.port, s.store)
	}
	if address, ok := started.Addr().(*net.TCPAddr); ok && s.port != 0 {
		s.port = address.Port
	}
	s.mu.Lock()
	s.current = started
	s.mu.Unlock()
}
