package operator_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/operator"
	"holdfast/internal/testdb"
	"holdfast/internal/testnats"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

// moneyBed is a desk on real parts: PostgreSQL, the provider over HTTP, and a broker where a test wants one. Jobs are run by
// hand, so that a test says when, how often and by whom.
type moneyBed struct {
	testing.TB
	ctx       context.Context
	db        *testdb.DB
	sim       *stripesim.Server
	gateway   *provider
	publisher outbox.Publisher // nil: no broker
	bookings  *bookings.Service
	client    domain.ClientID
	resource  domain.ResourceID
	config    payments.Config
	desk      operator.Config
	start     time.Time // of the next booking
}

// provider is the real gateway, behind which somebody may have changed the amount of every intent that is made, or that is listed.
type provider struct {
	payments.Gateway

	spoilt bool
	dies   bool // the process, once it has read all
}

var errDied = errors.New("the process died")

func (p *provider) Refunds(ctx context.Context, intent string) ([]payments.ProviderRefund, error) {
	found, err := p.Gateway.Refunds(ctx, intent)
	if p.dies {
		panic(errDied)
	}
	return found, err
}

func (p *provider) Send(ctx context.Context, c payments.Call) payments.Outcome {
	out := p.Gateway.Send(ctx, c)
	if p.spoilt && c.Operation == domain.OpCreate && out.Intent != nil {
		out.Intent.Amount.Amount++
	}
	return out
}

func (p *provider) IntentsCreated(ctx context.Context, from, to time.Time) ([]payments.Intent, error) {
	found, err := p.Gateway.IntentsCreated(ctx, from, to)
	for i := range found {
		if p.spoilt {
			found[i].Amount.Amount++
		}
	}
	return found, err
}

var quiet = slog.New(slog.DiscardHandler)

const apiKey, webhookSecret = "sk_test_operators", domain.Secret("whsec_operators")

func newMoneyBed(t *testing.T) *moneyBed {
	t.Helper()
	b := &moneyBed{
		TB: t, ctx: t.Context(), db: testdb.New(t), start: time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC),
		config: payments.Config{Backoff: time.Millisecond, Poll: 10 * time.Millisecond, MaxSends: 3, Lease: time.Millisecond},
	}
	var err error
	b.sim, err = stripesim.Start(b.ctx, "127.0.0.1:0", stripesim.Config{LockWait: 50 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.sim.Close()) })
	gateway, err := stripe.New(stripe.Config{APIKey: apiKey, BaseURL: b.sim.URL, Timeout: time.Minute})
	require.NoError(t, err)
	b.gateway = &provider{Gateway: gateway}
	b.client = domain.NewID[domain.ClientID]()
	b.exec(`INSERT INTO clients (id, name) VALUES ($1, 'test')`, b.client)
	b.bookings = bookings.New(b.db.Pool, noWaker{}, bookings.Config{Budget: time.Minute})
	r, err := b.bookings.CreateResource(b.ctx, domain.Resource{
		Name: "Room <1>", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 2500, Currency: "EUR"}, Hold: time.Hour,
	})
	require.NoError(t, err)
	b.resource = r.ID
	return b
}

// withBroker gives the bed a broker.
func (b *moneyBed) withBroker() *moneyBed {
	b.Helper()
	stream, err := outbox.NewJetStream(testnats.New(b.TB).Connect(b.TB), outbox.StreamConfig{}, quiet)
	require.NoError(b, err)
	b.publisher = stream
	return b
}

// engine is one process's engine. Several of them are several processes, as far as database and provider can tell.
func (b *moneyBed) engine() *payments.Payments { return b.engineOn(b.db.Pool) }

func (b *moneyBed) engineOn(pool *pgxpool.Pool) *payments.Payments {
	return payments.New(pool, b.gateway, noWaker{}, b.config, quiet)
}

func (b *moneyBed) operators() *operator.Desk { return b.operatorsOn(b.db.Pool) }

