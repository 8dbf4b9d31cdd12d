package stripe

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/payments"
)

func errorBody(fields string) string {
	return `{"error": {` + fields + `, "message": "SENTINELMESSAGE"}}`
}

const (
	withIntent  = `, "payment_intent": ` + wholeIntent
	otherIntent = `, "payment_intent": {"id": "pi_3Other", "object": "payment_intent", "status": "succeeded", "currency": "eur"}`
	invalidType = `"type": "invalid_request_error"`
)

// TestIncident13_EveryAnswerHasItsClass is the table of answers, each over real HTTP (G4). Type is left to vary where it
// is disputed.
func TestIncident13_EveryAnswerHasItsClass(t *testing.T) {
	t.Parallel()
	const unknown = payments.Unknown
	tests := []struct {
		status int
		body   string
		class  payments.Class
		intent bool
	}{
		{200, wholeIntent, payments.Executed, true},
		{201, wholeIntent, payments.Executed, true},
		{200, strings.Replace(wholeIntent, `"succeeded"`, `"unheard_of"`, 1), payments.Executed, true},
		{200, ``, unknown, false},
		{200, `{`, unknown, false},
		{200, `{}`, unknown, false},
		{200, `null`, unknown, false},
		{200, `"pi_3Wire"`, unknown, false}, // the SDK takes it for an intent that is not expanded
		{200, `[]`, unknown, false},
		{200, `{"id": "pi_3Wire", "object": "payment_intent"}`, unknown, false},
		{200, strings.Replace(wholeIntent, `"payment_intent"`, `"setup_intent"`, 1), unknown, false},
		{200, strings.Replace(wholeIntent, `pi_3Wire"`, `pi_3Other"`, 1), unknown, false},
		{200, strings.Replace(wholeIntent, `"eur"`, `"zzz"`, 1), unknown, false},
		{200, strings.Replace(wholeIntent, `"eur"`, `"isk"`, 1), payments.Executed, true},
		{200, strings.ReplaceAll(strings.Replace(wholeIntent, `"eur"`, `"isk"`, 1), "4200", "4201"), unknown, false},
		{200, errorBody(invalidType), unknown, false},
		{204, ``, unknown, false},
		{302, wholeIntent, unknown, false},
		{304, ``, unknown, false},
		{307, wholeIntent, unknown, false},

		{409, errorBody(invalidType + `, "code": "idempotency_key_in_use"`), payments.Busy, false},
		{409, errorBody(`"type": "idempotency_error", "code": "idempotency_key_in_use"`), payments.Busy, false},
		{409, errorBody(`"type": "idempotency_error"`), payments.Busy, false},
		{429, errorBody(invalidType + `, "code": "lock_timeout"`), payments.Busy, false},
		{429, errorBody(invalidType + `, "code": "rate_limit"`), payments.NotExecuted, false},
		{429, errorBody(`"type": "api_error"`), payments.NotExecuted, false},
		{401, errorBody(invalidType), payments.NotExecuted, false},
		{403, errorBody(invalidType), payments.NotExecuted, false},

		{402, errorBody(`"type": "card_error", "code": "card_declined", "decline_code": "lost_card"` + withIntent), payments.Declined, true},
		{402, errorBody(`"type": "card_error", "code": "expired_card"`), payments.Declined, false},
		{402, errorBody(`"type": "invalid_request_error", "code": "authentication_required"`), payments.Declined, false},
		{402, errorBody(`"type": "card_error", "code": "card_declined"` + otherIntent), payments.Declined, false},

		{400, errorBody(`"type": "idempotency_error"`), payments.KeyMismatch, false},
		{400, errorBody(`"type": "idempotency_error"` + withIntent), payments.KeyMismatch, false},
		{400, errorBody(invalidType + `, "code": "payment_intent_unexpected_state"` + withIntent), payments.KnownState, true},
		{400, errorBody(invalidType + `, "code": "payment_intent_unexpected_state"`), payments.Rejected, false},
		{400, errorBody(invalidType + `, "code": "payment_intent_unexpected_state"` + otherIntent), payments.Rejected, false},
		{400, errorBody(invalidType + `, "code": "amount_too_small", "param": "amount"`), payments.Rejected, false},
		{400, errorBody(invalidType + withIntent), payments.Rejected, false},
		{404, errorBody(invalidType + `, "code": "resource_missing", "param": "intent"`), payments.Rejected, false},

		{424, errorBody(`"type": "api_error"`), unknown, false},
		{500, errorBody(`"type": "api_error"`), unknown, false},
		{502, errorBody(`"type": "api_error"`), unknown, false},
		{503, errorBody(`"type": "api_error"`), unknown, false},
		{504, errorBody(`"type": "api_error"`), unknown, false},
		{503, errorBody(`"type": "card_error", "code": "card_declined"` + withIntent), unknown, false},
		{500, errorBody(invalidType + `, "code": "lock_timeout"`), unknown, false},
		{405, errorBody(invalidType), unknown, false},
		{408, errorBody(invalidType), unknown, false},
		{418, errorBody(invalidType), unknown, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d %.90s", tt.status, tt.body), func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says(tt.status, tt.body))
			out := gatewayTo(t, p.URL).Send(t.Context(), confirm())
			require.Equal(t, tt.class, out.Class, "%s: %+v", out.Class, out)
			require.Equal(t, tt.intent, out.Intent != nil)
			require.Equal(t, tt.status, out.HTTPStatus)
			require.Equal(t, "req_first", out.RequestID)
			require.Equal(t, tt.status == 500, out.Stored)
			require.NotContains(t, fmt.Sprintf("%+v", out), "SENTINEL")
			require.Len(t, p.requests(), 1)
		})
	}
}

