package testnats

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Wire is a proxy before a listening server that can lose what the server says.
type Wire struct {
	URL string // of the server, by way of the proxy

	target string
	mu     sync.Mutex
	muted  bool
	ended  bool
	open   map[net.Conn]struct{}
}

// NewWire puts a wire before a listening server, for as long as the test runs. Everything passes until Mute.
func NewWire(tb testing.TB, server *Server) *Wire {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", net.JoinHostPort(loopback, "0"))
	require.NoError(tb, err)
	w := &Wire{
		URL:    "nats://" + listener.Addr().String(),
		target: strings.TrimPrefix(server.URL(), "nats://"),
		open:   make(map[net.Conn]struct{}),
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { w.serve(client) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		w.mu.Lock()
		w.ended = true
		w.cut()
		w.mu.Unlock()
		group.Wait()
	})
	return w
}

// Mute loses all that the server says from now on: what clients send arrives and is acted on, and they never hear of it.
func (w *Wire) Mute() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muted = true
}

// Unmute ends it. It cuts the connections, in whose middle something is missing now; clients reconnect.
func (w *Wire) Unmute() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muted = false
	w.cut()
}

func (w *Wire) cut() {
	for conn := range w.open {
		_ = conn.Close()
	}
}

// keep makes a connection one that cut ends. It returns false if the wire has ended.
func (w *Wire) keep(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.open[conn] = struct{}{}
	}
	return !w.ended
}

func (w *Wire) drop(conn net.Conn) {
	w.mu.Lock()
	delete(w.open, conn)
	w.mu.Unlock()
	_ = conn.Close()
}

func (w *Wire) serve(client net.Conn) {
	defer w.drop(client)
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", w.target)
	if err != nil {
		return // the server is stopped; the client tries again
	}
	defer w.drop(server)
	if !w.keep(client) || !w.keep(server) {
		return
	}
	var group sync.WaitGroup
	group.Go(func() {
		defer func() { _ = server.Close() }()
		pass(client, func(out []byte) error { _, err := server.Write(out); return err })
	})
	pass(server, func(out []byte) error { return w.say(client, out) })
	_ = client.Close()
	group.Wait()
}

// say writes what the server said, or loses it. The lock makes Mute and Unmute take effect between two writes.
func (w *Wire) say(client net.Conn, out []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.muted {
		return nil
	}
	_, err := client.Write(out)
	return err
}

// pass reads from a connection, and hands on what comes, until either side ends.
func pass(from net.Conn, write func([]byte) error) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 && write(buffer[:n]) != nil {
			return
		}
		if err != nil {
			return
		}
	}
}
