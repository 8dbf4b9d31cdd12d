package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments"
)

// quick is a gateway that does not wait between the tries of a read.
func quick(t *testing.T, url string) *Gateway {
	t.Helper()
	g := gatewayTo(t, url)
	hurry(t, g)
	return g
}

func hurry(t *testing.T, g *Gateway) {
	t.Helper()
	backend, ok := g.reads.(interface{ SetNetworkRetriesSleep(sleep bool) })
	require.True(t, ok)
	backend.SetNetworkRetriesSleep(false)
}

// TestIntentIsReadWholeOrNot: only Stripe's own 404 says that there is no such intent, and only a whole intent is one.
func TestIntentIsReadWholeOrNot(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status  int
		body    string
		missing bool
	}{
		{404, errorBody(invalidType + `, "code": "resource_missing", "param": "intent"`), true},
		{404, errorBody(invalidType), false},
		{404, `<html>not found</html>`, false},
		{404, `{"error": {}}`, false},
		{400, errorBody(invalidType + `, "code": "resource_missing"`), false},
		{401, errorBody(invalidType), false},
		{403, errorBody(invalidType), false},
		{429, errorBody(invalidType + `, "code": "rate_limit"`), false},
		{500, errorBody(`"type": "api_error"`), false},
		{503, errorBody(`"type": "api_error"`), false},
		{502, `<html>`, false},
		{200, ``, false},
		{200, `{}`, false},
		{200, `null`, false},
		{200, `"pi_3Wire"`, false},
		{200, `{`, false},
		{200, strings.Replace(wholeIntent, `pi_3Wire"`, `pi_3Other"`, 1), false},
		{302, wholeIntent, false},
		{204, ``, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d %.60s", tt.status, tt.body), func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says(tt.status, tt.body))
			intent, err := quick(t, p.URL).Intent(t.Context(), intentID)
			require.Error(t, err)
			require.Zero(t, intent)
			require.Equal(t, tt.missing, errors.Is(err, payments.ErrNoIntent))
			var failed *ReadError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, tt.status, failed.HTTPStatus)
			require.NotContains(t, err.Error(), "SENTINEL")
		})
	}
}

func TestIntentIsTranslated(t *testing.T) {
	t.Parallel()
	body := strings.Replace(wholeIntent, `"created"`, `"last_payment_error": {"type": "card_error", "code": "card_declined",
		"decline_code": "lost_card", "message": "SENTINELMESSAGE", "payment_method": {"id": "pm_1Failed", "object": "payment_method"}},
		"created"`, 1)
	p := newProvider(t, says(200, body))
	intent, err := gatewayTo(t, p.URL).Intent(t.Context(), intentID)
	require.NoError(t, err)
	require.Equal(t, payments.Intent{
		ID: intentID, Status: payments.IntentSucceeded, Amount: frozenCharge().Total, AmountReceived: 4200,
		PaymentMethod: "pm_1Wire", PaymentID: "p1", BookingID: "b1", Created: time.Unix(1700000000, 0).UTC(),
		LastError: &payments.LastError{Code: "card_declined", DeclineCode: "lost_card", PaymentMethod: "pm_1Failed"},
	}, intent)
	require.Equal(t, "GET", p.requests()[0].method)
	require.Equal(t, "/v1/payment_intents/pi_3Wire", p.requests()[0].path)
}

func chargeBody(id, intent string) string {
	return fmt.Sprintf(`{"id": %q, "object": "charge", "status": "failed", "amount": 4200, "currency": "eur", "payment_intent": %q}`, id, intent)
}

func listBody(more bool, items ...string) string {
	return fmt.Sprintf(`{"object": "list", "has_more": %t, "data": [%s], "url": "/v1/charges"}`, more, strings.Join(items, ","))
}

// pages answers with one body per request, and with the last for ever.
func pages(bodies ...string) (http.HandlerFunc, *[]url.Values) {
	var asked []url.Values
	return func(rw http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query())
		says(200, bodies[min(len(asked), len(bodies))-1])(rw, r)
	}, &asked
}

func TestListingIsWalkedByCursor(t *testing.T) {
	t.Parallel()
	answer, asked := pages(
		listBody(true, chargeBody("ch_5", intentID), chargeBody("ch_4", intentID)),
		listBody(true, chargeBody("ch_4", intentID), chargeBody("ch_3", intentID)), // overlaps
		listBody(false, chargeBody("ch_2", intentID)),
	)
	p := newProvider(t, answer)
	charges, err := gatewayTo(t, p.URL).Charges(t.Context(), intentID)
	require.NoError(t, err)
	var got []string
	for _, c := range charges {
		got = append(got, c.ID)
	}
	require.Equal(t, []string{"ch_5", "ch_4", "ch_3", "ch_2"}, got)
	require.Equal(t, []url.Values{
		{"limit": {"100"}, "payment_intent": {intentID}},
		{"limit": {"100"}, "payment_intent": {intentID}, "starting_after": {"ch_4"}},
		{"limit": {"100"}, "payment_intent": {intentID}, "starting_after": {"ch_3"}},
	}, *asked)
}

