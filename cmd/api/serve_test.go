package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
	"holdfast/internal/testdb"
)

const patience = 3 * time.Minute // no test waits for so long unless it fails

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// process is a running `api serve`.
type process struct {
	log      safeBuffer
	stop     context.CancelFunc
	done     chan int
	url, own string // the API's address and the one of its metrics
	http     *http.Client
}

func startServe(t *testing.T, databaseURL string, settings ...string) *process {
	t.Helper()
	p := &process{done: make(chan int, 1), own: "http://" + freeAddress(t), http: &http.Client{}}
	t.Cleanup(p.http.CloseIdleConnections)
	env := map[string]string{
		"DATABASE_URL": databaseURL, "HTTP_ADDR": "127.0.0.1:0", "METRICS_ADDR": strings.TrimPrefix(p.own, "http://"), "LOG_LEVEL": "debug",
	}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		env[name] = value
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	p.stop = cancel
	t.Cleanup(cancel)
	go func() {
		p.done <- program().Run(ctx, []string{"serve"}, func(name string) string { return env[name] }, cli.IO{Out: io.Discard, Err: &p.log})
	}()
	require.Eventually(t, func() bool { return p.find(t) }, patience, time.Millisecond)
	return p
}

// find reads the address from the log, which names it once.
func (p *process) find(t *testing.T) bool {
	t.Helper()
	for line := range strings.Lines(p.log.String()) {
		var entry struct {
			Msg      string `json:"msg"`
			HTTPAddr string `json:"http_addr"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
			p.url = "http://" + entry.HTTPAddr
		}
	}
	return p.url != ""
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func (p *process) get(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	return p.send(t, http.MethodGet, url, "", headers...)
}

func (p *process) send(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := p.http.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func (p *process) end(t *testing.T) int {
	t.Helper()
	p.stop()
	select {
	case code := <-p.done:
		return code
	case <-time.After(patience):
		require.Fail(t, "the process does not stop", p.log.String())
		return -1
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	var token createdToken
	run(t, db.URL, words("token create --client acme --scope bookings:read,bookings:write --json")).into(t, &token)
	var court resource
	run(t, db.URL, words("resource create --name Court --time-zone UTC --price 2500 --currency eur --json")).into(t, &court)

	p := startServe(t, db.URL)
	for _, url := range []string{p.url + "/readyz", p.url + "/healthz", p.own + "/readyz", p.own + "/healthz"} {
		status, body := p.get(t, url)
		require.Equal(t, http.StatusOK, status, "%s: %s", url, body)
	}
	bearer := "Authorization: Bearer " + token.Token
	status, body := p.send(t, http.MethodPost, p.url+"/v1/bookings", `{"resource_id":"`+court.ID.String()+`",
		"start":"2027-01-01T10:00:00Z","end":"2027-01-01T11:00:00Z","customer":{"name":"Ada","email":"ada@example.org"},"payment_method":"pm_card_visa"}`,
		bearer, "Content-Type: application/json", "Idempotency-Key: one")
	require.Equal(t, http.StatusCreated, status, body)
	var booking struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(body), &booking))
	status, body = p.get(t, p.url+"/v1/bookings/"+booking.ID, bearer)
	require.Equal(t, http.StatusOK, status, body)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/v1/bookings/"+booking.ID+"/stream", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token.Token)
	stream, err := p.http.Do(r)
	require.NoError(t, err)
	defer func() { _ = stream.Body.Close() }()
	begin := make([]byte, len("retry: "))
	_, err = io.ReadFull(stream.Body, begin)
	require.NoError(t, err)
	status, _ = p.get(t, p.url+"/wp-login.php")
	require.Equal(t, http.StatusNotFound, status)

	_, metrics := p.get(t, p.own+"/metrics")
	require.Contains(t, metrics, `holdfast_http_request_duration_seconds_count{route="POST /v1/bookings",status="201"} 1`)
	require.Contains(t, metrics, `holdfast_http_request_duration_seconds_count{route="none",status="404"} 1`)
	require.Contains(t, metrics, "holdfast_db_connections_max 20")
	status, _ = p.get(t, p.url+"/metrics")
	require.Equal(t, http.StatusNotFound, status, "metrics are on their own address")

	require.Equal(t, cli.ExitDone, p.end(t), "a stream holds it up no longer than a request")
	events, err := io.ReadAll(stream.Body)
	require.NoError(t, err)
	require.Contains(t, string(events), "id: 1\nevent: held\ndata: {")
	log := p.log.String()
	require.Equal(t, 1, strings.Count(log, `"listening"`))
	require.Contains(t, log, `"stopped"`)
	require.Contains(t, log, "STRIPE_API_KEY is not set")
	require.Contains(t, log, booking.ID)
	for _, secret := range []string{token.Token, "ada@example.org", "pm_card_visa"} {
		require.NotContains(t, log, secret)
	}
}

func TestServeIsNotReadyWithoutItsSchema(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	_, err := db.Pool.Exec(t.Context(), `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	require.NoError(t, err)
	p := startServe(t, db.URL)
	status, body := p.get(t, p.url+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, `"code":"not_ready"`)
	require.NotContains(t, body, "schema has version")
	status, body = p.get(t, p.own+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "The database cannot be used.\n", body)
	status, _ = p.get(t, p.url+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, cli.ExitDone, p.end(t))
	require.Contains(t, p.log.String(), "run: api migrate", "the log says what to do")
}

func TestServeStartsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	p := startServe(t, "postgres://u:sentinel@127.0.0.1:1/x")
	status, body := p.get(t, p.url+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	status, body = p.get(t, p.url+"/v1/resources", "Authorization: Bearer hf_"+strings.Repeat("A", 43))
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Contains(t, body, `"code":"busy"`)
	require.Equal(t, cli.ExitDone, p.end(t))
	require.NotContains(t, p.log.String(), "sentinel")
}

// The provider's key is not needed to serve, but one that is none is a wrong setting, and no part of it is told (G9).
func TestServeChecksTheProvidersKey(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{
		{"STRIPE_API_KEY=sentinel"},
		{"STRIPE_API_KEY=sk_test_sentinel", "STRIPE_API_BASE=sentinel"},
		{"STRIPE_API_KEY=sk_live_sentinel", "STRIPE_API_BASE=http://127.0.0.1:1"},
	} {
		r := run(t, "postgres://u@127.0.0.1:1/x", []string{"serve"}, append(env, "HTTP_ADDR=127.0.0.1:0")...)
		require.Equal(t, cli.ExitUsage, r.code)
		require.Regexp(t, "STRIPE_API|APIKey|BaseURL", r.err)
		require.NotContains(t, r.err, "sentinel")
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	for _, name := range []string{"HTTP_ADDR", "METRICS_ADDR"} {
		r := run(t, "postgres://u@127.0.0.1:1/x", []string{"serve"}, "HTTP_ADDR=127.0.0.1:0", name+"="+l.Addr().String())
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, name)
	}
}

// A broker that is away keeps nobody from starting or looking, and republishing is refused, not done by halves. The desk's settings are
// told of all at once.
func TestServeTheDesk(t *testing.T) {
	t.Parallel()
	db := testdb.New(t)
	p := startServe(t, db.URL, "NATS_URL=nats://127.0.0.1:1", "TWO_PERSON_ABOVE=eur=50000")
	made := run(t, db.URL, []string{"token", "create", "--client", "ada", "--scope", "operator", "--json"})
	require.Zero(t, made.code, made.err)
	var token struct {
		Token string `json:"token"`
	}
	require.NoError(t, json.Unmarshal([]byte(made.out), &token))
	bearer := "Authorization: Bearer " + token.Token
	status, body := p.get(t, p.url+"/v1/ops/overview", bearer)
	require.Equal(t, http.StatusOK, status, body)
	var event string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `
		WITH r AS (
			INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold)
			VALUES (gen_random_uuid(), 'Court 1', 'UTC', 1, 60, 2500, 'EUR', '10 minutes') RETURNING id
		)
		SELECT r.id::text FROM r`).Scan(&event))
	_, err := db.Pool.Exec(t.Context(), `
		SELECT accept_booking(gen_random_uuid(), '/v1/bookings', 'key', '\x00', 1::smallint, '24 hours', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
			gen_random_uuid(), $1::uuid, '2030-05-01T10:00Z', '2030-05-01T11:00Z', 1, NULL, NULL, 'Ada', 'ada@example.com', 'pm_card_visa', '{}')`, event)
	require.NoError(t, err)
	require.NoError(t, db.Pool.QueryRow(t.Context(), `
		UPDATE outbox SET status = 'done', finished_at = now(), stream = 'BOOKINGS', stream_sequence = 1, duplicate = false
		 WHERE kind = 'publish' RETURNING id::text`).Scan(&event))
	status, body = p.send(t, http.MethodPost, p.url+"/v1/ops/effects/"+event+"/republish", `{"reason":"the broker lost it"}`, bearer,
		"Content-Type: application/json", "Idempotency-Key: k")
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Contains(t, body, "broker_unreachable")
	var acts int
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM operator_actions`).Scan(&acts))
	require.Zero(t, acts)
	require.Zero(t, p.end(t))

	var errs bytes.Buffer
	wrong := map[string]string{"TWO_PERSON_ABOVE": "much", "REQUEST_LIFE": "soon", "SEND_BACKOFF": "-1s"}
	require.Equal(t, cli.ExitUsage, program().Run(t.Context(), []string{"serve"}, func(name string) string { return wrong[name] }, cli.IO{Out: io.Discard, Err: &errs}))
	for _, name := range []string{"DATABASE_URL", "TWO_PERSON_ABOVE", "REQUEST_LIFE", "SEND_BACKOFF"} {
		require.Contains(t, errs.String(), name)
	}
}
