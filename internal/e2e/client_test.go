package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// customer is a client of the API.
type customer struct {
	url   string
	token string
	http  *http.Client
}

// customer makes a token for a new client and calls the API at an address with it.
func (b *bed) customer(name, address string) customer {
	b.Helper()
	return customer{url: "http://" + address, token: b.token(name), http: newHTTP(b.T)}
}

// newHTTP makes a client with a connection for each request: on a kept one that breaks, net/http sends a request that has
// an Idempotency-Key again by itself, which would hide what is tested.
func newHTTP(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

// wish is what a customer wants to book.
type wish struct {
	resource string
	hour     int    // the slot begins this many hours after the epoch of the tests
	hours    int    // 0 means 1
	method   string // empty means a card that pays
}

func (w wish) body() []byte {
	if w.hours == 0 {
		w.hours = 1
	}
	if w.method == "" {
		w.method = "pm_card_visa"
	}
	start := time.Date(2031, time.January, 6, 0, 0, 0, 0, time.UTC).Add(time.Duration(w.hour) * time.Hour)
	text, err := json.Marshal(map[string]any{
		"resource_id": w.resource, "start": start.Format(time.RFC3339),
		"end":      start.Add(time.Duration(w.hours) * time.Hour).Format(time.RFC3339),
		"customer": map[string]string{"name": "Ada Lovelace", "email": "ada@example.org"}, "payment_method": w.method,
	})
	if err != nil {
		panic(err)
	}
	return text
}

// answer is what came back.
type answer struct {
	status     int
	replayed   string
	location   string
	retryAfter string
	body       string
}

// booking is what the tests read of a booking or of a problem.
type booking struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Payment struct {
		Status string `json:"status"`
	} `json:"payment"`
}

func (a answer) booking(t *testing.T) booking {
	t.Helper()
	var b booking
	require.NoError(t, json.Unmarshal([]byte(a.body), &b), a.body)
	return b
}

// code is a problem's.
func (a answer) code() string {
	var p struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal([]byte(a.body), &p) // no problem, no code
	return p.Code
}

// try posts a booking. An error says that no answer came, or only a part of it.
func (c customer) try(ctx context.Context, key string, w wish) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/bookings", bytes.NewReader(w.body()))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	return c.do(request)
}

func (c customer) do(request *http.Request) (answer, error) {
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	h := response.Header
	return answer{response.StatusCode, h.Get("Idempotency-Replayed"), h.Get("Location"), h.Get("Retry-After"), string(body)}, err
}

// post posts a booking and expects an answer.
func (c customer) post(t *testing.T, key string, w wish) answer {
	t.Helper()
	a, err := c.try(t.Context(), key, w)
	require.NoError(t, err)
	return a
}

// book posts a booking that must be accepted, and returns its id.
func (c customer) book(t *testing.T, key string, w wish) string {
	t.Helper()
	a := c.post(t, key, w)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	return a.booking(t).ID
}

// insist posts until there is an answer that is final, as the API's documentation tells a client to: after a broken
// connection, a 5xx or a request that is still in progress, the same request is sent again.
func (c customer) insist(ctx context.Context, key string, w wish, within time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		a, err := c.try(ctx, key, w)
		if err == nil && a.status < http.StatusInternalServerError && a.code() != "request_in_progress" {
			return a, nil
		}
		retry := time.NewTimer(20 * time.Millisecond)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return a, fmt.Errorf("key %s has no final answer after %s (status %d): %w", key, within, a.status, err)
		}
	}
}

// get reads a booking.
func (c customer) get(t *testing.T, id string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/v1/bookings/"+id, http.NoBody)
	require.NoError(t, err)
	a, err := c.do(request)
	require.NoError(t, err)
	return a
}

// contextOf outlives the test's own context, which ends before its cleanups run.
func contextOf(t *testing.T) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}
