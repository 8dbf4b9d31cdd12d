package stripe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments"
)

// TestBrokenExchangesAreUnknown: the request went out whole, and no whole answer came back (G4).
func TestBrokenExchangesAreUnknown(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer http.HandlerFunc
		status int
	}{
		"reset":  {func(rw http.ResponseWriter, _ *http.Request) { reset(rw) }, 0},
		"closed": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0},
		"half a body, then a reset": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", strconv.Itoa(len(wholeIntent)))
			_, _ = io.WriteString(rw, wholeIntent[:len(wholeIntent)/2])
			_ = http.NewResponseController(rw).Flush()
			reset(rw)
		}, 200},
		"no HTTP at all": {func(rw http.ResponseWriter, _ *http.Request) {
			conn := hijack(rw)
			_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH\r\n\r\n")
			_ = conn.Close()
		}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, tt.answer)
			out := gatewayTo(t, p.URL).Send(t.Context(), confirm())
			require.Equal(t, payments.Unknown, out.Class, out.Detail)
			require.Equal(t, tt.status, out.HTTPStatus)
			require.Len(t, p.requests(), 1)
		})
	}
}

// TestTimeOutIsUnknown, whether ours or the caller's, and whether before the head or in the middle of the body.
func TestTimeOutIsUnknown(t *testing.T) {
	t.Parallel()
	for _, head := range []bool{false, true} {
		for _, ours := range []bool{false, true} {
			t.Run(fmt.Sprintf("head %t, ours %t", head, ours), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
					if head {
						rw.Header().Set("Content-Length", "1000")
						rw.WriteHeader(http.StatusOK)
						_ = http.NewResponseController(rw).Flush()
					}
					if !ours {
						cancel()
					}
					<-r.Context().Done()
				})
				g := gatewayTo(t, p.URL)
				if ours {
					g = gatewayTo(t, p.URL, func(c *Config) { c.Timeout = time.Second })
				}
				out := g.Send(ctx, confirm())
				require.Equal(t, payments.Unknown, out.Class, out.Detail)
				require.Len(t, p.requests(), 1)
			})
		}
	}
}

// TestNothingWrittenIsNotExecuted: the only silence that proves something.
func TestNothingWrittenIsNotExecuted(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		out := gatewayTo(t, closed.URL).Send(t.Context(), confirm())
		require.Equal(t, payments.NotExecuted, out.Class)
		require.Equal(t, "no answer: connection refused; nothing was sent", out.Detail)
	})
	t.Run("no such host", func(t *testing.T) {
		t.Parallel()
		out := gatewayTo(t, "http://holdfast.invalid").Send(t.Context(), confirm())
		require.Equal(t, payments.NotExecuted, out.Class)
	})
	t.Run("the caller had left", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t, says(200, wholeIntent))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		out := gatewayTo(t, p.URL).Send(ctx, confirm())
		require.Equal(t, payments.NotExecuted, out.Class)
		require.Empty(t, p.requests())
	})
	t.Run("no handshake", func(t *testing.T) {
		t.Parallel()
		p := httptest.NewUnstartedServer(http.NotFoundHandler())
		p.Config.ErrorLog = log.New(io.Discard, "", 0)
		p.StartTLS()
		defer p.Close()
		out := gatewayTo(t, p.URL).Send(t.Context(), confirm()) // its certificate is nobody's
		require.Equal(t, payments.NotExecuted, out.Class, out.Detail)
	})
}

// TestDialTrap: a kept-alive connection dies under a request that was executed, net/http dials again to repeat it, and
// the only error left is the refused dial (G3, G4).
func TestDialTrap(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	executed := make(chan string, 1)
	var server sync.WaitGroup
	server.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		requests := bufio.NewReader(conn)
		if _, err := http.ReadRequest(requests); err != nil { // the read that warms the connection
			return
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(wholeIntent), wholeIntent)
		r, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		executed <- r.Method + " " + r.URL.Path
		_ = listener.Close()
		tcp, _ := conn.(*net.TCPConn)
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	})
	g := gatewayTo(t, "http://"+listener.Addr().String())
	_, err = g.Intent(t.Context(), intentID)
	require.NoError(t, err)

	out := g.Send(t.Context(), confirm())
	server.Wait()
	require.Equal(t, "POST /v1/payment_intents/pi_3Wire/confirm", <-executed)
	require.Equal(t, payments.Unknown, out.Class, out.Detail)
	require.Equal(t, "no answer: connection refused", out.Detail, "the dial error is all that is left")
}

