package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/httpapi"
	"holdfast/outbox"
	"holdfast/payments"
)

const patience = eternity // for what should happen at once

// served is an API on a listener of its own.
type served struct {
	api     *httpapi.Server
	address string
	stop    context.CancelFunc
	done    chan error
	log     *safeBuffer
}

func serve(t *testing.T, f fakes, change func(*httpapi.Config)) *served {
	t.Helper()
	c := f.config()
	change(&c)
	s := &served{log: &safeBuffer{}, done: make(chan error, 1)}
	var err error
	s.api, err = httpapi.New(c, slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s.stop = cancel
	t.Cleanup(cancel)
	go func() { s.done <- s.api.Serve(ctx, listener) }()
	return s
}

// dial opens a connection and writes the beginning of a request.
func (s *served) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return conn
}

func (s *served) end(t *testing.T) error {
	t.Helper()
	s.stop()
	select {
	case err := <-s.done:
		return err
	case <-time.After(patience):
		require.Fail(t, "the server does not stop")
		return nil
	}
}

func post(body string, length int) string {
	return "POST /v1/bookings HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hf_x\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n" +
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", length, body)
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	s := serve(t, fakes{}, func(c *httpapi.Config) { c.ReadHeaderTimeout = 50 * time.Millisecond })
	conn := s.dial(t, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	_, err := io.ReadAll(conn)
	if !errors.Is(err, syscall.ECONNRESET) { // as a close looks to what arrives after it, on a busy machine
		require.NoError(t, err, "the server has closed the connection")
	}
	require.NoError(t, s.end(t))
}

func TestSlowBodiesAreCutOff(t *testing.T) {
	t.Parallel()
	s := serve(t, fakes{}, func(c *httpapi.Config) { c.ReadTimeout = 50 * time.Millisecond })
	conn := s.dial(t, post("{", 100))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `"code":"request_timeout"`)
	require.True(t, resp.Close)
	require.NoError(t, s.end(t))
}

func TestBodyThatEndsEarlyIsMalformed(t *testing.T) {
	t.Parallel()
	s := serve(t, fakes{}, func(*httpapi.Config) {})
	conn := s.dial(t, post("{", 100))
	half, ok := conn.(*net.TCPConn)
	require.True(t, ok)
	require.NoError(t, half.CloseWrite())
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(text), `"code":"malformed_json"`)
	require.NoError(t, s.end(t))
}

func TestHostileHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, fakes{}, func(*httpapi.Config) {})
	for name, c := range map[string]struct{ request, status string }{
		"huge header":      {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 40_000) + "\r\n\r\n", "431"},
		"many headers":     {"GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: a\r\n", 10_000) + "\r\n", "431"},
		"huge path":        {"GET /" + strings.Repeat("a", 40_000) + " HTTP/1.1\r\nHost: x\r\n\r\n", "431"},
		"no host":          {"GET /healthz HTTP/1.1\r\n\r\n", "400"},
		"two lengths":      {"POST /v1/bookings HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"},
		"negative length":  {"POST /v1/bookings HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
		"unknown encoding": {"POST /v1/bookings HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"},
		"header with NUL":  {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", "400"},
		"folded header":    {"GET /healthz HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\n b\r\n\r\n", ""},
		"space in name":    {"GET /healthz HTTP/1.1\r\nHost: x\r\nIdempotency-Key : a\r\n\r\n", "400"},
		"not HTTP":         {"\x16\x03\x01\x02\x00\x01\r\n\r\n", "400"},
		"odd request id":   {"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: forged\r\nConnection: close\r\n\r\n", "200"},
		"odd forwarding":   {"GET /v1/bookings/x HTTP/1.1\r\nHost: x\r\nX-Original-Url: /healthz\r\nX-Http-Method-Override: DELETE\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n", "404"},
		"asterisk":         {"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200"},
		"connect":          {"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n", "404"},
		"absolute form":    {"GET http://example.org/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "200"},
	} {
		conn := s.dial(t, "")
		_, _ = io.WriteString(conn, c.request) // the server may hang up in the middle
		line, _ := bufio.NewReader(conn).ReadString('\n')
		require.Contains(t, line, c.status, name)
		require.NotContains(t, line, "500", name)
	}
	require.NoError(t, s.end(t))
	require.NotContains(t, s.log.String(), "forged")
}

// A client that leaves is nobody's page: its request is no 503, of which a hundredth wakes somebody up.
func TestClientsThatLeaveAreNotOurFault(t *testing.T) {
	t.Parallel()
	arrived, seen := make(chan struct{}, 1), make(chan int, 1)
	held := domain.Booking{ID: domain.NewID[domain.BookingID](), Status: domain.BookingHeld, EventSeq: 1}
	for name, path := range map[string]string{"at once": "GET /v1/resources", "while they wait": "GET /v1/bookings/" + held.ID.String()} {
		s := serve(t, fakes{
			view: func(context.Context, domain.BookingID) (payments.View, error) {
				arrived <- struct{}{}
				return payments.View{Booking: held}, nil
			},
			resources: func(ctx context.Context) ([]domain.Resource, error) {
				arrived <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			},
			events: func(int64) []outbox.Happened { return nil },
		}, func(c *httpapi.Config) {
			c.RequestTimeout = eternity
			c.Observe = func(_ string, status int, _ time.Duration) { seen <- status }
		})
		conn := s.dial(t, path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hf_x\r\nPrefer: wait=10\r\n\r\n")
		<-arrived
		require.NoError(t, conn.Close())
		require.Equal(t, 499, <-seen, name)
		require.NoError(t, s.end(t))
		require.Contains(t, s.log.String(), `"level":"INFO","msg":"request"`, name)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	arrived, carryOn := make(chan struct{}), make(chan struct{})
	s := serve(t, fakes{accept: func(ctx context.Context, _ bookings.Request) (bookings.Response, error) {
		close(arrived)
		<-carryOn
		return created(), ctx.Err()
	}}, func(*httpapi.Config) {})
	body := (&bed{}).body()
	conn := s.dial(t, post(body, len(body)))
	<-arrived
	require.NoError(t, s.api.Ready(t.Context()))
	s.stop()
	require.Eventually(t, func() bool { return s.api.Ready(t.Context()) != nil }, patience, time.Millisecond, "/readyz says no first")
	require.Eventually(t, func() bool {
		late, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address)
		if err == nil {
			_ = late.Close()
		}
		return err != nil
	}, patience, time.Millisecond, "no new connection is taken")
	close(carryOn)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "201", "what was in flight has finished, its context alive")
	require.NoError(t, s.end(t))
}

func TestReadinessIsServedWhileDraining(t *testing.T) {
	t.Parallel()
	s := serve(t, fakes{}, func(c *httpapi.Config) { c.DrainDelay = 5 * time.Second })
	client := &http.Client{}
	defer client.CloseIdleConnections()
	status := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+"/readyz", nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, status())
	s.stop()
	require.Eventually(t, func() bool { return status() == http.StatusServiceUnavailable }, patience, time.Millisecond)
	require.NoError(t, s.end(t))
}

func TestDrainHasADeadline(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	s := serve(t, fakes{accept: func(ctx context.Context, _ bookings.Request) (bookings.Response, error) {
		close(arrived)
		<-ctx.Done() // cut off with the connection
		return bookings.Response{}, ctx.Err()
	}}, func(c *httpapi.Config) { c.DrainTimeout = 50 * time.Millisecond })
	body := (&bed{}).body()
	s.dial(t, post(body, len(body)))
	<-arrived
	require.ErrorIs(t, s.end(t), httpapi.ErrDrainTimeout)
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), `"msg":"request"`) }, patience, time.Millisecond)
}

func TestListenerThatBreaksIsAnError(t *testing.T) {
	t.Parallel()
	c := fakes{}.config()
	api, err := httpapi.New(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.Error(t, api.Serve(t.Context(), listener))
}
