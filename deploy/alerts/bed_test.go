package alerts_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/finance"
	"holdfast/internal/httpapi"
	"holdfast/internal/postgres"
	"holdfast/internal/telemetry"
	"holdfast/internal/testdb"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

func TestMain(m *testing.M) { testdb.Main(m) }

const webhookSecret = domain.Secret("whsec_alerts")

type noWaker struct{}

func (noWaker) Wake(domain.EffectKind) {}

// bed is the three processes in one: their database, the provider, the API over HTTP, and one registry that holds what all of them
// show. Jobs and rounds are done by hand, so that a case says what happens.
type bed struct {
	testing.TB
	ctx      context.Context
	db       *testdb.DB
	registry *prometheus.Registry
	sim      *stripesim.Server
	engine   *payments.Payments
	desk     *payments.Desk
	drain    *outbox.Drain
	sweeper  *outbox.Sweeper
	bookings *bookings.Service
	small    *pgxpool.Pool // two connections: the API's pool, as far as its metrics tell
	api      *httptest.Server
	token    domain.Secret
	client   domain.ClientID
	resource domain.ResourceID
	start    time.Time
	trouble  func(ctx context.Context) error // what the API's requests for resources run into
	away     bool                            // webhooks find no database
}

func setup(t *testing.T) *bed {
	t.Helper()
	b := &bed{TB: t, ctx: t.Context(), db: testdb.New(t), registry: telemetry.NewRegistry(), start: time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)}
	logger := slog.New(slog.DiscardHandler)
	var err error
	b.sim, err = stripesim.Start(b.ctx, "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.sim.Close()) })
	gateway, err := stripe.New(stripe.Config{APIKey: "sk_test_alerts", BaseURL: b.sim.URL, Timeout: time.Minute})
	require.NoError(t, err)

	// worker and reconciler
	sends, delivery, revived, meter := payments.NewSendCounter(), outbox.NewDeliveryHistogram(), outbox.NewRevivedCounter(), payments.NewMeter()
	b.registry.MustRegister(sends, delivery, revived, meter, outbox.NewCollector(b.db.Pool, logger), payments.NewCollector(b.db.Pool, logger),
		payments.NewOverdueCollector(b.db.Pool, 20*time.Hour, logger), finance.NewCollector(b.db.Pool, logger))
	b.engine = payments.New(b.db.Pool, gateway, noWaker{}, payments.Config{
		Backoff: time.Millisecond, MaxSends: 3, Lease: time.Millisecond, SweepLag: time.Millisecond, Sends: sends, Meter: meter,
	}, logger)
	b.drain = outbox.NewDrain(b.db.Pool, acknowledging{}, outbox.DrainConfig{Delivery: delivery}, logger)
	b.sweeper = outbox.NewSweeper(b.db.Pool, outbox.SweepConfig{Revived: revived})

	// api
	b.small, err = pgxpool.New(b.ctx, b.db.URL+"&pool_max_conns=2")
	require.NoError(t, err)
	t.Cleanup(b.small.Close)
	refusals, requests := payments.NewCardRefusalCounter(), telemetry.NewRequestHistogram()
	b.registry.MustRegister(refusals, requests)
	b.registry.MustRegister(telemetry.NewPoolCollectors(b.small)...)
	b.bookings = bookings.New(b.db.Pool, noWaker{}, bookings.Config{Budget: time.Minute})
	b.desk = payments.NewDesk(b.bookings, noWaker{}, payments.CardLimits{PerClient: 1, Refusals: refusals}, logger)
	nowhere, err := pgxpool.New(b.ctx, "postgres://nobody@127.0.0.1:1/nothing")
	require.NoError(t, err)
	t.Cleanup(nowhere.Close)
	verifier, err := stripe.NewVerifier([]domain.Secret{webhookSecret})
	require.NoError(t, err)
	accounts := clients.New(b.db.Pool)
	api, err := httpapi.New(httpapi.Config{
		Clients: accounts, Bookings: b.bookings, Catalogue: troubled{b.bookings, b},
		Inbox: inbox{b, payments.NewInbox(b.db.Pool, verifier, meter), payments.NewInbox(nowhere, verifier, meter)}, Events: outbox.NewEvents(b.db.Pool),
		Payments: payments.NewViewer(b.db.Pool), Desk: b.desk,
		Ready:     func(context.Context) error { return nil },
		Transient: func(err error) bool { return postgres.IsTransient(err) || postgres.IsUnavailable(err) },
		Observe: func(route string, status int, took time.Duration) {
			requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
		},
	}, logger)
	require.NoError(t, err)
	b.api = httptest.NewServer(api)
	t.Cleanup(b.api.Close)

	made, err := accounts.Create(b.ctx, "shop", []clients.Scope{clients.BookingsRead, clients.BookingsWrite}, "", time.Hour)
	require.NoError(t, err)
	b.token = made.Token
	b.scan(`SELECT id FROM clients`, &b.client)
	resource, err := b.bookings.CreateResource(b.ctx, domain.Resource{
		Name: "Room", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 2500, Currency: "EUR"}, Hold: time.Hour,
	})
	require.NoError(t, err)
	b.resource = resource.ID
	_, err = b.engine.SweepEvents(b.ctx) // sets up its cursor
	require.NoError(t, err)
	return b
}

