package e2e_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// sentinels are secrets that can be told from everything else. Each is known by its random core, which stays readable
// whatever is quoted or escaped around it.
type sentinels struct {
	database, broker, apiKey, webhook, cardToken, email, request string
}

func newSentinels() sentinels {
	core := func(name string) string { return "Sentinel" + name + rand.Text() }
	return sentinels{
		database: core("Database"), broker: core("Broker"), apiKey: core("Key"), webhook: core("Webhook"), cardToken: core("Card"),
		email: core("Mail"), request: core("Request"),
	}
}

// all is every sentinel by its name, but for those that are made by others: the API token and the client secret.
func (s sentinels) all() map[string]string {
	return map[string]string{
		"database password": s.database, "broker password": s.broker, "API key": s.apiKey, "webhook secret": s.webhook,
		"card token": s.cardToken, "e-mail": s.email, "refused request": s.request,
	}
}

// password is the database's, made of what breaks URLs.
func (s sentinels) password() string { return "%:" + s.database + "%2:@/" }

// login makes a role with the sentinel's password that may do what services do, and returns its URL.
func (s sentinels) login(b *bed) string {
	b.Helper()
	name := strings.ToLower(s.database)
	role := pgx.Identifier{name}.Sanitize()
	_, err := b.db.Pool.Exec(b.Context(), fmt.Sprintf(`
		CREATE ROLE %[1]s LOGIN PASSWORD '%[2]s';
		GRANT ALL ON ALL TABLES IN SCHEMA public TO %[1]s;
		GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO %[1]s`, role, s.password()))
	require.NoError(b, err)
	b.Cleanup(func() {
		_, err := b.db.Pool.Exec(contextOf(b.T), fmt.Sprintf(`DROP OWNED BY %[1]s; DROP ROLE %[1]s`, role))
		require.NoError(b, err)
	})
	return s.url(b, name)
}

// url is the bed's database, for somebody with the sentinel's password.
func (s sentinels) url(b *bed, name string) string {
	b.Helper()
	u, err := url.Parse(b.db.URL)
	require.NoError(b, err)
	u.User = url.UserPassword(name, s.password())
	return u.String()
}

// overheard is what was said to people and clients outside of logs, by where it was said.
type overheard map[string]string

func (o overheard) hits(needle string) (places []string) {
	for place, text := range o {
		if strings.Contains(text, needle) {
			places = append(places, place)
		}
	}
	return places
}

// refused sends a request that must be refused, and keeps the answer.
func (c customer) refused(t *testing.T, o overheard, method, path string, headers map[string]string, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.url+path, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.token)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.GreaterOrEqual(t, response.StatusCode, 400, string(text))
	require.Less(t, response.StatusCode, 500, string(text))
	o[fmt.Sprintf("answer %d to request %d", response.StatusCode, len(o))] = fmt.Sprint(response.Header, string(text))
}

