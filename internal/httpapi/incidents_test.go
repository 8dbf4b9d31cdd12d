package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/postgres"
)

// G9: what a request holds reaches no log, at the most talkative level, whether it succeeds, is refused or meets a
// database that is down.
func TestIncident17_NothingOfARequestReachesTheLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := b.body(set("customer.name", "sentinel-name"), set("customer.email", "sentinel@mail.example"),
		set("payment_method", "sentinel-card"), set("metadata", map[string]any{"sentinel-note": "sentinel-value"}))
	require.Equal(t, http.StatusCreated, b.book(t, "sentinel-key", body, "X-Sentinel: sentinel-header").status)
	require.Equal(t, http.StatusCreated, b.book(t, "sentinel-key", body).status)
	b.book(t, "sentinel-key", b.body()).refused(t, 422, httpapi.CodeKeyReused)
	b.book(t, "sentinel-other", body).refused(t, 409, httpapi.CodeSlotUnavailable)
	b.book(t, "sentinel key", body).refused(t, 400, httpapi.CodeKeyMalformed)
	b.book(t, "sentinel-bad", strings.Replace(body, "{", `{"sentinel-member":1,`, 1)).refused(t, 422, httpapi.CodeValidationFailed)
	b.book(t, "sentinel-bad", body+"sentinel").refused(t, 400, httpapi.CodeMalformedJSON)
	b.send(t, http.MethodGet, "/v1/sentinel-path?q=sentinel", nil, "Authorization: Bearer hf_sentinel").refused(t, 404, httpapi.CodeNotFound)
	b.send(t, http.MethodGet, "/v1/bookings/sentinel-id?q=sentinel", nil, "Authorization: Bearer hf_sentinel").refused(t, 401, httpapi.CodeUnauthenticated)

	down, err := postgres.Open(t.Context(), postgres.PoolConfig{
		URL: "postgres://holdfast:sentinel%25password@127.0.0.1:1/holdfast", ApplicationName: "test", MaxConns: 1,
	})
	require.NoError(t, err)
	defer down.Close()
	broken := setup(t, func(c *httpapi.Config) {
		c.Bookings = bookings.New(down, noWaker{}, bookings.Config{Budget: 1})
		c.Catalogue = bookings.New(down, noWaker{}, bookings.Config{})
	})
	a := broken.book(t, "sentinel-key", strings.Replace(body, b.resource.ID.String(), broken.resource.ID.String(), 1))
	a.refused(t, http.StatusServiceUnavailable, httpapi.CodeBusy)
	broken.get(t, "/v1/resources").refused(t, http.StatusServiceUnavailable, httpapi.CodeBusy)
	noTokens := setup(t, func(c *httpapi.Config) { c.Clients = clients.New(down) })
	noTokens.get(t, "/v1/resources").refused(t, http.StatusServiceUnavailable, httpapi.CodeBusy)

	for _, log := range []string{b.log.String(), broken.log.String(), noTokens.log.String()} {
		require.NotEmpty(t, log)
		require.NotContains(t, strings.ToLower(log), "sentinel")
		require.NotContains(t, log, "hf_")
	}
}

// More requests than connections: each is answered within its time, none with a 500, and afterwards all is well.
func TestIncident22_MoreRequestsThanConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	small, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: b.db.URL, ApplicationName: "test", MaxConns: 4})
	require.NoError(t, err)
	defer small.Close()
	narrow := setup(t, func(c *httpapi.Config) {
		service := bookings.New(small, noWaker{}, bookings.Config{Budget: eternity})
		c.Clients, c.Bookings, c.Catalogue = clients.New(small), service, service
		c.Ready = func(ctx context.Context) error { return small.Ping(ctx) }
	})
	narrow.token, narrow.resource = b.token, b.resource

	answers := make([]answer, 64)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = narrow.book(t, fmt.Sprintf("key-%d", i%32), b.body()) })
	}
	all.Wait()
	count := map[int]int{}
	for _, a := range answers {
		count[a.status]++
	}
	require.LessOrEqual(t, count[http.StatusCreated], 2, "one booking and its replay: %v", count)
	require.Equal(t, len(answers), count[http.StatusCreated]+count[http.StatusConflict]+count[http.StatusServiceUnavailable], "%v", count)
	again := map[int]int{} // who was told to come again does
	for i := range 32 {
		again[narrow.book(t, fmt.Sprintf("key-%d", i), b.body()).status]++
	}
	require.Equal(t, map[int]int{http.StatusCreated: 1, http.StatusConflict: 31}, again, "one booking, whoever asked")
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM bookings`))
	require.Equal(t, http.StatusOK, narrow.get(t, "/readyz").status)
	require.Equal(t, http.StatusOK, narrow.get(t, "/v1/resources").status)
	require.Zero(t, small.Stat().AcquiredConns(), "every connection came back")
}

// Incident 11 (G3, G8): a total that the provider cannot take is refused before the slot is, with the reason, and nothing
// is written: the key stays free, and so does the slot.
func TestIncident11_WhatCannotBeChargedIsRefusedFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct {
		price    int64
		currency string
		code     httpapi.Code
		reason   string
	}{
		{49, "USD", httpapi.CodeAmountTooSmall, "the total of 49 USD is below the payment provider's minimum of 50 (minor units)"},
		{100_000_000, "USD", httpapi.CodeAmountTooLarge, "more than the 99999999 that the payment provider takes"},
		{1_000_000, "ISK", httpapi.CodeAmountTooLarge, "999999"},
		{5124, "KWD", httpapi.CodeAmountTooFine, "the total of 5124 KWD is not a multiple of 10"},
		{550, "MGA", httpapi.CodeAmountTooFine, "100"},
		{1000, "IQD", httpapi.CodeCurrencyNotCharged, "the payment provider does not charge IQD"},
		{1000, "ZZZ", httpapi.CodeCurrencyNotCharged, "ZZZ"},
	} {
		_, err := b.db.Pool.Exec(t.Context(), `UPDATE resources SET price = $1, currency = $2`, tt.price, tt.currency)
		require.NoError(t, err)
		p := b.book(t, "key", b.body(without("expected_total"))).refused(t, http.StatusUnprocessableEntity, tt.code)
		require.Equal(t, "body.resource_id", p.Errors[0].Location)
		require.Contains(t, p.Detail, tt.reason)
	}
	_, err := b.db.Pool.Exec(t.Context(), `UPDATE resources SET price = 999999999999, currency = 'IDR', places = 1000, unit_minutes = 1`)
	require.NoError(t, err)
	p := b.book(t, "key", b.body(without("expected_total"), set("quantity", 1000), set("end", "2028-05-01T10:00:00+02:00"))).
		refused(t, http.StatusUnprocessableEntity, httpapi.CodeAmountTooLarge)
	require.Contains(t, p.Detail, "527039999999472960000 IDR", "more than 64 bits hold")

	for _, amount := range []any{json.RawMessage("19.999"), "19.999", json.RawMessage("1e15"), -1, json.RawMessage("1e1"), 1_000_000_000_000} {
		b.book(t, "key", b.body(set("expected_total.amount", amount))).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	b.nothingWritten(t)
}
