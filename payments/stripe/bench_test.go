package stripe

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
)

// provider is a server that answers as it is told and remembers what it was sent.
type provider struct {
	*httptest.Server

	mu   sync.Mutex
	sent []sent
}

// sent is one request as it came over the wire.
type sent struct {
	method, path, query, body string
	header                    http.Header
	major                     int
}

func newProvider(t *testing.T, answer http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.remember(r)
		answer(rw, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) remember(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, sent{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Header.Clone(), r.ProtoMajor})
}

func (p *provider) requests() []sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]sent(nil), p.sent...)
}

// says answers every request alike. Headers come in pairs.
func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Request-Id", "req_first")
		for i := 0; i < len(headers); i += 2 {
			rw.Header().Set(headers[i], headers[i+1])
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}
}

// reset ends the connection with a TCP reset. A handler has no test to fail: it panics instead.
func reset(rw http.ResponseWriter) {
	conn := hijack(rw)
	tcp, ok := conn.(*net.TCPConn)
	if !ok || tcp.SetLinger(0) != nil || tcp.Close() != nil {
		panic("the connection cannot be reset")
	}
}

func hijack(rw http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		panic(err)
	}
	return conn
}

func gatewayTo(t *testing.T, url string, configure ...func(*Config)) *Gateway {
	t.Helper()
	c := Config{APIKey: "sk_test_wire", BaseURL: url}
	for _, f := range configure {
		f(&c)
	}
	g, err := New(c)
	require.NoError(t, err)
	return g
}

const (
	intentID    = "pi_3Wire"
	intentKey   = "hf:018f3b0e-1111-7000-8000-000000000001:confirm:1"
	wholeIntent = `{"id": "pi_3Wire", "object": "payment_intent", "status": "succeeded", "amount": 4200,
		"amount_received": 4200, "currency": "eur", "created": 1700000000, "livemode": false,
		"client_secret": "pi_3Wire_secret_SENTINELSECRET", "payment_method": "pm_1Wire",
		"metadata": {"booking_id": "b1", "payment_id": "p1"}}`
)

func confirm() payments.Call {
	return payments.Call{Operation: domain.OpConfirm, IntentID: intentID, Key: intentKey, Params: payments.Params{}}
}
