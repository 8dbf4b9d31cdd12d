package e2e_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and a server and can sever their connection just before the client would receive what
// the server has answered.
type proxy struct {
	address string
	target  string
	sever   func(reply []byte) bool

	mu      sync.Mutex
	severed int
}

// newProxy puts a proxy before target. sever sees each piece of what the server sends; where it returns true, the piece
// is dropped and the client's connection is reset.
func newProxy(t *testing.T, target string, sever func(reply []byte) bool) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{address: listener.Addr().String(), target: target, sever: sever}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		group.Wait()
	})
	return p
}

// cuts tells how many connections were severed.
func (p *proxy) cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.severed
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = io.Copy(server, client) // ends with either connection
		_ = server.Close()
	})
	p.answer(client, server)
	_ = client.Close()
	_ = server.Close()
	group.Wait()
}

// answer copies what the server sends until it is to be withheld.
func (p *proxy) answer(client, server net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if n > 0 && p.sever(buffer[:n]) {
			p.mu.Lock()
			p.severed++
			p.mu.Unlock()
			if tcp, ok := client.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // a reset, not an orderly end
			}
			return
		}
		if _, writeErr := client.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// through is a database's URL by way of another address.
func through(t *testing.T, databaseURL, address string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	u.Host = address
	return u.String()
}

// hostOf is where a URL leads.
func hostOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	return u.Host
}