// TestErrorStatusWithoutStripesErrorIsUnknown: a proxy, a firewall or a load balancer can answer any status.
func TestErrorStatusWithoutStripesErrorIsUnknown(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 402, 403, 404, 409, 424, 429, 500, 502, 503, 504} {
		for _, body := range []string{``, `{}`, `{"error": null}`, `{"error": {}}`, `{"error": "no"}`, `null`, `[]`, `{"error":`, `<html>Bad</html>`} {
			t.Run(fmt.Sprint(status, body), func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, says(status, body))
				out := gatewayTo(t, p.URL).Send(t.Context(), confirm())
				require.Equal(t, payments.Unknown, out.Class, "%s: %+v", out.Class, out)
				require.Equal(t, status, out.HTTPStatus, "a status is known even if the body says nothing")
				require.False(t, out.Stored, "what Stripe stored, Stripe has said")
				require.Nil(t, out.Intent)
				require.Len(t, p.requests(), 1)
			})
		}
	}
}

// TestReplayIsTold on every kind of stored answer: success, decline, refusal and 500.
func TestReplayIsTold(t *testing.T) {
	t.Parallel()
	for status, body := range map[int]string{
		200: wholeIntent, 402: errorBody(`"type": "card_error"`), 400: errorBody(invalidType), 500: errorBody(`"type": "api_error"`),
	} {
		for header, replayed := range map[string]bool{"true": true, "false": false, "": false} {
			t.Run(fmt.Sprint(status, header), func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, says(status, body, "Idempotent-Replayed", header))
				out := gatewayTo(t, p.URL).Send(t.Context(), confirm())
				require.Equal(t, replayed, out.Replayed)
				require.Equal(t, replayed, strings.Contains(out.Detail, "stored answer"))
			})
		}
	}
}

// TestAdviceToRetryIsNotFollowed: the provider may ask for another send, even on a success; the caller records each.
func TestAdviceToRetryIsNotFollowed(t *testing.T) {
	t.Parallel()
	for status, body := range map[int]string{
		200: wholeIntent, 409: errorBody(invalidType), 429: errorBody(invalidType + `, "code": "lock_timeout"`),
		500: errorBody(`"type": "api_error"`), 503: errorBody(`"type": "api_error"`), 502: `<html>`,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says(status, body, "Stripe-Should-Retry", "true"))
			gatewayTo(t, p.URL).Send(t.Context(), confirm())
			require.Len(t, p.requests(), 1)
		})
	}
}

// TestZeroAnswerIsUnknown: what nobody thought of is unknown.
func TestZeroAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	require.Equal(t, payments.Unknown, classify(confirm(), answer{}).Class)
	require.Equal(t, payments.Unknown, payments.Outcome{}.Class)
}
