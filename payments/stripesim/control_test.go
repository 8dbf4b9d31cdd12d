package stripesim_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

func stripesimFault(operation, name string) stripesim.Fault {
	return stripesim.Fault{Operation: operation, Fault: name}
}

func TestTheControlSurface(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_threeDSecure2Required")

	var added struct {
		ID string `json:"id"`
	}
	fault := map[string]any{
		"operation": "payment_intents.confirm", "key_match": "k", "nth": 1, "times": 1, "fault": "error_503_after", "delay_ms": 0,
		"should_retry": true, "close_listener_ms": 0,
	}
	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/faults", fault, &added))
	require.NotEmpty(t, added.ID)
	require.Equal(t, http.StatusServiceUnavailable, b.confirm(t, id, "k").status)

	var journal []map[string]any
	require.Equal(t, http.StatusOK, b.control(t, http.MethodGet, "/_sim/journal?after=1", nil, &journal))
	require.Len(t, journal, 1)
	for name, want := range map[string]any{
		"seq": 2.0, "operation": "payment_intents.confirm", "idempotency_key": "k", "executed": true, "replayed": false, "status": 503.0,
		"fault": "error_503_after",
	} {
		require.Equal(t, want, journal[0][name], name)
	}
	require.Len(t, journal[0]["params_sha256"], 64)

	action := map[string]any{"action": "authenticate", "payment_intent": id}
	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/actions", action, nil))
	require.Equal(t, http.StatusBadRequest, b.control(t, http.MethodPost, "/_sim/actions", action, nil), "nobody waits any more")

	var ledger map[string][]map[string]any
	var whole map[string]any
	b.control(t, http.MethodGet, "/_sim/ledger", nil, &whole)
	ledger = map[string][]map[string]any{}
	for _, name := range []string{"charges", "refunds", "disputes", "balance_transactions", "payouts"} {
		items, isList := whole[name].([]any)
		require.True(t, isList, name)
		for _, item := range items {
			fields, _ := item.(map[string]any)
			ledger[name] = append(ledger[name], fields)
		}
	}
	require.Len(t, ledger["charges"], 1)
	charge := ledger["charges"][0]
	require.Equal(t, id, charge["payment_intent"])
	require.Equal(t, "succeeded", charge["status"])
	for _, name := range []string{"id", "amount", "currency", "metadata", "amount_refunded", "disputed"} {
		require.Contains(t, charge, name)
	}

	before := b.Now()
	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/clock", map[string]string{"advance": "25h"}, nil))
	require.GreaterOrEqual(t, b.Now().Sub(before), 25*time.Hour)

	for _, mode := range []string{"auto", "hold", "drop", "duplicate", "reorder"} {
		require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/webhooks", map[string]string{"mode": mode}, nil))
	}
	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/webhooks/release", nil, nil))

	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/faults", fault, &added))
	require.Equal(t, http.StatusOK, b.control(t, http.MethodDelete, "/_sim/faults/"+added.ID, nil, nil))
	require.Equal(t, http.StatusNotFound, b.control(t, http.MethodDelete, "/_sim/faults/"+added.ID, nil, nil))
	require.Equal(t, http.StatusOK, b.control(t, http.MethodDelete, "/_sim/faults", nil, nil))

	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/reset", nil, nil))
	require.Empty(t, b.Journal(0))
	require.Empty(t, b.charges())
	require.Equal(t, http.StatusNotFound, b.get(t, "/v1/payment_intents/"+id).status)
	require.WithinDuration(t, time.Now(), b.Now(), time.Minute)
}

func TestControlRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tc := range []struct {
		path string
		body any
		says string // what to do
	}{
		{"faults", map[string]any{"fault": "explode"}, "there are bad_body, delay, error_424"},
		{"faults", map[string]any{}, "there are bad_body, delay, error_424"},
		{"faults", map[string]any{"fault": "search_lag", "operation": "payment_intents.list"}, "search_lag can hit no operation"},
		{"faults", map[string]any{"fault": "reset_after", "opertion": "x"}, "opertion"},
		{"faults", map[string]any{"fault": "reset_after", "operation": "confirm"}, "there are payment_intents.create, "},
		{"faults", map[string]any{"fault": "reset_after", "nth": -1}, "nth, times"},
		{"faults", map[string]any{"fault": "bad_body", "body": "green"}, "invalid, empty, truncated, no_error"},
		{"faults", map[string]any{"fault": "reset_after", "body": "empty"}, "body belongs to bad_body"},
		{"clock", map[string]any{"advance": "-1h"}, `such as "25h"`},
		{"clock", map[string]any{}, `such as "25h"`},
		{"clock", map[string]any{"stand_at": "2001-01-01T00:00:00Z"}, "does not go back"},
		{"actions", map[string]any{"action": "create_payout"}, "nothing to pay out"},
		{"actions", map[string]any{"action": "authenticat", "payment_intent": "pi_1"}, "there are authenticate, close_dispute"},
		{"actions", map[string]any{"action": "authenticate"}, "needs a payment_intent"},
		{"actions", map[string]any{"action": "authenticate", "payment_intent": "pi_1"}, `no payment intent "pi_1"`},
		{"actions", map[string]any{"action": "roll_forward", "payment_intent": "pi_1", "outcome": "back"}, "is none of succeeded, failed"},
		{"webhooks", map[string]any{"mode": "shout"}, "auto, hold, drop, duplicate or reorder"},
		{"webhooks", "hold", "one JSON object"},
	} {
		var complaint struct {
			Error string `json:"error"`
		}
		require.Equal(t, http.StatusBadRequest, b.control(t, http.MethodPost, "/_sim/"+tc.path, tc.body, &complaint), tc)
		require.Contains(t, complaint.Error, tc.says)
	}
	for _, call := range []string{"GET /_sim/nothing", "GET /_sim/reset", "GET /_sim", "PUT /_sim/faults"} {
		method, path, _ := strings.Cut(call, " ")
		var complaint struct {
			Error string `json:"error"`
		}
		require.Equal(t, http.StatusNotFound, b.control(t, method, path, nil, &complaint), call)
		require.Contains(t, complaint.Error, "POST /_sim/reset")
	}
	for _, body := range []string{"", `{"fault":"reset_after"} {}`, "fault=reset_after"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+"/_sim/faults", strings.NewReader(body))
		require.NoError(t, err)
		r := b.do(req)
		require.Equal(t, http.StatusBadRequest, r.status, body)
		require.Contains(t, r.raw, "one JSON object")
	}
	require.Empty(t, b.Faults(), "nothing of it was armed")
}

func TestControlIsForLoopbackOnly(t *testing.T) {
	t.Parallel()
	for open, want := range map[bool]int{false: http.StatusForbidden, true: http.StatusOK} {
		sim := stripesim.New(stripesim.Config{OpenControl: open})
		rec := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/_sim/ledger", http.NoBody) // from 192.0.2.1
		sim.ServeHTTP(rec, req)
		require.Equal(t, want, rec.Code)
		sim.Close()
	}
}

func TestObserveSeesARequestBeforeAnythingIsDecided(t *testing.T) {
	t.Parallel()
	seen := make(chan stripesim.JournalEntry, 10)
	b := setup(t, func(c *stripesim.Config) { c.Observe = func(e stripesim.JournalEntry) { seen <- e } })
	b.post(t, "/v1/payment_intents", "k", cardIntent)
	entry := <-seen
	require.Equal(t, "payment_intents.create", entry.Operation)
	require.True(t, entry.Open)
	require.False(t, entry.Executed)
}