// G9, incident 17: secrets that can be recognised are put wherever one comes in, everything runs at the most talkative
// log level, and what goes wrong in life goes wrong: cards that are declined or unknown, answers that are broken or
// lost, a key that is refused, databases that cannot be reached, requests that are refused. Expected: no secret in any
// log, row, event, page of metrics or answer, but where its owner keeps it.
func TestIncident17_NoSentinelAnywhere(t *testing.T) {
	t.Parallel()
	s := newSentinels()
	b := newBed(t, nil, "LOG_LEVEL=debug", "STRIPE_TIMEOUT=1s", "STRIPE_API_KEY=sk_test_"+s.apiKey, "STRIPE_WEBHOOK_SECRETS=whsec_"+s.webhook,
		"RETURN_URL=https://shop.example/paid", "RECONCILE_POLL=200ms")
	b.env = append(b.env, "DATABASE_URL="+s.login(b), "NATS_URL="+strings.Replace(b.nats.URL(), "://", "://holdfast:"+s.broker+"@", 1))
	said := overheard{}
	court := b.resource(10, time.Hour)
	api := b.service("api")
	api.metrics = freeAddress(t)
	api.env = append(api.env, "METRICS_ADDR="+api.metrics)
	api.Start()
	api.AwaitReady()
	_, err := b.sim.SetWebhooks(stripesim.Webhooks{Mode: "auto", URL: "http://" + api.address + "/v1/webhooks/stripe", Secret: "whsec_" + s.webhook})
	require.NoError(t, err)
	ada := b.customer("ada", api.address)

	services := []*service{api, b.start("worker"), b.start("reconciler")}
	booked := 0
	settle := func(methods ...string) (last string) {
		for _, method := range methods {
			booked++
			last = s.book(t, ada, fmt.Sprint("booking-", booked), wish{resource: court, method: method})
		}
		eventually(t, soon, "all is settled but for customers who have to act", func() bool {
			return count(b, `SELECT count(*) FROM outbox WHERE status NOT IN ('done', 'not_needed')`) == 0
		})
		return last
	}
	next := ada.prompt(t, settle("pm_card_chargeDeclined", "pm_"+s.cardToken, "pm_card_threeDSecure2Required"))
	faults := []string{"bad_body", "html_502", "error_500_after", "unauthorized_401", "hang_after"}
	for _, fault := range faults { // one after the other: one that hits another's re-send would come to nothing
		b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: fault})
		settle("pm_card_visa")
	}
	eventually(t, soon, "the provider has told of it, under the secret", func() bool {
		return count(b, `SELECT count(*) FROM provider_events WHERE via = 'webhook' AND status = 'settled'`) > 0
	})
	met := map[string]bool{}
	for _, entry := range b.sim.Journal(0) {
		met[entry.Fault] = true
	}
	for _, fault := range faults {
		require.True(t, met[fault], fault)
	}

	s.refuse(t, ada, said)
	s.command(b, said, value[string](b, `SELECT id::text FROM outbox WHERE kind = 'charge' LIMIT 1`))
	s.brokenStarts(b, ada, said)
	for _, page := range []string{"/docs", "/openapi.json"} {
		said[page] = ada.path(t, page).body
		require.NotEmpty(t, said[page])
	}

	kept := map[string][]string{ // by whom it belongs to, and by nobody else
		"e-mail":     {"public.bookings", "public.idempotency_keys"}, // the stored answer is the owner's
		"card token": {"public.payments", "public.provider_calls"},   // to be sent, and sent again
	}
	secrets := s.all()
	secrets["API token"], secrets["client secret"], secrets["the bank's page"] = ada.token, next.ClientSecret, next.URL
	secrets["any client secret"] = "_secret_"
	found := map[string][]string{}
	for name, secret := range secrets {
		require.NotEmpty(t, secret, name)
		places := b.everywhere(secret, services...)
		if name != "any client secret" { // the API's documentation explains what one is
			places = append(places, said.hits(secret)...)
		}
		if slices.Sort(places); len(places) > 0 {
			found[name] = places
		}
	}
	require.Equal(t, kept, found, "by whom each secret is kept, logged or told")
}

// book makes a booking for a customer with the sentinel's e-mail address.
func (s sentinels) book(t *testing.T, c customer, key string, w wish) string {
	t.Helper()
	body := bytes.ReplaceAll(w.body(), []byte("ada@"), []byte(s.email+"@"))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v1/bookings", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	a, err := c.do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.status, a.body)
	return a.booking(t).ID
}

