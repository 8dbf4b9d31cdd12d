package console_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/docs"
	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/console"
	"holdfast/internal/finance"
	"holdfast/internal/httpapi"
	"holdfast/internal/operator"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

// bed is the console inside the API's handler, on a real database and a provider over HTTP. Jobs are run by hand.
type bed struct {
	testing.TB
	db       *testdb.DB
	sim      *stripesim.Server
	money    *payments.Payments
	bookings *bookings.Service
	clients  *clients.Service
	resource domain.ResourceID
	client   domain.ClientID
	start    time.Time // of the next booking
	url      string    // of the API
	operator domain.Secret
	books    *finance.Comparing
}

type noWaker struct{}

func (noWaker) Wake(domain.EffectKind) {}

// evil is what somebody writes who wants it to run.
const evil = `"'><script>window.pwned=1</script><img src=x onerror="window.pwned=1">{{.}}`

func setup(t *testing.T, change ...func(*console.Config)) *bed {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	b := &bed{TB: t, db: testdb.New(t), start: time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)}
	b.clients, b.bookings = clients.New(b.db.Pool), bookings.New(b.db.Pool, noWaker{}, bookings.Config{Budget: time.Minute})
	var err error
	b.sim, err = stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.sim.Close()) })
	gateway, err := stripe.New(stripe.Config{APIKey: "sk_test_console", BaseURL: b.sim.URL, Timeout: 20 * time.Second})
	require.NoError(t, err)
	b.money = payments.New(b.db.Pool, gateway, noWaker{}, payments.Config{Backoff: time.Millisecond, MaxSends: 2, Lease: time.Millisecond}, quiet)
	b.books = finance.NewComparing(t.Context(), time.Minute, func(tell func(finance.Progress)) *finance.Desk {
		return finance.New(b.db.Pool, nil, finance.Config{Fresh: time.Minute, Progress: tell}, quiet)
	})
	config := console.Config{
		Books:   b.books,
		Desk:    operator.New(b.db.Pool, b.bookings, b.money, nil, operator.Config{SecondPerson: map[string]int64{"EUR": 10_000}}, quiet),
		Clients: b.clients, Sessions: clients.NewSessions(b.db.Pool, clients.SessionLimits{}),
		Transient: func(err error) bool { return postgres.IsTransient(err) || postgres.IsUnavailable(err) },
		Refresh:   time.Second, Runbook: docs.Runbook, SignInsPerMinute: 1000,
	}
	for _, f := range change {
		f(&config)
	}
	server := httptest.NewUnstartedServer(nil)
	b.url = "http://" + server.Listener.Addr().String()
	if config.OIDC != nil && config.OIDC.RedirectURL == "" {
		config.OIDC.RedirectURL = b.url + console.Root + "/oidc/callback"
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	pages, err := console.New(config, log)
	require.NoError(t, err)
	api, err := httpapi.New(httpapi.Config{
		Clients: b.clients, Bookings: b.bookings, Catalogue: b.bookings, Events: outbox.NewEvents(b.db.Pool), Payments: payments.NewViewer(b.db.Pool),
		Desk: payments.NewDesk(b.bookings, noWaker{}, payments.CardLimits{}, quiet), Console: pages,
	}, quiet)
	require.NoError(t, err)

	server.Config.Handler = api
	server.Start()
	t.Cleanup(server.Close)

	made, err := b.clients.Create(t.Context(), "acme "+evil, []clients.Scope{clients.BookingsRead, clients.BookingsWrite}, "", time.Hour)
	require.NoError(t, err)
	b.client = made.ClientID
	b.operator = b.token("Olga", clients.Operator)
	b.newResource(2500)
	return b
}

func (b *bed) newResource(price int64) {
	b.Helper()
	r, err := b.bookings.CreateResource(b.Context(), domain.Resource{
		Name: "Court " + evil, TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: price, Currency: "EUR"}, Hold: time.Hour,
	})
	require.NoError(b, err)
	b.resource = r.ID
}

func (b *bed) token(client string, scopes ...clients.Scope) domain.Secret {
	b.Helper()
	made, err := b.clients.Create(b.Context(), client, scopes, "", time.Hour)
	require.NoError(b, err)
	return made.Token
}

// book accepts a booking on its own hour and returns it and its charge.
func (b *bed) book() (domain.BookingID, domain.EffectID) {
	b.Helper()
	b.start = b.start.Add(time.Hour)
	answer, err := b.bookings.Accept(b.Context(), b.client, domain.NewID[domain.EffectID]().String(), bookings.Request{
		ResourceID: b.resource, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Ada " + evil, CustomerEmail: "ada@example.org",
		PaymentMethod: "pm_card_visa", Metadata: map[string]string{"note": evil},
	})
	require.NoError(b, err)
	id, err := domain.ParseID[domain.BookingID](path.Base(answer.Location))
	require.NoError(b, err)
	return id, b.effect(id, domain.EffectCharge)
}

