package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
)

const asJSON = "Content-Type: application/json"

// Every request is spoiled in each step; the first step that refuses is the one that is told.
func TestOrderOfRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reader := "Authorization: Bearer " + b.newToken(t, "acme", clients.BookingsRead).Reveal()
	post := func(body string, headers ...string) answer {
		return b.send(t, http.MethodPost, "/v1/bookings", strings.NewReader(body), headers...)
	}
	a := post("{", "Idempotency-Key: a b")
	a.refused(t, http.StatusUnauthorized, httpapi.CodeUnauthenticated)
	require.Equal(t, `Bearer realm="holdfast"`, a.header.Get("Www-Authenticate"))
	a = post("{", reader)
	a.refused(t, http.StatusForbidden, httpapi.CodeForbidden)
	require.Contains(t, a.header.Get("Www-Authenticate"), `scope="bookings:write"`)
	post("{", b.bearer()).refused(t, http.StatusBadRequest, httpapi.CodeKeyMissing)
	post("{", b.bearer(), "Idempotency-Key: a b").refused(t, http.StatusBadRequest, httpapi.CodeKeyMalformed)
	post("{", b.bearer(), "Idempotency-Key: k").refused(t, http.StatusUnsupportedMediaType, httpapi.CodeUnsupportedMediaType)
	post("{", b.bearer(), "Idempotency-Key: k", asJSON).refused(t, http.StatusBadRequest, httpapi.CodeMalformedJSON)
	post("{}", b.bearer(), "Idempotency-Key: k", asJSON).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	b.nothingWritten(t)
}

// An unknown, an expired and a revoked token are one and the same refusal.
func TestTokensThatOpenNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	expired, err := b.clients.Create(t.Context(), "acme", clients.Scopes(), "", time.Hour)
	require.NoError(t, err)
	_, err = b.db.Pool.Exec(t.Context(), `UPDATE api_tokens SET expires_at = clock_timestamp() WHERE id = $1`, expired.ID.UUID)
	require.NoError(t, err)
	revoked, err := b.clients.Create(t.Context(), "acme", clients.Scopes(), "", time.Hour)
	require.NoError(t, err)
	path := "/v1/resources"
	require.Equal(t, http.StatusOK, b.send(t, http.MethodGet, path, nil, "Authorization: Bearer "+revoked.Token.Reveal()).status)
	_, err = b.clients.Revoke(t.Context(), revoked.ID)
	require.NoError(t, err)

	good := b.token.Reveal()
	var first answer
	for name, header := range map[string][]string{
		"none":       nil,
		"empty":      {"Authorization: "},
		"basic":      {"Authorization: Basic " + good},
		"no scheme":  {"Authorization: " + good},
		"unknown":    {"Authorization: Bearer hf_" + strings.Repeat("A", 43)},
		"no prefix":  {"Authorization: Bearer " + strings.TrimPrefix(good, "hf_")},
		"truncated":  {"Authorization: Bearer " + good[:len(good)-1]},
		"longer":     {"Authorization: Bearer " + good + "A"},
		"two tokens": {"Authorization: Bearer " + good + ", Bearer " + good},
		"twice":      {"Authorization: Bearer " + good, "Authorization: Bearer " + good},
		"expired":    {"Authorization: Bearer " + expired.Token.Reveal()},
		"revoked":    {"Authorization: Bearer " + revoked.Token.Reveal()},
		"in query":   nil,
		"hostile":    {"Authorization: Bearer ' OR 1=1 --"},
	} {
		target := path
		if name == "in query" {
			target += "?access_token=" + good
		}
		a := b.send(t, http.MethodGet, target, nil, header...)
		a.refused(t, http.StatusUnauthorized, httpapi.CodeUnauthenticated)
		if first.body == nil {
			first = a
		}
		require.Equal(t, string(first.body), string(a.body), name)
		require.Equal(t, first.header.Values("Www-Authenticate"), a.header.Values("Www-Authenticate"), name)
	}
	for _, scheme := range []string{"bearer", "BEARER", "Bearer  "} {
		require.Equal(t, http.StatusOK, b.send(t, http.MethodGet, path, nil, "Authorization: "+scheme+" "+good).status, scheme)
	}
	require.NotContains(t, b.log.String(), good)
	require.NotContains(t, b.log.String(), revoked.Token.Reveal())
}

func TestScopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, scope := range clients.Scopes() {
		token := "Authorization: Bearer " + b.newToken(t, "acme", scope).Reveal()
		for _, path := range []string{"/v1/resources", "/v1/resources/" + b.resource.ID.String(), "/v1/bookings/" + b.resource.ID.String()} {
			a := b.send(t, http.MethodGet, path, nil, token)
			require.Equal(t, scope == clients.BookingsRead, a.status != http.StatusForbidden, "%s %s", scope, path)
		}
		a := b.send(t, http.MethodPost, "/v1/bookings", strings.NewReader("{}"), token)
		require.Equal(t, scope == clients.BookingsWrite, a.status != http.StatusForbidden, "%s", scope)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	post := func(t *testing.T, headers ...string) answer {
		t.Helper()
		return b.send(t, http.MethodPost, "/v1/bookings", strings.NewReader("{}"), append(headers, b.bearer(), asJSON)...)
	}
	for name, key := range map[string]string{
		"space": "a b", "too long": strings.Repeat("k", 256), "not ASCII": "schlüssel", "open quote": `"abc`,
		"empty quoted": `""`, "bad escape": `"a\b"`, "tab": "a\tb",
	} {
		post(t, "Idempotency-Key: "+key).refused(t, http.StatusBadRequest, httpapi.CodeKeyMalformed)
		require.NotEmpty(t, name)
	}
	post(t).refused(t, http.StatusBadRequest, httpapi.CodeKeyMissing)
	post(t, "Idempotency-Key:  ").refused(t, http.StatusBadRequest, httpapi.CodeKeyMissing)
	post(t, "Idempotency-Key: a", "Idempotency-Key: a").refused(t, http.StatusBadRequest, httpapi.CodeKeyMalformed)
	for _, key := range []string{strings.Repeat("k", 255), `"` + strings.Repeat("k", 255) + `"`, "!~", `"a\"b"`} {
		post(t, "Idempotency-Key: "+key).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	b.nothingWritten(t)
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	post := func(t *testing.T, headers ...string) answer {
		t.Helper()
		return b.send(t, http.MethodPost, "/v1/bookings", strings.NewReader("{}"), append(headers, b.bearer(), "Idempotency-Key: k")...)
	}
	for _, headers := range [][]string{
		{},
		{"Content-Type: "},
		{"Content-Type: text/plain"},
		{"Content-Type: application/x-www-form-urlencoded"},
		{"Content-Type: application/json-patch+json"},
		{"Content-Type: application/problem+json"},
		{"Content-Type: application/json; charset=utf-16"},
		{"Content-Type: application/json; charset"},
		{asJSON, "Content-Type: text/plain"},
		{asJSON, "Content-Encoding: gzip"},
	} {
		post(t, headers...).refused(t, http.StatusUnsupportedMediaType, httpapi.CodeUnsupportedMediaType)
	}
	for _, ct := range []string{"application/json", "Application/JSON", "application/json;charset=UTF-8", `application/json; charset="utf-8"`, "application/json; v=1"} {
		post(t, "Content-Type: "+ct, "Accept: text/html").refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	b.nothingWritten(t)
}

func TestBodiesOverTheLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const limit = 64 << 10
	pad := func(n int) string { return b.body(without("expected_total")) + strings.Repeat(" ", n) }
	size := len(pad(0))

	b.book(t, "k", pad(limit-size+1)).refused(t, http.StatusRequestEntityTooLarge, httpapi.CodeBodyTooLarge)
	chunked := struct{ io.Reader }{strings.NewReader(pad(limit - size + 1))} // of a length that the client does not know
	b.send(t, http.MethodPost, "/v1/bookings", chunked, b.bearer(), asJSON, "Idempotency-Key: k").
		refused(t, http.StatusRequestEntityTooLarge, httpapi.CodeBodyTooLarge)
	endless := io.LimitReader(zeros{}, 1<<30)
	b.send(t, http.MethodPost, "/v1/bookings", endless, b.bearer(), asJSON, "Idempotency-Key: k").
		refused(t, http.StatusRequestEntityTooLarge, httpapi.CodeBodyTooLarge)
	b.nothingWritten(t)

	fits := struct{ io.Reader }{strings.NewReader(pad(limit - size))}
	a := b.send(t, http.MethodPost, "/v1/bookings", fits, b.bearer(), asJSON, "Idempotency-Key: k")
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Incident 12: a query that means something to the client must not be left out of the fingerprint silently.
func TestIncident12_UnknownQueryParametersAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.send(t, http.MethodPost, "/v1/bookings?dry_run=true", strings.NewReader(b.body()), b.bearer(), asJSON, "Idempotency-Key: k").
		refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	require.Equal(t, "query.dry_run", p.Errors[0].Location)
	b.get(t, "/v1/resources?page=1").refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	b.nothingWritten(t)
	require.Equal(t, http.StatusOK, b.send(t, http.MethodGet, "/healthz?probe=1", nil).status, "probes may add one")
}

func TestUnroutedRequestsAreProblemsToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/booking", "/v1/bookings/", "/v1/bookings/a/b", "/v1//bookings", "/v1/../v1/resources", "/v1/./resources",
		"/v1/%2e%2e/healthz", "/docs/", "/docs/x", "/openapi.yaml", "/schemas/Booking.json", "/metrics", "/debug/pprof/", "/.env", "/%00",
	} {
		b.get(t, path).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	}
	for path, methods := range map[string][]string{
		"/v1/bookings":   {http.MethodPut, http.MethodDelete, http.MethodOptions, "BREW"},
		"/v1/bookings/x": {http.MethodPost, http.MethodPatch, http.MethodDelete},
		"/v1/resources":  {http.MethodPost},
		"/healthz":       {http.MethodPost},
	} {
		for _, method := range methods {
			a := b.send(t, method, path, nil, b.bearer())
			a.refused(t, http.StatusMethodNotAllowed, httpapi.CodeMethodNotAllowed)
			require.NotEmpty(t, a.header.Get("Allow"))
		}
	}
	require.NotContains(t, b.log.String(), "BREW", "a made-up method is not logged")
	require.Equal(t, http.StatusOK, b.send(t, http.MethodHead, "/v1/resources", nil, b.bearer()).status)
}

func TestSecurityHeadersAreOnEveryAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := map[string]bool{}
	for _, a := range []answer{b.get(t, "/v1/resources"), b.get(t, "/nowhere"), b.send(t, http.MethodGet, "/v1/resources", nil), b.get(t, "/docs")} {
		require.Equal(t, "no-store", a.header.Get("Cache-Control"))
		require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", a.header.Get("Referrer-Policy"))
		require.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'")
		id := a.header.Get("X-Request-Id")
		require.Len(t, id, 36)
		require.Contains(t, b.log.String(), id)
		ids[id] = true
	}
	require.Len(t, ids, 4)
}