// acknowledging is a stream that takes everything.
type acknowledging struct{}

func (acknowledging) Publish(context.Context, outbox.Message) (outbox.Ack, error) {
	return outbox.Ack{Stream: "BOOKINGS", Sequence: 1}, nil
}

// troubled is the catalogue, with whatever the case lets its requests run into.
type troubled struct {
	httpapi.Catalogue
	b *bed
}

func (c troubled) Resources(ctx context.Context, after domain.ResourceID, limit int) ([]domain.Resource, error) {
	if c.b.trouble != nil {
		if err := c.b.trouble(ctx); err != nil {
			return nil, err
		}
	}
	return c.Catalogue.Resources(ctx, after, limit)
}

// inbox takes webhooks in, or finds no database to put them into.
type inbox struct {
	b             *bed
	here, nowhere *payments.Inbox
}

func (i inbox) Receive(ctx context.Context, signature string, body []byte) (string, error) {
	if i.b.away {
		return i.nowhere.Receive(ctx, signature, body)
	}
	return i.here.Receive(ctx, signature, body)
}

// book accepts a booking on an hour of its own.
func (b *bed) book(method string) domain.BookingID {
	b.Helper()
	b.start = b.start.Add(time.Hour)
	answer, err := b.bookings.Accept(b.ctx, b.client, b.start.String()[:16], bookings.Request{
		ResourceID: b.resource, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Ada", CustomerEmail: "ada@example.org", PaymentMethod: method,
	})
	require.NoError(b, err)
	id, err := domain.ParseID[domain.BookingID](path.Base(answer.Location))
	require.NoError(b, err)
	return id
}

// work runs the job of a booking's effect until nothing is left to do.
func (b *bed) work(id domain.BookingID, kind domain.EffectKind) {
	b.Helper()
	job := outbox.Job{Kind: kind}
	b.scan(`SELECT id FROM outbox WHERE booking_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1`, &job.Effect, id, kind)
	handle := b.drain.Work
	switch kind {
	case domain.EffectCharge:
		handle = b.engine.Charge
	case domain.EffectCancel:
		handle = b.engine.Fence
	case domain.EffectRefund:
		handle = b.engine.Refund
	case domain.EffectPublish, domain.EffectRefresh:
	}
	for range 20 {
		verdict, err := handle(b.ctx, job)
		require.NoError(b, err)
		if verdict.After == 0 {
			return
		}
	}
	require.Fail(b, "the job never came to an end")
}

// healthy is a booking that is paid for and told.
func (b *bed) healthy() domain.BookingID {
	b.Helper()
	id := b.book("pm_card_visa")
	b.work(id, domain.EffectCharge)
	b.work(id, domain.EffectPublish)
	return id
}

// post sends a request to the API and returns the answer's status.
func (b *bed) post(route, body string, headers ...string) int {
	b.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(b.ctx, method, b.api.URL+route, bytes.NewBufferString(body))
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+b.token.Reveal())
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := b.api.Client().Do(r)
	require.NoError(b, err)
	require.NoError(b, answer.Body.Close())
	return answer.StatusCode
}

// order books over HTTP, a day of its own.
func (b *bed) order(day string) int {
	b.Helper()
	return b.post("/v1/bookings", fmt.Sprintf(`{"resource_id":%q,"start":"%[2]sT10:00:00Z","end":"%[2]sT11:00:00Z",
		"customer":{"name":"Ada","email":"ada@example.org"},"payment_method":"pm_card_visa"}`, b.resource, day), "Idempotency-Key", day)
}

// deliver posts a webhook of an event that was made so long ago, signed with a secret.
func (b *bed) deliver(event string, ago time.Duration, secret domain.Secret) int {
	b.Helper()
	body := fmt.Sprintf(`{"id":%q,"type":"payment_intent.succeeded","created":%d,"data":{"object":{"id":"pi_1","object":"payment_intent"}}}`,
		event, time.Now().Add(-ago).Unix())
	at := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	fmt.Fprintf(mac, "%d.%s", at, body)
	return b.post("/v1/webhooks/stripe", body, "Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil))))
}

func (b *bed) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.db.Pool.Exec(b.ctx, sql, args...)
	require.NoError(b, err)
}

func (b *bed) scan(sql string, into any, args ...any) {
	b.Helper()
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, sql, args...).Scan(into))
}

// sendAsUs sends a request to the provider under one of our keys.
func (b *bed) sendAsUs(key, path, form string) int {
	b.Helper()
	r, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.sim.URL+path, bytes.NewBufferString(form))
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer sk_test_alerts")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", key)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(b, err)
	require.NoError(b, answer.Body.Close())
	return answer.StatusCode
}