// refuse makes requests that hold secrets where none belongs.
func (s sentinels) refuse(t *testing.T, c customer, said overheard) {
	t.Helper()
	const valid = `{"resource_id": "%s", "start": "%s", "end": "%s", "customer": {"name": "%s", "email": "%s"}, "payment_method": "%s"}`
	body := func(at int) string {
		values := []any{"018f0000-0000-7000-8000-000000000000", "2031-01-06T00:00:00Z", "2031-01-06T01:00:00Z", "Ada", "ada@example.org", "pm_card_visa"}
		values[at] = s.request + "\\u0000 " + s.cardToken
		return fmt.Sprintf(valid, values...)
	}
	keyed := map[string]string{"Idempotency-Key": "refused"}
	for at := range 6 {
		c.refused(t, said, http.MethodPost, "/v1/bookings", keyed, body(at))
	}
	for _, text := range []string{s.request, `"` + s.request + `"`, `{"a": ` + s.request + `}`, `{"payment_method": "4242424242424242", "customer": "` + s.request + `"}`} {
		c.refused(t, said, http.MethodPost, "/v1/bookings", keyed, text)
	}
	c.refused(t, said, http.MethodPost, "/v1/bookings", map[string]string{"Idempotency-Key": s.request + "\u00e9"}, body(0))
	c.refused(t, said, http.MethodPost, "/v1/bookings", map[string]string{"Idempotency-Key": "x", "Content-Type": s.request + "/x"}, body(0))
	c.refused(t, said, http.MethodPost, "/v1/webhooks/stripe", map[string]string{"Stripe-Signature": "t=1,v1=" + s.request}, `{"id": "`+s.request+`"}`)
	c.refused(t, said, http.MethodGet, "/v1/bookings/"+s.request, nil, "")
	c.refused(t, said, http.MethodGet, "/"+s.request+"?token="+c.token+"&client_secret="+s.request, nil, "")
	c.refused(t, said, http.MethodGet, "/v1/bookings?status="+s.request+"&cursor="+s.request, nil, "")
	c.refused(t, said, http.MethodGet, "/v1/bookings?cursor="+s.request, nil, "")
	for _, header := range []string{"Traceparent", "Cookie", "User-Agent", "X-Request-Id", "Referer", "X-Forwarded-For", "X-Api-Key"} {
		c.refused(t, said, http.MethodGet, "/nowhere", map[string]string{header: s.request}, "")
	}
	for _, authorization := range []string{"Bearer " + s.request, "Basic " + s.request, "Bearer hf_" + s.request, s.request, "Bearer " + c.token + s.request} {
		c.refused(t, said, http.MethodGet, "/v1/bookings", map[string]string{"Authorization": authorization}, "")
	}
}

// command runs what operators run, and keeps what it prints.
func (s sentinels) command(b *bed, said overheard, effect string) {
	b.Helper()
	for _, args := range [][]string{
		{"worker", "outbox", "list", "--json"},
		{"worker", "outbox", "show", effect},
		{"worker", "outbox", "replay", effect, "--reason", "drill", "--yes"},
		{"reconciler", "once"},
		{"api", "token", "list"},
	} {
		stdout, stderr, _ := b.command(args[0], args[1:]...)
		require.NotEmpty(b, stdout+stderr)
		said[strings.Join(args, " ")] = stdout + stderr
	}
}

// brokenStarts starts each binary with settings that are wrong and hold secrets. Each must say so and end, or, of an API
// whose database is away, say so and wait. What it says is in the logs, but for its answers, which are kept.
func (s sentinels) brokenStarts(b *bed, c customer, said overheard) {
	b.Helper()
	nobody, userinfo := freeAddress(b.T), "ada:"+s.database
	for _, broken := range []string{
		"DATABASE_URL=postgres://ada:%:" + s.database + "@127.0.0.1:5432/x", // no URL
		"DATABASE_URL=postgres://" + userinfo + "@127.0.0.1:port/x",
		"DATABASE_URL=postgres://" + userinfo + "@" + nobody + "/x",
		"DATABASE_URL=postgres://" + userinfo + "@" + nobody + "/x?sslmode=" + s.database,
		"DATABASE_URL=host=127.0.0.1 user=ada password=" + s.database + " '",
		"DATABASE_URL=" + s.url(b, "nobody"),  // refused
		"STRIPE_API_BASE=sk_test_" + s.apiKey, // pasted to the wrong place
		"NATS_URL=nats://ada:%:" + s.broker + "@127.0.0.1:port",
	} {
		for _, binary := range []string{"api", "worker", "reconciler"} {
			if strings.HasPrefix(broken, "NATS_URL") && binary != "worker" {
				continue
			}
			start := b.service(binary, broken)
			start.Start()
			eventually(b.T, soon, binary+" complains of "+broken, func() bool {
				return !start.running() || strings.Contains(read(b.T, start.log(1)), "not ready yet")
			})
			if start.running() {
				require.Equal(b, "api", binary)
				for _, path := range []string{"/readyz", "/v1/bookings"} {
					c.url = "http://" + start.address
					a := c.path(b.T, path)
					require.Equal(b, http.StatusServiceUnavailable, a.status, "a refused login is no bug of ours: %s", a.body)
					said[fmt.Sprint(path, " of an API without a database ", len(said))] = a.body
				}
				start.Stop()
				continue
			}
			require.NotZero(b, start.process().ExitCode(), "%s with %s", binary, broken)
			require.NotEmpty(b, read(b.T, start.log(1)))
		}
	}
}
