package httpapi_test

import (
	"context"
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
		service := bookings.New(small, noWaker{}, bookings.Config{})
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
	require.Equal(t, 2, count[http.StatusCreated], "one booking and its replay: %v", count)
	require.Equal(t, len(answers), count[http.StatusCreated]+count[http.StatusConflict]+count[http.StatusServiceUnavailable], "%v", count)
	require.Equal(t, http.StatusOK, narrow.get(t, "/readyz").status)
	require.Equal(t, http.StatusOK, narrow.get(t, "/v1/resources").status)
	require.Zero(t, small.Stat().AcquiredConns(), "every connection came back")
}
