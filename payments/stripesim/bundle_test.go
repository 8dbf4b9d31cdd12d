package stripesim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// testBundle is one simulator on its own port, and a client that never retries and never reuses a connection. All that passes
// between the two is held against Stripe's own description.
type testBundle struct {
	*stripesim.Server
	client *http.Client
}

func setup(t *testing.T, configure ...func(*stripesim.Config)) *testBundle {
	t.Helper()
	cfg := stripesim.Config{LockWait: 50 * time.Millisecond}
	for _, f := range configure {
		f(&cfg)
	}
	server, err := stripesim.Start(t.Context(), "127.0.0.1:0", cfg)
	require.NoError(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		transport.CloseIdleConnections()
	})
	b := &testBundle{Server: server}
	b.client = &http.Client{Transport: b.inspect(t, transport)}
	return b
}

// response is an answer taken apart.
type response struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
	err    error // of the transport, or of the body's JSON
}

func (r response) errorField(name string) any {
	fields, _ := r.body["error"].(map[string]any)
	return fields[name]
}

func (r response) id() string {
	id, _ := r.body["id"].(string)
	return id
}

// send makes one request; key "" sends none.
func (b *testBundle) send(ctx context.Context, method, path, key, form string) response {
	req, err := http.NewRequestWithContext(ctx, method, b.URL+path, strings.NewReader(form))
	if err != nil {
		return response{err: err}
	}
	req.Header.Set("Authorization", "Bearer sk_test_simulator")
	req.Header.Set("Stripe-Version", "2023-10-16")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return b.do(req)
}

func (b *testBundle) do(req *http.Request) response {
	res, err := b.client.Do(req)
	if err != nil {
		return response{err: err}
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	r := response{status: res.StatusCode, header: res.Header, raw: string(raw), err: err}
	if err == nil {
		r.err = json.Unmarshal(raw, &r.body)
	}
	return r
}

// request is for a client that speaks with an API key of its own.
func (b *testBundle) request(t *testing.T, apiKey, method, path, key, form string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.URL+path, strings.NewReader(form))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+apiKey)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", key)
	return req
}

func (b *testBundle) as(t *testing.T, apiKey, method, path, key, form string) response {
	t.Helper()
	return b.do(b.request(t, apiKey, method, path, key, form))
}

func (b *testBundle) post(t *testing.T, path, key, form string) response {
	t.Helper()
	return b.send(t.Context(), http.MethodPost, path, key, form)
}

func (b *testBundle) get(t *testing.T, path string) response {
	t.Helper()
	return b.send(t.Context(), http.MethodGet, path, "", "")
}

const cardIntent = "amount=2000&currency=eur&payment_method_types[]=card&capture_method=automatic&metadata[booking_id]=b1"

// create makes an intent with a payment method ("" for none) and returns its id.
func (b *testBundle) create(t *testing.T, method string, extra ...string) string {
	t.Helper()
	form := cardIntent
	if method != "" {
		form += "&payment_method=" + method
	}
	r := b.post(t, "/v1/payment_intents", "create-"+t.Name()+method+strings.Join(extra, ""), strings.Join(append([]string{form}, extra...), "&"))
	require.NoError(t, r.err)
	require.Equal(t, http.StatusOK, r.status, r.raw)
	return r.id()
}

func (b *testBundle) confirm(t *testing.T, id, key string) response {
	t.Helper()
	return b.post(t, "/v1/payment_intents/"+id+"/confirm", key, "")
}

func (b *testBundle) status(t *testing.T, id string) string {
	t.Helper()
	r := b.get(t, "/v1/payment_intents/"+id)
	require.NoError(t, r.err)
	status, _ := r.body["status"].(string)
	return status
}

// confirms are the journal's confirms, in order.
func (b *testBundle) confirms() []stripesim.JournalEntry {
	return b.requests("payment_intents.confirm")
}

func (b *testBundle) requests(operation string) []stripesim.JournalEntry {
	var found []stripesim.JournalEntry
	for _, entry := range b.Journal(0) {
		if entry.Operation == operation {
			found = append(found, entry)
		}
	}
	return found
}

// charges are the statuses of the ledger's charges, in order.
func (b *testBundle) charges() []string {
	statuses := []string{}
	for _, ch := range b.Ledger().Charges {
		statuses = append(statuses, ch.Status)
	}
	return statuses
}

// control calls the control surface.
func (b *testBundle) control(t *testing.T, method, path string, body, into any) int {
	t.Helper()
	encoded, err := json.Marshal(body)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), method, b.URL+path, bytes.NewReader(encoded))
	require.NoError(t, err)
	res, err := b.client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	if into != nil {
		require.NoError(t, json.NewDecoder(res.Body).Decode(into))
	}
	return res.StatusCode
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	return raw
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 2*time.Millisecond, what) // on a busy machine
}

func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return values.Encode()
}
