package httpapi_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/testsize"
)

// More, by hand: go test -run TestGeneratedRequests ./internal/httpapi -args -requests 50000 -seed 7.
var (
	generatedRequests = flag.Int("requests", testsize.Of(800, 2000), "how many requests TestGeneratedRequests sends")
	generatedSeed     = flag.Uint64("seed", 1, "of the requests")
)

// Requests of every operation, made from the served document, right and wrong. Expected: no 5xx, no answer that the
// document does not tell of, no booking for a body that it does not allow, and one booking per key that was told of one.
func TestGeneratedRequests(t *testing.T) {
	t.Parallel()
	const senders = 4
	b := setup(t, func(c *httpapi.Config) { c.StreamLifetime = 10 * time.Millisecond })
	hall, err := b.bookings.CreateResource(t.Context(), domain.Resource{
		Name: "Hall", TimeZone: "UTC", Places: 50, UnitMinutes: 60, Price: domain.Money{Amount: 100, Currency: "EUR"}, Hold: time.Minute,
	})
	require.NoError(t, err)
	t.Logf("seed %d", *generatedSeed)
	tokens := []string{
		b.newToken(t, "generated", clients.BookingsRead, clients.BookingsWrite).Reveal(), b.newToken(t, "reader", clients.BookingsRead).Reveal(),
		b.newToken(t, "writer", clients.BookingsWrite).Reveal(), "hf_nobody",
	}
	held, err := b.bookings.Accept(t.Context(), domain.NewID[domain.ClientID](), "k", bookings.Request{
		ResourceID: hall.ID, Start: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2029, 1, 1, 1, 0, 0, 0, time.UTC),
		CustomerName: "Ada", CustomerEmail: "ada@example.org", PaymentMethod: "pm_card_visa",
	})
	require.NoError(t, err)
	desk := []string{uuid.NewString(), path.Base(held.Location)}
	for _, of := range []string{
		`UPDATE outbox SET status = 'parked', last_error = 'why' WHERE kind = 'charge' RETURNING id::text`,
		`UPDATE outbox SET status = 'done', finished_at = now(), stream = 'BOOKINGS', stream_sequence = 1, duplicate = false WHERE kind = 'publish' RETURNING id::text`,
	} {
		var id string
		require.NoError(t, b.db.Pool.QueryRow(t.Context(), of).Scan(&id))
		desk = append(desk, id)
	}
	b.exception(t)
	b.exception(t)
	var (
		mu     sync.Mutex
		seen   = map[string]int{}
		booked = map[string]bool{}
		all    sync.WaitGroup
	)
	for sender := range senders {
		g := &generator{
			rng: rand.New(rand.NewPCG(*generatedSeed, uint64(sender))), contract: theContract(t), operations: targets(theContract(t)),
			resources: []string{hall.ID.String(), b.resource.ID.String()}, tokens: tokens, desk: desk,
			operator: b.newToken(t, "ada", clients.Operator).Reveal(), finance: b.newToken(t, "bea", clients.Finance).Reveal(),
		}
		all.Go(func() {
			for i := sender; i < *generatedRequests && !t.Failed(); i += senders {
				m := g.request()
				a, judged := judge(t, b.api, g, m)
				mu.Lock()
				seen[judged]++
				if a.status == http.StatusCreated {
					booked[a.header.Get("Location")] = true
					g.bookings = append(g.bookings, strings.TrimPrefix(a.header.Get("Location"), "/v1/bookings/"))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	bookings := b.count(t, `SELECT count(*) FROM bookings`) - 1
	t.Logf("%d requests: %d bookings, %d answers of 201; by status and code: %v", *generatedRequests, bookings, len(booked), seen)
	require.Len(t, booked, bookings)
	require.Equal(t, bookings, b.count(t, `SELECT count(*) FROM idempotency_keys WHERE response_status = 201`)-1)
	for _, kind := range []string{
		"200", "201", "400 malformed_json", "400 idempotency_key_missing", "400 idempotency_key_malformed", "401 unauthenticated", "403 forbidden",
		"404 not_found", "404 resource_not_found", "405 method_not_allowed", "409 price_changed", "413 body_too_large", "415 unsupported_media_type",
		"422 validation_failed", "422 idempotency_key_reused",
	} {
		require.Positive(t, seen[kind], "never seen: %s", kind)
	}
}

// judge sends a generated request and says what it was answered.
func judge(t *testing.T, api http.Handler, g *generator, m made) (answer, string) {
	t.Helper()
	unescaped, err := url.PathUnescape(m.path)
	require.NoError(t, err)
	r := (&http.Request{
		Method: m.method, URL: &url.URL{Path: unescaped, RawPath: m.path, RawQuery: m.query}, Header: m.header, Host: "holdfast.example",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(m.body)), ContentLength: int64(len(m.body)),
	}).WithContext(t.Context())
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	a := answer{w.Code, w.Header(), w.Body.Bytes()}
	about := fmt.Sprintf("%s %s?%s %v\n%.2000q\n%d %s", m.method, m.path, m.query, m.header, m.body, a.status, a.body)
	if a.status >= http.StatusInternalServerError {
		t.Errorf("5xx: %s", about)
	}
	if err := g.contract.allows(m.method, m.path, a); err != nil {
		t.Errorf("not what the OpenAPI document says: %v\n%s", err, about)
	}
	if a.status == http.StatusCreated {
		var body any
		if err := json.Unmarshal([]byte(m.body), &body); err != nil {
			t.Errorf("booked without a document: %s", about)
		}
		if err := g.contract.document.Components.Schemas["BookingRequest"].Value.VisitJSON(body); err != nil && m.path == "/v1/bookings" {
			t.Errorf("booked what the document does not allow: %v\n%s", err, about)
		}
	}
	var p struct {
		Code string `json:"code"`
	}
	if a.status >= http.StatusBadRequest {
		_ = json.Unmarshal(a.body, &p) // HEAD has none
		return a, strings.TrimSpace(fmt.Sprint(a.status, " ", p.Code))
	}
	return a, fmt.Sprint(a.status)
}
