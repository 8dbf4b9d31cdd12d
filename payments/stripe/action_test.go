package stripe

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
)

// waiting is an intent that waits for its customer, with this next action.
func waiting(next string) string {
	return `{"id": "` + intentID + `", "object": "payment_intent", "status": "requires_action", "amount": 1, "currency": "eur",
		"created": 1, "client_secret": "` + intentID + `_secret_SENTINEL", "next_action": ` + next + `}`
}

const sdkAction = `{"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect", "stripe_js": "https://SENTINEL"}}`

// A page is named only where the provider names one that a browser may be sent to; everything else is for its own library.
func TestActionIsTranslated(t *testing.T) {
	t.Parallel()
	sdkOnly := payments.NextAction{Type: payments.ActionSDK, ClientSecret: intentID + "_secret_SENTINEL"}
	to := func(url string) string {
		return `{"type": "redirect_to_url", "redirect_to_url": {"url": "` + url + `", "return_url": "https://shop.example"}}`
	}
	for name, tt := range map[string]struct {
		next string
		want payments.NextAction
	}{
		"redirect": {to("https://bank.example/3ds?x=1"), payments.NextAction{
			Type: payments.ActionRedirect, URL: "https://bank.example/3ds?x=1", ClientSecret: sdkOnly.ClientSecret,
		}},
		"sdk":                      {sdkAction, sdkOnly},
		"a type of tomorrow":       {`{"type": "scan_iris", "scan_iris": {}}`, sdkOnly},
		"a page in the clear":      {to("http://bank.example"), sdkOnly},
		"a script":                 {to("javascript:alert(1)"), sdkOnly},
		"a redirect without where": {`{"type": "redirect_to_url"}`, sdkOnly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says(http.StatusOK, waiting(tt.next)))
			next, err := gatewayTo(t, p.URL).Action(t.Context(), intentID)
			require.NoError(t, err)
			require.Equal(t, tt.want, next)
			clean(t, next)
			require.Len(t, p.requests(), 1)
		})
	}
}

// Whatever is no whole intent that waits for its customer is no action; and it is asked for once, since somebody waits.
func TestActionIsReadWholeOrNot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		none   bool
	}{
		"succeeded":         {200, wholeIntent, true},
		"another intent":    {200, strings.ReplaceAll(waiting(sdkAction), intentID, "pi_3Other"), false},
		"another's secret":  {200, strings.Replace(waiting(sdkAction), intentID+"_secret", "pi_3Other_secret", 1), false},
		"no secret":         {200, strings.Replace(waiting(sdkAction), "client_secret", "secret", 1), false},
		"no action":         {200, waiting("null"), false},
		"empty":             {200, `{}`, false},
		"not JSON":          {200, `SENTINEL`, false},
		"unknown":           {404, errorBody(invalidType + `, "code": "resource_missing"`), false},
		"away":              {503, errorBody(`"type": "api_error", "message": "SENTINEL"`), false},
		"away, in HTML":     {502, `<html>SENTINEL`, false},
		"a key too limited": {403, errorBody(invalidType), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says(tt.status, tt.body))
			next, err := gatewayTo(t, p.URL).Action(t.Context(), intentID)
			require.Error(t, err)
			require.Equal(t, tt.none, err == payments.ErrNoAction) //nolint:errorlint // exactly this one
			require.Zero(t, next)
			clean(t, err)
			require.Len(t, p.requests(), 1)
		})
	}
	_, err := gatewayTo(t, "http://127.0.0.1:1").Action(t.Context(), "../x")
	require.Error(t, err)
}

func TestReturnURL(t *testing.T) {
	t.Parallel()
	for url, good := range map[string]bool{
		"https://shop.example/paid?x=1": true, "http://127.0.0.1:3000/paid": true, "http://localhost/": true, "http://[::1]:3000": true,
		"http://shop.example": false, "shop.example": false, "https://": false, "https://user:pass@shop.example": false, "javascript:alert(1)": false,
	} {
		g, err := New(Config{APIKey: "sk_test_a", ReturnURL: url})
		if !good {
			require.ErrorIs(t, err, errReturn, url)
			require.NotContains(t, err.Error(), "pass")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, payments.Params{"return_url": url}, g.Freeze(domain.OpConfirm, payments.Charge{}))
		require.Empty(t, g.Freeze(domain.OpCancel, payments.Charge{}))
	}
}