func (b *moneyBed) operatorsOn(pool *pgxpool.Pool) *operator.Desk {
	return operator.New(pool, bookings.New(pool, noWaker{}, bookings.Config{Budget: time.Minute}), b.engineOn(pool), b.publisher, b.desk, quiet)
}

// book accepts a booking on an hour of its own and under a key of its own.
func (b *moneyBed) book(method string) domain.BookingID {
	b.Helper()
	b.start = b.start.Add(time.Hour)
	answer, err := b.bookings.Accept(b.ctx, b.client, domain.NewID[domain.EffectID]().String(), bookings.Request{
		ResourceID: b.resource, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Ada Lovelace", CustomerEmail: "ada@example.org",
		PaymentMethod: method,
	})
	require.NoError(b, err)
	id, err := domain.ParseID[domain.BookingID](path.Base(answer.Location))
	require.NoError(b, err)
	return id
}

// effect is a booking's newest effect of a kind.
func (b *moneyBed) effect(id domain.BookingID, kind domain.EffectKind) outbox.Effect {
	b.Helper()
	var e domain.EffectID
	b.scan(`SELECT id FROM outbox WHERE booking_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1`, &e, id, kind)
	return b.load(e)
}

func (b *moneyBed) load(id domain.EffectID) outbox.Effect {
	b.Helper()
	e, err := outbox.Load(b.ctx, b.db.Pool, id)
	require.NoError(b, err)
	return e
}

// turn runs the job of a booking's newest effect of a kind once, and tells when it wants to run again.
func (b *moneyBed) turn(id domain.BookingID, kind domain.EffectKind) time.Duration {
	b.Helper()
	return b.run(b.effect(id, kind))
}

func (b *moneyBed) run(e outbox.Effect) time.Duration {
	b.Helper()
	p := b.engine()
	handle := map[domain.EffectKind]outbox.Handler{domain.EffectCharge: p.Charge, domain.EffectCancel: p.Fence, domain.EffectRefund: p.Refund}[e.Kind]
	if e.Kind == domain.EffectPublish {
		handle = outbox.NewDrain(b.db.Pool, b.publisher, outbox.DrainConfig{}, quiet).Work
	}
	verdict, err := handle(b.ctx, outbox.Job{Effect: e.ID, Kind: e.Kind})
	require.NoError(b, err)
	return verdict.After
}

// work runs the job until nothing is left to do for it.
func (b *moneyBed) work(id domain.BookingID, kind domain.EffectKind) {
	b.Helper()
	b.until(func() bool { return b.turn(id, kind) == 0 })
}

// heal lets workers and reconciler do what there is for a booking, until nothing of its money is pending or in doubt.
func (b *moneyBed) heal(id domain.BookingID) {
	b.Helper()
	b.until(func() bool {
		var pending []domain.EffectID
		b.scan(`SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM outbox
			WHERE booking_id = $1 AND kind IN ('charge', 'cancel', 'refund') AND status = 'pending'`, &pending, id)
		for _, e := range pending {
			b.run(b.load(e))
		}
		b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE booking_id = $1 AND status = 'in_doubt'`, id)
		_, err := b.engine().ResolveDoubt(b.ctx)
		require.NoError(b, err)
		return b.count(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind IN ('charge', 'cancel', 'refund') AND status IN ('pending', 'in_doubt')`, id) == 0
	})
}

// confirmed is a booking that is paid.
func (b *moneyBed) confirmed() domain.BookingID {
	b.Helper()
	id := b.book("pm_card_visa")
	b.work(id, domain.EffectCharge)
	b.stands(id, "confirmed", "succeeded")
	return id
}

// end lets the hold of a booking be over, and be swept.
func (b *moneyBed) end(id domain.BookingID) {
	b.Helper()
	b.exec(`UPDATE bookings SET hold_expires_at = clock_timestamp() WHERE id = $1`, id)
	_, err := b.engine().SweepHold(b.ctx)
	require.NoError(b, err)
}

