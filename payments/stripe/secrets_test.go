package stripe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/payments"
)

// TestIncident17_NothingSecretComesOut seeds secrets in the key, the answers and their headers, and looks for them in
// everything that the package returns, printed in every way (G9).
func TestIncident17_NothingSecretComesOut(t *testing.T) {
	t.Parallel()
	const secretIntent = `{"id": "pi_3Wire", "object": "payment_intent", "status": "succeeded", "amount": 1, "currency": "eur",
		"created": 1, "client_secret": "pi_3Wire_secret_SENTINEL", "description": "SENTINEL", "receipt_email": "SENTINEL@x.com",
		"metadata": {"other": "SENTINEL"}, "payment_method": {"id": "pm_1", "object": "payment_method",
		"card": {"last4": "SENTINEL", "fingerprint": "SENTINEL"}, "billing_details": {"email": "SENTINEL"}},
		"next_action": {"redirect_to_url": {"url": "https://SENTINEL"}},
		"last_payment_error": {"code": "SENTINEL is prose", "decline_code": "SENTINEL!", "message": "SENTINEL", "type": "card_error"}}`
	errorWith := `{"error": {"type": "card_error", "code": "the SENTINEL", "decline_code": "SENTINEL.", "param": "SENTINEL",
		"message": "SENTINEL", "charge": "SENTINEL", "doc_url": "https://SENTINEL", "payment_intent": ` + secretIntent + `}}`
	bodies := []string{
		secretIntent, errorWith, `{"SENTINEL": `, `"SENTINEL"`, `<html>SENTINEL</html>`, `{"error": "SENTINEL"}`, `SENTINEL`,
		listBody(false, secretIntent), listBody(true, secretIntent), listBody(false, `"SENTINEL"`), listBody(false, `{"currency": "SENTINEL"}`),
		strings.ReplaceAll(secretIntent, `"eur"`, `"SENTINEL"`), strings.ReplaceAll(secretIntent, `"succeeded"`, `"the SENTINEL"`),
	}
	for _, status := range []int{200, 302, 400, 401, 402, 403, 404, 409, 424, 429, 500, 502, 503} {
		for i, body := range bodies {
			t.Run(fmt.Sprint(status, " ", i), func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, says(status, body, "Request-Id", "req SENTINEL", "Idempotent-Replayed", "SENTINEL", "Location", "/SENTINEL"))
				g := quick(t, p.URL)
				g.key = func() string { return "sk_test_SENTINEL" }
				clean(t, g)
				out := g.Send(t.Context(), confirm())
				clean(t, out)
				if out.Intent != nil {
					clean(t, *out.Intent)
					clean(t, out.Intent.LastError)
				}
				intent, err := g.Intent(t.Context(), intentID)
				clean(t, intent)
				clean(t, err)
				next, err := g.Action(t.Context(), intentID)
				clean(t, next)
				clean(t, err)
				charges, err := g.Charges(t.Context(), intentID)
				clean(t, charges)
				clean(t, err)
				intents, err := g.IntentsCreated(t.Context(), intent.Created, intent.Created)
				clean(t, intents)
				clean(t, err)
			})
		}
	}
}

func TestIncident17_KeyIsHidden(t *testing.T) {
	t.Parallel()
	c := Config{APIKey: "sk_test_SENTINEL", BaseURL: "http://127.0.0.1:1"}
	clean(t, c)
	g, err := New(c)
	require.NoError(t, err)
	clean(t, g)
	clean(t, struct{ gateway payments.Gateway }{g})
	clean(t, *g)
	clean(t, g.Send(t.Context(), confirm()))
	_, err = New(Config{APIKey: "SENTINEL", BaseURL: "http://SENTINEL:SENTINEL@[::1"})
	clean(t, err)
	require.Equal(t, "Bearer sk_test_SENTINEL", sentAuthorization(t, c))
}

// TestIncident17_TheSDKLogsNothing: at its debug level it prints whole bodies, at its default one the errors in them.
func TestIncident17_TheSDKLogsNothing(t *testing.T) {
	t.Parallel()
	g := gatewayTo(t, "")
	for _, b := range []sdk.Backend{g.writes, g.reads} {
		backend, ok := b.(*sdk.BackendImplementation)
		require.True(t, ok)
		require.Equal(t, &sdk.LeveledLogger{Level: sdk.LevelNull}, backend.LeveledLogger)
	}
}

func sentAuthorization(t *testing.T, c Config) string {
	t.Helper()
	p := newProvider(t, says(http.StatusOK, wholeIntent))
	c.BaseURL = p.URL
	g, err := New(c)
	require.NoError(t, err)
	g.Send(t.Context(), confirm())
	return p.requests()[0].header.Get("Authorization")
}

func clean(t *testing.T, v any) {
	t.Helper()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(format, v), "SENTINEL", format)
	}
	if text, err := json.Marshal(v); err == nil {
		require.NotContains(t, string(text), "SENTINEL")
	}
}
