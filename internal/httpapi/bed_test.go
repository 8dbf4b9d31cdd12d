package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/finance"
	"holdfast/internal/httpapi"
	"holdfast/internal/operator"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/migrations"
	"holdfast/outbox"
	"holdfast/payments"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// bed is the API on a real database, behind real HTTP.
type bed struct {
	db       *testdb.DB
	clients  *clients.Service
	bookings *bookings.Service
	api      *httpapi.Server
	url      string
	http     *http.Client
	log      *safeBuffer
	resource domain.Resource // one place, 60 minutes, 25.00 EUR
	token    domain.Secret   // of the client "acme", who may read and write
}

type noWaker struct{}

func (noWaker) Wake(domain.EffectKind) {}

func config(db *testdb.DB) httpapi.Config {
	service := bookings.New(db.Pool, noWaker{}, bookings.Config{Budget: eternity})
	return httpapi.Config{
		RequestTimeout: eternity,
		Clients:        clients.New(db.Pool), Bookings: service, Catalogue: service,
		Inbox:  payments.NewInbox(db.Pool, verifier(), nil),
		Events: outbox.NewEvents(db.Pool), FollowInterval: 20 * time.Millisecond,
		Payments: payments.NewViewer(db.Pool), Desk: payments.NewDesk(service, noWaker{}, payments.CardLimits{}, slog.New(slog.DiscardHandler)),
		Operators: operator.New(db.Pool, service, nil, nil, operator.Config{}, slog.New(slog.DiscardHandler)),
		Finance:   finance.New(db.Pool, nil, finance.Config{}, slog.New(slog.DiscardHandler)),
		Ready: func(ctx context.Context) error {
			_, err := migrations.Current(ctx, db.Pool)
			return err
		},
		Transient: func(err error) bool { return postgres.IsTransient(err) || postgres.IsUnavailable(err) },
	}
}

// setup starts the API; change may replace parts of its configuration.
func setup(t *testing.T, change ...func(*httpapi.Config)) *bed {
	t.Helper()
	db := testdb.New(t)
	c := config(db)
	for _, f := range change {
		f(&c)
	}
	b := &bed{db: db, clients: clients.New(db.Pool), bookings: bookings.New(db.Pool, noWaker{}, bookings.Config{Budget: eternity}), log: &safeBuffer{}}
	var err error
	b.api, err = httpapi.New(c, slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	server := httptest.NewServer(b.api)
	t.Cleanup(server.Close)
	b.url, b.http = server.URL, watched(t, server.Client())
	b.resource, err = b.bookings.CreateResource(t.Context(), domain.Resource{
		Name: "Court 1", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60,
		Price: domain.Money{Amount: 2500, Currency: "EUR"}, Hold: 15 * time.Minute,
	})
	require.NoError(t, err)
	b.token = b.newToken(t, "acme", clients.BookingsRead, clients.BookingsWrite)
	return b
}

// setupOn starts another API on the database of b; change replaces parts of its configuration.
func setupOn(t *testing.T, b *bed, change func(*httpapi.Config)) *bed {
	t.Helper()
	c := config(b.db)
	change(&c)
	api, err := httpapi.New(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	other := *b
	other.api, other.url, other.http = api, server.URL, watched(t, server.Client())
	return &other
}

func (b *bed) newToken(t *testing.T, client string, scopes ...clients.Scope) domain.Secret {
	t.Helper()
	made, err := b.clients.Create(t.Context(), client, scopes, "", time.Hour)
	require.NoError(t, err)
	return made.Token
}

// body is a good booking request; change may spoil it.
func (b *bed) body(change ...func(m map[string]any)) string {
	m := map[string]any{
		"resource_id": b.resource.ID.String(), "start": "2027-05-01T10:00:00+02:00", "end": "2027-05-01T11:00:00+02:00",
		"customer": map[string]any{"name": "Ada Lovelace", "email": "ada@example.org"}, "payment_method": "pm_card_visa",
		"expected_total": map[string]any{"amount": 2500, "currency": "eur"}, "metadata": map[string]any{"order": "7"},
	}
	for _, f := range change {
		f(m)
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(text)
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// problem is what a problem document must hold, and nothing else.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Errors []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
	By string          `json:"by"`
	At *domain.Instant `json:"at"`
}

func (a answer) problem(t *testing.T) problem {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), "%s", a.body)
	var p problem
	strict(t, a.body, &p)
	require.Equal(t, a.status, p.Status)
	require.Equal(t, "urn:holdfast:problem:"+p.Code, p.Type)
	require.NotEmpty(t, p.Title)
	return p
}

// refused asserts a problem's code.
func (a answer) refused(t *testing.T, status int, code httpapi.Code) problem {
	t.Helper()
	p := a.problem(t)
	require.Equal(t, string(code), p.Code, "%s", a.body)
	require.Equal(t, status, a.status)
	return p
}

// send makes a request; header lines are "Name: value", and an empty one is left out.
func (b *bed) send(t *testing.T, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+path, body)
	require.NoError(t, err)
	for _, h := range headers {
		if name, value, ok := strings.Cut(h, ": "); ok {
			r.Header[name] = append(r.Header[name], value)
		}
	}
	resp, err := b.http.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header, text}
}

func (b *bed) bearer() string { return "Authorization: Bearer " + b.token.Reveal() }

// book posts a body under a key.
func (b *bed) book(t *testing.T, key, body string, headers ...string) answer {
	t.Helper()
	return b.send(t, http.MethodPost, "/v1/bookings", strings.NewReader(body),
		append([]string{b.bearer(), "Content-Type: application/json", "Idempotency-Key: " + key}, headers...)...)
}

// get reads a path as acme.
func (b *bed) get(t *testing.T, path string) answer {
	t.Helper()
	return b.send(t, http.MethodGet, path, nil, b.bearer())
}

// nothingWritten asserts that no request has left anything behind.
func (b *bed) nothingWritten(t *testing.T) {
	t.Helper()
	require.Zero(t, b.rows(t), "rows of idempotency_keys, bookings, outbox, payments, allocations and river_job")
}

func (b *bed) rows(t *testing.T) int {
	t.Helper()
	var n int
	require.NoError(t, b.db.Pool.QueryRow(context.WithoutCancel(t.Context()), `
		SELECT (SELECT count(*) FROM idempotency_keys) + (SELECT count(*) FROM bookings) + (SELECT count(*) FROM outbox)
		     + (SELECT count(*) FROM payments) + (SELECT count(*) FROM allocations) + (SELECT count(*) FROM river_job)`).Scan(&n))
	return n
}

func strict(t *testing.T, text []byte, v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(v), "%s", text)
	require.False(t, dec.More())
}

// safeBuffer is a log that a test may read while the server still writes to it.
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