// cancel cancels a paid booking, as its customer.
func (b *moneyBed) cancel(id domain.BookingID) {
	b.Helper()
	desk := payments.NewDesk(b.bookings, noWaker{}, payments.CardLimits{}, quiet)
	show := func(payments.View, payments.Cancellation) (int, []byte, error) { return 200, []byte(`{}`), nil }
	preview, err := payments.NewViewer(b.db.Pool).Cancellation(b.ctx, b.client, id)
	require.NoError(b, err)
	_, err = desk.Cancel(b.ctx, payments.Ask{Client: b.client, Booking: id, Key: domain.NewID[domain.EffectID]().String()}, &preview.Refund, show)
	require.NoError(b, err)
	b.stands(id, "cancelled", "succeeded")
}

func (b *moneyBed) stands(id domain.BookingID, booking, payment string) {
	b.Helper()
	var stands []string
	b.scan(`SELECT ARRAY[b.status, p.status] FROM bookings b JOIN payments p ON p.booking_id = b.id WHERE b.id = $1`, &stands, id)
	require.Equal(b, []string{booking, payment}, stands)
}

func (b *moneyBed) intent(id domain.BookingID) (intent string) {
	b.Helper()
	b.scan(`SELECT coalesce(provider_intent_id, '') FROM payments WHERE booking_id = $1`, &intent, id)
	return intent
}

func (b *moneyBed) happens(a stripesim.Action) {
	b.Helper()
	_, err := b.sim.Act(a)
	require.NoError(b, err)
}

// hear delivers every event of the provider's about an intent whose type begins so, and acts on them.
func (b *moneyBed) hear(kind, intent string) {
	b.Helper()
	verifier, err := stripe.NewVerifier([]domain.Secret{webhookSecret})
	require.NoError(b, err)
	heard := 0
	for _, body := range b.told() {
		var event struct {
			Type string `json:"type"`
		}
		require.NoError(b, json.Unmarshal(body, &event))
		if !strings.HasPrefix(event.Type, kind) || !strings.Contains(string(body), intent) {
			continue
		}
		at := time.Now().Unix()
		mac := hmac.New(sha256.New, []byte(webhookSecret.Reveal()))
		fmt.Fprintf(mac, "%d.%s", at, body)
		_, err := payments.NewInbox(b.db.Pool, verifier, nil).Receive(b.ctx, fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil))), body)
		require.NoError(b, err)
		heard++
	}
	require.NotZero(b, heard)
	b.until(func() bool {
		_, err := b.engine().SettleEvent(b.ctx)
		require.NoError(b, err)
		return b.count(`SELECT count(*) FROM provider_events WHERE status = 'pending'`) == 0
	})
}

// told are the provider's own events, as it would deliver them.
func (b *moneyBed) told() []json.RawMessage {
	b.Helper()
	request, err := http.NewRequestWithContext(b.ctx, http.MethodGet, b.sim.URL+"/v1/events?limit=100", http.NoBody)
	require.NoError(b, err)
	request.Header.Set("Authorization", "Bearer "+apiKey)
	response, err := http.DefaultClient.Do(request)
	require.NoError(b, err)
	defer func() { require.NoError(b, response.Body.Close()) }()
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	require.NoError(b, json.NewDecoder(response.Body).Decode(&list))
	return list.Data
}

func (b *moneyBed) until(so func() bool) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); {
		require.True(b, time.Now().Before(deadline), "it never comes to an end")
		select {
		case <-time.After(time.Millisecond):
		case <-b.ctx.Done():
		}
	}
}

func (b *moneyBed) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.db.Pool.Exec(context.WithoutCancel(b.ctx), sql, args...)
	require.NoError(b, err)
}

func (b *moneyBed) scan(sql string, into any, args ...any) {
	b.Helper()
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, sql, args...).Scan(into))
}

func (b *moneyBed) count(sql string, args ...any) (n int) {
	b.Helper()
	b.scan(sql, &n, args...)
	return n
}
