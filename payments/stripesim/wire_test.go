package stripesim_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for header, status := range map[string]int{
		"": 401, "Bearer sk_live_x": 401, "Bearer nonsense": 401, "Bearer sk_test_x": 200, "Bearer rk_test_x": 200,
		"Basic c2tfdGVzdF94Og==": 200, // sk_test_x:
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL+"/v1/account", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", header)
		r := b.do(req)
		require.Equal(t, status, r.status, header)
		require.Regexp(t, `^req_\w{14}$`, r.header.Get("Request-Id"))
		if status == http.StatusUnauthorized {
			require.Equal(t, "invalid_request_error", r.errorField("type"))
		}
	}
}

func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	const card = "&payment_method_types[]=card"
	cases := map[string]struct {
		form        string
		code, param any
	}{
		"no amount":          {"currency=eur" + card, "parameter_missing", "amount"},
		"no currency":        {"amount=2000" + card, "parameter_missing", "currency"},
		"amount 0":           {"amount=0&currency=eur" + card, "parameter_invalid_integer", "amount"},
		"amount in words":    {"amount=ten&currency=eur" + card, "parameter_invalid_integer", "amount"},
		"below the minimum":  {"amount=49&currency=eur" + card, "amount_too_small", "amount"},
		"beyond the maximum": {"amount=100000000&currency=eur" + card, "amount_too_large", "amount"},
		"no decimals in use": {"amount=501&currency=ugx" + card, nil, "amount"},
		"unknown":            {"amount=2000&currency=eur&colour=red" + card, "parameter_unknown", "colour"},
		"unknown method":     {"amount=2000&currency=eur&payment_method=pm_nope" + card, "resource_missing", "payment_method"},
		"unknown customer":   {"amount=2000&currency=eur&customer=nobody" + card, "resource_missing", "customer"},
		"not modelled":       {"amount=2000&currency=eur&transfer_data[destination]=acct_1" + card, nil, "transfer_data"},
		"confirm, no method": {"amount=2000&currency=eur&confirm=true" + card, "parameter_missing", "payment_method"},
		"confirm only":       {"amount=2000&currency=eur&return_url=https://x.test" + card, nil, "return_url"},
		"capture method":     {"amount=2000&currency=eur&capture_method=never" + card, nil, "capture_method"},
		"descriptor":         {"amount=2000&currency=eur&statement_descriptor_suffix=123" + card, nil, "statement_descriptor_suffix"},
		"broken brackets":    {"amount=2000&currency=eur&metadata[a=1" + card, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.post(t, "/v1/payment_intents", "k", tc.form)
			require.Equal(t, http.StatusBadRequest, r.status, r.raw)
			require.Equal(t, "invalid_request_error", r.errorField("type"))
			require.Equal(t, tc.code, r.errorField("code"))
			require.Equal(t, tc.param, r.errorField("param"))
			require.Empty(t, b.requests("payment_intents.list"))
			require.Empty(t, ids(b.get(t, "/v1/payment_intents")))
		})
	}
}

func TestWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.get(t, "/v1/payment_intents/pi_unknown")
	require.Equal(t, http.StatusNotFound, r.status)
	require.Equal(t, "resource_missing", r.errorField("code"))
	require.Equal(t, "intent", r.errorField("param"))
	r = b.post(t, "/v1/payouts", "k", "")
	require.Equal(t, http.StatusNotFound, r.status)
	require.Equal(t, "unknown", b.Journal(1)[0].Operation)
}
