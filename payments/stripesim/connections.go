package stripesim

import (
	"net"
	"net/http"
	"sync"
)

// connections knows which connections have carried a request before, and how to reset one.
type connections struct {
	mu   sync.Mutex
	seen map[string]net.Addr // by remote address
}

func newConnections() *connections { return &connections{seen: map[string]net.Addr{}} }

// reused reports whether the request came on a kept-alive connection. The server puts one local address value per connection into
// the context; holding on to it keeps the allocator from giving its place to another connection that gets the same port later.
func (c *connections) reused(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier := c.seen[r.RemoteAddr]
	c.seen[r.RemoteAddr] = local
	return earlier == local // pointers
}

// reset ends the connection with a TCP reset. Where the connection cannot be taken over (HTTP/2, a recorder) the handler is aborted,
// which is the nearest thing.
func (c *connections) reset(rw http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // unsent data is dropped and RST is sent instead of FIN
	}
	_ = conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, r.RemoteAddr)
}
