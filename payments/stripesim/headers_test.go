package stripesim_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an answer says beside its body: who was asked, which request ran, whether this is its memory, and whether to try again.
func TestHeadersOfAnAnswer(t *testing.T) {
	t.Parallel()
	const create = "/v1/payment_intents"
	cases := map[string]struct {
		fault    string
		send     func(t *testing.T, b *testBundle) response
		key      string
		original bool   // the request under the key is named
		first    bool   // and it is this one
		retry    string // Stripe-Should-Retry
	}{
		"a read": {send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			return b.get(t, "/v1/account")
		}},
		"a write without a key": {send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			return b.post(t, create, "", cardIntent)
		}},
		"the first of a key": {key: "k", original: true, first: true, retry: "false", send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			return b.post(t, create, "k", cardIntent)
		}},
		"a replay": {key: "k", original: true, retry: "false", send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			b.post(t, create, "k", cardIntent)
			return b.post(t, create, "k", cardIntent)
		}},
		"an executed refusal": {key: "k", original: true, first: true, retry: "false", send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			return b.post(t, create+"/pi_unknown/cancel", "k", "")
		}},
		"refused parameters": {key: "k", send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			return b.post(t, create, "k", "amount=0&currency=eur")
		}},
		"a mismatch": {key: "k", send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			b.post(t, create, "k", cardIntent)
			return b.post(t, create, "k", cardIntent+"&description=other")
		}},
		"a stored 500": {fault: "error_500_after", key: "k", original: true, first: true, send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			return b.post(t, create, "k", cardIntent)
		}},
		"a rate limit": {fault: "rate_limit_429", key: "k", send: func(t *testing.T, b *testBundle) response {
			t.Helper()
			return b.post(t, create, "k", cardIntent)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if tc.fault != "" {
				b.AddFault(stripesimFault("", tc.fault))
			}
			r := tc.send(t, b)
			require.NoError(t, r.err)
			entries := b.Journal(0)
			last := entries[len(entries)-1]
			require.Equal(t, last.RequestID, r.header.Get("Request-Id"))
			require.Equal(t, "2023-10-16", r.header.Get("Stripe-Version"))
			require.Equal(t, "application/json", r.header.Get("Content-Type"))
			require.Equal(t, tc.key, r.header.Get("Idempotency-Key"))
			require.Equal(t, tc.retry, r.header.Get("Stripe-Should-Retry"))
			want := ""
			if tc.original {
				want = entries[0].RequestID
			}
			require.Equal(t, want, r.header.Get("Original-Request"))
			if tc.first {
				require.Equal(t, r.header.Get("Request-Id"), r.header.Get("Original-Request"))
			}
			replayed := ""
			if tc.original && !tc.first {
				replayed = "true"
				require.NotEqual(t, r.header.Get("Request-Id"), r.header.Get("Original-Request"))
			}
			require.Equal(t, replayed, r.header.Get("Idempotent-Replayed"))
		})
	}
}

// Whoever is refused is told, in Stripe's envelope, what kind of trouble it is. A rate limit has no type of its own.
func TestEveryRefusalHasItsTypeAndCode(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault      string // on the confirm
		card, form string
		status     int
		kind       string
		code       any
	}{
		"refused parameters": {card: "pm_card_visa", form: "colour=red", status: 400, kind: "invalid_request_error", code: "parameter_unknown"},
		"no API key":         {card: "pm_card_visa", fault: "unauthorized_401", status: 401, kind: "invalid_request_error"},
		"a decline":          {card: "pm_card_chargeDeclined", status: 402, kind: "card_error", code: "card_declined"},
		"in use":             {card: "pm_card_visa", fault: "in_use_409", status: 409, kind: "invalid_request_error", code: "idempotency_key_in_use"},
		"busy":               {card: "pm_card_visa", fault: "lock_timeout_429", status: 429, kind: "invalid_request_error", code: "lock_timeout"},
		"too many":           {card: "pm_card_visa", fault: "rate_limit_429", status: 429, kind: "invalid_request_error", code: "rate_limit"},
		"a dependency":       {card: "pm_card_visa", fault: "error_424", status: 424, kind: "api_error"},
		"an error":           {card: "pm_card_visa", fault: "error_500_before", status: 500, kind: "api_error"},
		"a gateway's":        {card: "pm_card_visa", fault: "error_502", status: 502, kind: "api_error"},
		"an outage":          {card: "pm_card_visa", fault: "error_503", status: 503, kind: "api_error"},
		"too late":           {card: "pm_card_visa", fault: "error_504", status: 504, kind: "api_error"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create(t, tc.card)
			if tc.fault != "" {
				b.AddFault(stripesimFault("payment_intents.confirm", tc.fault))
			}
			r := b.post(t, intentPath(id, "confirm"), "k", tc.form)
			require.NoError(t, r.err)
			require.Equal(t, tc.status, r.status, r.raw)
			require.Len(t, r.body, 1, "the envelope holds the error and nothing else")
			require.Equal(t, tc.kind, r.errorField("type"))
			require.Equal(t, tc.code, r.errorField("code"))
			require.NotEmpty(t, r.errorField("message"))
			require.Contains(t, r.errorField("request_log_url"), r.header.Get("Request-Id"))
			if tc.code != nil {
				require.Contains(t, r.errorField("doc_url"), "/error-codes/")
			}
		})
	}
}

// Refusals come in Stripe's order: who asks, how often, with what, under which key.
func TestTheOrderOfRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const path, spoiled = "/v1/payment_intents", cardIntent + "&colour=red"
	require.Equal(t, http.StatusOK, b.post(t, path, "k", cardIntent).status)
	b.AddFault(stripesimFault("*.create", "rate_limit_429"))
	require.Equal(t, http.StatusUnauthorized, b.as(t, "sk_live_x", http.MethodPost, path, "k", spoiled).status, "first the API key")
	require.Equal(t, http.StatusTooManyRequests, b.post(t, path, "k", spoiled).status, "then the rate")
	require.Equal(t, "parameter_unknown", b.post(t, path, "k", spoiled).errorField("code"), "then the parameters")
	require.Equal(t, "idempotency_error", b.post(t, path, "k", cardIntent+"&description=x").errorField("type"), "then the key")
	require.Equal(t, "true", b.post(t, path, "k", cardIntent).header.Get("Idempotent-Replayed"), "whose memory none of them touched")
}

func TestABodyOfJSONIsRefusedByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.request(t, "sk_test_x", http.MethodPost, "/v1/payment_intents", "k", `{"amount":2000,"currency":"eur"}`)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	r := b.do(req)
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Contains(t, r.errorField("message"), "application/x-www-form-urlencoded")
}