// TestIncompleteListingIsAnError: what is missing from half a listing is not proved to be missing (G4, G8).
func TestIncompleteListingIsAnError(t *testing.T) {
	t.Parallel()
	one := listBody(true, chargeBody("ch_1", intentID))
	tests := map[string][]string{
		"empty page that claims more":             {listBody(true)},
		"empty page after one that promised more": {one, listBody(false)},
		"second page like the first, for ever":    {one},
		"second page like the first, then an end": {one, listBody(false, chargeBody("ch_1", intentID))},
		"second page broken":                      {one, `{`},
		"second page without data":                {one, `{"object": "list", "has_more": false}`},
		"no list":                                 {`{}`},
		"null":                                    {`null`},
		"list without has_more":                   {`{"object": "list", "data": []}`},
		"list without data":                       {`{"object": "list", "has_more": false, "data": null}`},
		"an intent":                               {wholeIntent},
		"a null in the list":                      {listBody(false, `null`)},
		"an id in the list":                       {listBody(false, `"ch_1"`)},
		"a charge of another intent":              {listBody(false, chargeBody("ch_1", "pi_3Other"))},
		"a charge of no intent":                   {listBody(false, `{"id": "ch_1", "object": "charge", "status": "succeeded", "currency": "eur"}`)},
	}
	for name, bodies := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, _ := pages(bodies...)
			p := newProvider(t, answer)
			charges, err := quick(t, p.URL).Charges(t.Context(), intentID)
			require.Error(t, err)
			require.Nil(t, charges)
			require.NotErrorIs(t, err, payments.ErrNoIntent)
		})
	}
}

func TestEmptyListingIsAnAnswer(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says(200, listBody(false)))
	charges, err := gatewayTo(t, p.URL).Charges(t.Context(), intentID)
	require.NoError(t, err)
	require.Empty(t, charges)
}

func TestIntentsCreatedAsksForItsWindow(t *testing.T) {
	t.Parallel()
	from, to := time.Unix(1700000000, 5).UTC(), time.Unix(1700000060, 999).UTC()
	answer, asked := pages(listBody(false, wholeIntent))
	p := newProvider(t, answer)
	intents, err := gatewayTo(t, p.URL).IntentsCreated(t.Context(), from, to)
	require.NoError(t, err)
	require.Len(t, intents, 1)
	require.Equal(t, []url.Values{
		{"limit": {"100"}, "created[gte]": {"1700000000"}, "created[lte]": {"1700000060"}},
	}, *asked)

	_, err = gatewayTo(t, p.URL).IntentsCreated(t.Context(), from.Add(time.Second), to)
	require.Error(t, err, "a provider that ignores the window may ignore its end, too")
}

// Others on the account make intents, too, in currencies that are none of ours and with metadata of their own: they stand
// in the way of nobody's search. One that may be ours and cannot be read is an error, and so is what is no intent (G5).
func TestIntentsOfOtherApplicationsAreInNobodysWay(t *testing.T) {
	t.Parallel()
	other := strings.Replace(strings.Replace(wholeIntent, "pi_3Wire", "pi_3Other", 1), `"eur"`, `"iqd"`, 1)
	ours := strings.Replace(other, `"p1"`, `"0197f2a4-6d0e-7c3a-9d7e-0a4f3c1b2d5e"`, 1)
	at := time.Unix(1700000000, 0)
	for body, fails := range map[string]bool{
		listBody(false, other, wholeIntent): false, listBody(false, ours, wholeIntent): true, listBody(false, `null`): true, listBody(false, `{}`): true,
	} {
		intents, err := gatewayTo(t, newProvider(t, says(200, body)).URL).IntentsCreated(t.Context(), at, at)
		require.Equal(t, fails, err != nil, "%s: %v", body, err)
		if !fails {
			require.Equal(t, []string{"pi_3Other", intentID}, []string{intents[0].ID, intents[1].ID})
		}
	}
}

// TestReadsRetryAndWritesDoNot.
func TestReadsRetryAndWritesDoNot(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says(503, errorBody(`"type": "api_error"`)))
	g := quick(t, p.URL)
	_, err := g.Intent(t.Context(), intentID)
	require.Error(t, err)
	require.Len(t, p.requests(), 3)
	g.Send(t.Context(), confirm())
	require.Len(t, p.requests(), 4)
}

func TestReadErrorKeepsTheCallersReason(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := gatewayTo(t, p.URL).Charges(ctx, intentID)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