// paid is a booking whose charge has happened.
func (b *bed) paid() domain.BookingID {
	b.Helper()
	id, charge := b.book()
	b.work(charge)
	return id
}

// work carries a charge out.
func (b *bed) work(charge domain.EffectID) {
	b.Helper()
	for range 20 {
		verdict, err := b.money.Charge(b.Context(), outbox.Job{Effect: charge, Kind: domain.EffectCharge})
		require.NoError(b, err)
		if verdict.After == 0 {
			return
		}
	}
	require.Fail(b, "the charge never came to an end")
}

func (b *bed) effect(id domain.BookingID, kind domain.EffectKind) domain.EffectID {
	b.Helper()
	return scan[domain.EffectID](b, `SELECT id FROM outbox WHERE booking_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1`, id, kind)
}

// park leaves an effect to a person.
func (b *bed) park(id domain.EffectID, lastError string) {
	b.Helper()
	b.exec(`UPDATE outbox SET status = 'parked', attempts = 6, last_error = $2, created_at = created_at - interval '26 min' WHERE id = $1`, id, lastError)
}

// outage leaves charges behind as an hour of trouble would: parked, in doubt, late and on their way.
func (b *bed) outage() (parked domain.EffectID) {
	b.Helper()
	for i, sql := range []string{
		`UPDATE outbox SET status = 'in_doubt', attempts = 3, last_error = 'no answer within 30s', created_at = created_at - interval '9 min' WHERE id = $1`,
		`UPDATE outbox SET status = 'in_doubt', attempts = 2, last_error = 'api_error 500', created_at = created_at - interval '2 h' WHERE id = $1`,
		`UPDATE outbox SET attempts = 4, last_error = 'connection refused', created_at = created_at - interval '40 min' WHERE id = $1`,
		`UPDATE outbox SET created_at = created_at - interval '3 days' WHERE id = $1`,
		`UPDATE outbox SET attempts = 0 WHERE id = $1`,
	} {
		id, charge := b.book()
		b.exec(sql, charge)
		if i == 2 {
			event := b.effect(id, domain.EffectPublish)
			b.park(event, "the event has 1200000 bytes, and the stream takes 1048576 "+evil)
		}
	}
	_, parked = b.book()
	b.park(parked, "the provider refuses: "+evil)
	return parked
}

func (b *bed) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), sql, args...)
	require.NoError(b, err)
}

func scan[T any](b *bed, sql string, args ...any) (v T) {
	b.Helper()
	require.NoError(b, b.db.Pool.QueryRow(b.Context(), sql, args...).Scan(&v))
	return v
}

func (b *bed) audits() int { return scan[int](b, `SELECT count(*) FROM operator_actions`) }

// visitor is a browser without a screen: it keeps cookies, and follows redirects.
type visitor struct {
	*bed
	http *http.Client
}

type answer struct {
	status int
	header http.Header
	at     string // the address in the end
	body   string
}

func (b *bed) visitor() *visitor {
	b.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(b, err)
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	return &visitor{bed: b, http: &http.Client{Jar: jar, Transport: transport}}
}

// signedIn is somebody who has signed in with a token.
func (b *bed) signedIn(token domain.Secret) *visitor {
	b.Helper()
	v := b.visitor()
	a := v.post("/sign-in", "token", token.Reveal())
	require.Equal(b, http.StatusOK, a.status, a.body)
	require.Equal(b, "/console/", a.at)
	return v
}

func (v *visitor) do(r *http.Request) answer {
	v.Helper()
	resp, err := v.http.Do(r)
	require.NoError(v, err)
	defer func() { require.NoError(v, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(v, err)
	return answer{resp.StatusCode, resp.Header, resp.Request.URL.RequestURI(), string(text)}
}

func (v *visitor) request(method, at string, body io.Reader, headers ...string) *http.Request {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), method, v.url+console.Root+at, body)
	require.NoError(v, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (v *visitor) get(at string, headers ...string) answer {
	v.Helper()
	return v.do(v.request(http.MethodGet, at, nil, headers...))
}

// post sends a form as it is given: names and values in turn.
func (v *visitor) post(at string, fields ...string) answer {
	v.Helper()
	return v.do(v.form(at, fields...))
}

func (v *visitor) form(at string, fields ...string) *http.Request {
	v.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return v.request(http.MethodPost, at, strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded")
}

var hidden = regexp.MustCompile(`name="(csrf|seen|id)" value="([^"]*)"`)

// fields reads the hidden fields of the page at an address, for a form that is sent from there.
func (v *visitor) fields(at string) []string {
	v.Helper()
	a := v.get(at)
	require.Equal(v, http.StatusOK, a.status, a.body)
	var all []string
	for _, m := range hidden.FindAllStringSubmatch(a.body, -1) {
		if slices.Contains(all, m[1]) {
			continue // the same in each form
		}
		all = append(all, m[1], m[2])
	}
	require.NotEmpty(v, all)
	return all
}

func secret(s string) domain.Secret { return domain.Secret(s) }