// TestReplayByNetHTTP: on a reused connection that breaks, net/http sends the same bytes again; what is then answered is
// about the second send alone.
func TestReplayByNetHTTP(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		second http.HandlerFunc
		class  payments.Class
	}{
		"success":      {says(200, wholeIntent, "Idempotent-Replayed", "true"), payments.Executed},
		"rate limit":   {says(429, errorBody(invalidType+`, "code": "rate_limit"`)), payments.Unknown},
		"unauthorized": {says(401, errorBody(invalidType)), payments.Unknown},
		"forbidden":    {says(403, errorBody(invalidType)), payments.Unknown},
		"in use":       {says(409, errorBody(invalidType)), payments.Busy},
		"a stored 500": {says(500, errorBody(`"type": "api_error"`)), payments.Unknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					says(200, wholeIntent)(rw, r)
					return
				}
				first := false
				once.Do(func() { first = true })
				if first {
					reset(rw)
					return
				}
				tt.second(rw, r)
			})
			g := gatewayTo(t, p.URL)
			_, err := g.Intent(t.Context(), intentID)
			require.NoError(t, err)
			out := g.Send(t.Context(), confirm())
			require.Equal(t, tt.class, out.Class, out.Detail)
			require.Contains(t, out.Detail, "net/http sent it 2 times")

			sends := p.requests()[1:]
			require.Len(t, sends, 2)
			require.Equal(t, sends[0], sends[1], "the same bytes under the same key")
			require.Equal(t, intentKey, sends[0].header.Get("Idempotency-Key"))
		})
	}
}

// TestNotExecutedIsNeverWrong cancels sends at every moment of their lives, on fresh and on reused connections, and
// compares what is said with what the server got (G4).
func TestNotExecutedIsNeverWrong(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	arrived := map[string]bool{}
	p := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		arrived[r.Header.Get("Idempotency-Key")] = true
		mu.Unlock()
		says(200, wholeIntent)(rw, r)
	}))
	var notExecuted []string
	classes := map[payments.Class]int{}
	for _, keepAlive := range []bool{true, false} {
		g := gatewayTo(t, p.URL, func(c *Config) { c.HTTPTransport = &http.Transport{DisableKeepAlives: !keepAlive} })
		for i := range 1500 {
			call := confirm()
			call.Key = fmt.Sprintf("key-%t-%d", keepAlive, i)
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(600*time.Microsecond))
			out := g.Send(ctx, call)
			cancel()
			classes[out.Class]++
			if out.Class == payments.NotExecuted {
				notExecuted = append(notExecuted, call.Key)
			}
		}
	}
	p.Close() // waits for every handler
	for _, key := range notExecuted {
		require.False(t, arrived[key], "%s was said not to have been sent", key)
	}
	t.Log(classes)
}

// TestRedirectsAreNotFollowed: a 307 would send the same again, to another place, with the API key.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := newProvider(t, says(200, wholeIntent))
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says(status, wholeIntent, "Location", other.URL))
			g := gatewayTo(t, p.URL)
			out := g.Send(t.Context(), confirm())
			require.Equal(t, payments.Unknown, out.Class)
			_, err := g.Intent(t.Context(), intentID)
			require.Error(t, err)
			require.Empty(t, other.requests())
		})
	}
}

// TestHTTP1Only: what a trace proves was measured on HTTP/1.1, and a server that offers HTTP/2 does not change that.
func TestHTTP1Only(t *testing.T) {
	t.Parallel()
	p := &provider{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.remember(r)
		says(200, wholeIntent)(rw, r)
	}))
	p.EnableHTTP2 = true
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.StartTLS()
	t.Cleanup(p.Close)
	used, ok := p.Client().Transport.(*http.Transport) // one that speaks HTTP/2, and has
	require.True(t, ok)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL, nil)
	require.NoError(t, err)
	response, err := used.RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())

	g := gatewayTo(t, p.URL, func(c *Config) { c.HTTPTransport = used })
	require.Equal(t, payments.Executed, g.Send(t.Context(), confirm()).Class)
	_, err = g.Intent(t.Context(), intentID)
	require.NoError(t, err)
	sends := p.requests()
	require.Equal(t, []int{2, 1, 1}, []int{sends[0].major, sends[1].major, sends[2].major})
}
