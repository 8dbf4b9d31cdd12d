package bookings_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
)

// Experiment one (G1): fifty simultaneous identical requests. Expected: one booking, fifty answers of the same bytes.
func TestAccept_FiftyIdenticalRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := request(b.resource(1), 0)
	answers := make([]bookings.Response, 50)
	errs := make([]error, 50)
	together(50, func(i int) { answers[i], errs[i] = b.service.Accept(b.ctx, b.client, "key", r) })
	fresh := 0
	for i, a := range answers {
		require.NoError(t, errs[i])
		require.Equal(t, 201, a.Status)
		require.Equal(t, string(answers[0].Body), string(a.Body))
		require.Equal(t, answers[0].Location, a.Location)
		require.True(t, answers[0].KeyExpires.Equal(a.KeyExpires))
		if !a.Replayed {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, each(1, 0), b.rows())
	require.Equal(t, int64(1), b.woken.Load(), "only a new booking wakes a worker")
}

// Experiment two (G1, G9): the same key with any other parameter is refused, reveals nothing and makes nothing.
func TestAccept_OtherParametersAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, other := b.resource(1), b.resource(1)
	r := request(first, 0)
	_, err := b.service.Accept(b.ctx, b.client, "key", r)
	require.NoError(t, err)
	for name, change := range map[string]func(*bookings.Request){
		"resource":       func(r *bookings.Request) { r.ResourceID = other },
		"start":          func(r *bookings.Request) { r.Start = r.Start.Add(-time.Hour) },
		"end":            func(r *bookings.Request) { r.End = r.End.Add(time.Hour) },
		"quantity":       func(r *bookings.Request) { r.Quantity = 2 },
		"expected total": func(r *bookings.Request) { r.Expected = &domain.Money{Amount: 5000, Currency: "EUR"} },
		"name":           func(r *bookings.Request) { r.CustomerName = "Bob" },
		"email":          func(r *bookings.Request) { r.CustomerEmail = "bob@example.org" },
		"payment method": func(r *bookings.Request) { r.PaymentMethod = "pm_card_mastercard" },
		"metadata":       func(r *bookings.Request) { r.Metadata = map[string]string{"a": "1"} },
	} {
		changed := r
		change(&changed)
		answer, err := b.service.Accept(b.ctx, b.client, "key", changed)
		require.ErrorIs(t, err, bookings.ErrKeyReused, name)
		require.Zero(t, answer, name)
	}
	require.Equal(t, each(1, 0), b.rows())
}

// What means the same has the same fingerprint: zones, the default quantity, the order of metadata.
func TestAccept_SameMeaningIsAReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := request(b.resource(1), 0)
	first, err := b.service.Accept(b.ctx, b.client, "key", r)
	require.NoError(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	r.Start, r.End, r.Quantity = r.Start.In(berlin), r.End.In(berlin), 0
	r.Metadata = map[string]string{"a": "1", "b": "2"}
	again, err := b.service.Accept(b.ctx, b.client, "key", r)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, string(first.Body), string(again.Body))
}

// G1: two keys are two intentions, even with equal parameters: two places, two bookings.
func TestAccept_TwoKeysAreTwoIntentions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := request(b.resource(2), 0)
	for _, key := range []string{"one", "two"} {
		answer, err := b.service.Accept(b.ctx, b.client, key, r)
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status)
	}
	require.Equal(t, each(2, 0), b.rows())
}

// Incident 12: keys of two clients have nothing to do with each other (G1, G9).
func TestIncident12_KeysAreScopedToTheClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := request(b.resource(2), 0)
	stranger := domain.NewID[domain.ClientID]()
	first, err := b.service.Accept(b.ctx, b.client, "key", r)
	require.NoError(t, err)
	second, err := b.service.Accept(b.ctx, stranger, "key", r)
	require.NoError(t, err)
	require.False(t, second.Replayed)
	require.NotEqual(t, first.Location, second.Location)
	require.Equal(t, each(2, 0), b.rows())
}

// G1: after its answer has expired the key still names the one booking, and never makes a second.
func TestAccept_ExpiredKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := request(b.resource(2), 0)
	first, err := b.service.Accept(b.ctx, b.client, "key", r)
	require.NoError(t, err)
	b.exec(`UPDATE idempotency_keys SET response_expires_at = clock_timestamp()`)
	_, err = b.service.Accept(b.ctx, b.client, "key", r)
	var expired *bookings.KeyExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, first.Location, expired.Location)
	changed := r
	changed.CustomerName = "Bob"
	_, err = b.service.Accept(b.ctx, b.client, "key", changed)
	require.ErrorIs(t, err, bookings.ErrKeyReused, "an expired answer reveals no more than a kept one")
	require.Equal(t, each(1, 0), b.rows())
}

// A twin whose first is still deciding waits a bounded time and learns nothing; once the first has rolled back, the
// same request makes the booking (G1).
func TestAccept_FirstStillRunningThenRolledBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := request(b.resource(1), 0)
	tx, err := b.db.Pool.Begin(b.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(b.ctx, `
		INSERT INTO idempotency_keys (client_id, method, route, key, fingerprint, fingerprint_version, created_at, response_expires_at)
		VALUES ($1, 'POST', '/v1/bookings', 'key', '', 1, now(), now())`, b.client)
	require.NoError(t, err)
	_, err = b.service.Accept(b.ctx, b.client, "key", r)
	require.ErrorIs(t, err, bookings.ErrInProgress)
	require.NoError(t, tx.Rollback(b.ctx))
	answer, err := b.service.Accept(b.ctx, b.client, "key", r)
	require.NoError(t, err)
	require.False(t, answer.Replayed)
	require.Equal(t, each(1, 0), b.rows())
}

// The slot's rival has not decided: that is busy, neither a refusal nor a booking, and the key stays free.
func TestAccept_SlotLockTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.resource(1)
	tx, err := b.db.Pool.Begin(b.ctx)
	require.NoError(t, err)
	_, err = tx.Exec(b.ctx, `
		INSERT INTO allocations (booking_id, resource_id, place, during)
		VALUES (gen_random_uuid(), $1, 1, '[2030-05-06 10:00Z, 2030-05-06 12:00Z)')`, id)
	require.NoError(t, err)
	impatient := bookings.New(b.pool, b, bookings.Config{Budget: 700 * time.Millisecond})
	_, err = impatient.Accept(b.ctx, b.client, "key", request(id, 0))
	require.ErrorIs(t, err, domain.ErrBusy)
	// The statement that was given up may still wait, and would commit if the slot came free now: busy promises nothing.
	require.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, tx.Rollback(b.ctx))
	require.Equal(t, each(0, 0), b.rows())
	answer, err := b.service.Accept(b.ctx, b.client, "key", request(id, 0))
	require.NoError(t, err)
	require.Equal(t, 201, answer.Status)
}

// Refusals that no retry can change leave nothing behind, the key included.
func TestAccept_NothingWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := b.resource(1)
	cheap, err := b.service.CreateResource(b.ctx, domain.Resource{
		Name: "Cheap", TimeZone: "UTC", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 24, Currency: "USD"}, Hold: time.Minute,
	})
	require.NoError(t, err)
	dear, err := b.service.CreateResource(b.ctx, domain.Resource{
		Name: "Dear", TimeZone: "UTC", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 99_999_999, Currency: "USD"}, Hold: time.Minute,
	})
	require.NoError(t, err)

	_, err = b.service.Accept(b.ctx, b.client, "key", request(domain.NewID[domain.ResourceID](), 0))
	require.ErrorIs(t, err, domain.ErrNotFound)
	odd := request(good, 0)
	odd.End = odd.End.Add(10 * time.Minute)
	many := request(good, 0)
	many.Quantity = 2
	for want, r := range map[string]bookings.Request{
		"end validation_failed": odd, "quantity validation_failed": many,
		"resource_id amount_too_small": request(cheap.ID, 0), "resource_id amount_too_large": request(dear.ID, 0),
	} {
		_, err := b.service.Accept(b.ctx, b.client, "key", r)
		var invalid *domain.ValidationError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, want, invalid.Field+" "+invalid.Code)
	}
	require.Equal(t, each(0, 0), b.rows())
	answer, err := b.service.Accept(b.ctx, b.client, "key", request(good, 0))
	require.NoError(t, err, "the key is still free")
	require.Equal(t, 201, answer.Status)
}

// A business refusal is a decision: stored, and replayed after the slot is free (G1, G2).
func TestAccept_ARefusalStaysARefusal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.resource(1)
	_, err := b.service.Accept(b.ctx, b.client, "winner", request(id, 0))
	require.NoError(t, err)
	refused, err := b.service.Accept(b.ctx, b.client, "loser", request(id, 1))
	require.NoError(t, err)
	require.Equal(t, 409, refused.Status)
	require.Equal(t, "slot_unavailable", code(refused))
	require.Empty(t, refused.Location)
	b.exec(`UPDATE allocations SET active = false`)
	again, err := b.service.Accept(b.ctx, b.client, "loser", request(id, 1))
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, string(refused.Body), string(again.Body))

	cheaper := request(id, 5)
	cheaper.Expected = &domain.Money{Amount: 4999, Currency: "EUR"}
	changed, err := b.service.Accept(b.ctx, b.client, "price", cheaper)
	require.NoError(t, err)
	require.Equal(t, "price_changed", code(changed))
	require.Equal(t, 1, b.count(`SELECT count(*) FROM bookings`))
	require.Equal(t, 1, b.count(`SELECT count(*) FROM river_job`))
}

// The body that SQL renders is the booking that its owner then reads.
func TestAccept_BodyTellsTheRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answer, err := b.service.Accept(b.ctx, b.client, "key", request(b.resource(1), 0))
	require.NoError(t, err)
	var body struct {
		ID            domain.BookingID  `json:"id"`
		Status        string            `json:"status"`
		Start         domain.Instant    `json:"start"`
		Total         domain.Money      `json:"total"`
		Metadata      map[string]string `json:"metadata"`
		HoldExpiresAt domain.Instant    `json:"hold_expires_at"`
		CreatedAt     domain.Instant    `json:"created_at"`
	}
	require.NoError(t, json.Unmarshal(answer.Body, &body))
	stored, err := bookings.Get(b.ctx, b.pool, b.client, body.ID)
	require.NoError(t, err)
	require.Equal(t, "/v1/bookings/"+stored.ID.String(), answer.Location)
	require.Equal(t, string(stored.Status), body.Status)
	require.Equal(t, domain.Money{Amount: 5000, Currency: "EUR"}, stored.Total)
	require.Equal(t, stored.Total, body.Total)
	require.Equal(t, stored.Metadata, body.Metadata)
	require.Equal(t, domain.Instant(stored.Start).String(), body.Start.String())
	require.Equal(t, domain.Instant(stored.HoldExpiresAt).String(), body.HoldExpiresAt.String())
	require.Equal(t, 15*time.Minute, stored.HoldExpiresAt.Sub(stored.CreatedAt))
	_, err = bookings.Get(b.ctx, b.pool, domain.NewID[domain.ClientID](), body.ID)
	require.ErrorIs(t, err, domain.ErrNotFound, "G9")
}

// The held event's payload, which SQL writes, is what Go's event type means.
func TestAccept_HeldEventIsAnEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.service.Accept(b.ctx, b.client, "key", request(b.resource(1), 0))
	require.NoError(t, err)
	var raw json.RawMessage
	require.NoError(t, b.pool.QueryRow(b.ctx, `SELECT payload FROM outbox WHERE event_type = 'held'`).Scan(&raw))
	var data domain.EventData
	require.NoError(t, json.Unmarshal(raw, &data))
	again, err := json.Marshal(data)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(again), "no member more, none less, each in its format")
}

// Incident 22: sixty-four requests on a pool of four: every one is answered, none with an error that is not busy.
func TestIncident22_SmallPool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pool, err := postgres.Open(b.ctx, postgres.PoolConfig{URL: b.db.URL, ApplicationName: "small", MaxConns: 4})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	service := bookings.New(pool, b, bookings.Config{Budget: time.Minute})
	id := b.resource(1)
	errs := make([]error, 64)
	together(64, func(i int) {
		_, errs[i] = service.Accept(b.ctx, b.client, fmt.Sprint("key", i), request(id, float64(2*i)))
	})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, each(64, 0), b.rows())
}

// A booking keeps the refund policy that its customer was shown, whatever the resource's becomes; a resource for which nobody has
// said anything gives everything back until the start.
func TestAccept_FreezesTheRefundPolicy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.resource(1)
	read := func(answer bookings.Response) domain.RefundPolicy {
		id, err := domain.ParseID[domain.BookingID](path.Base(answer.Location))
		require.NoError(t, err)
		booking, err := bookings.Get(b.ctx, b.db.Pool, b.client, id)
		require.NoError(t, err)
		require.Nil(t, booking.Cancellation)
		return booking.RefundPolicy
	}
	first, err := b.service.Accept(b.ctx, b.client, "first", request(r, 0))
	require.NoError(t, err)
	b.exec(`UPDATE resources SET refund_policy = '[{"hours_before": 48, "percent": 50}]'`)
	require.Equal(t, domain.DefaultRefundPolicy(), read(first))
	second, err := b.service.Accept(b.ctx, b.client, "second", request(r, 10))
	require.NoError(t, err)
	require.Equal(t, domain.RefundPolicy{{HoursBefore: 48, Percent: 50}}, read(second))
	_, err = b.service.CreateResource(b.ctx, domain.Resource{
		Name: "Room", TimeZone: "UTC", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 1250, Currency: "EUR"}, Hold: time.Minute,
		Refunds: domain.RefundPolicy{{HoursBefore: 24, Percent: 50}, {HoursBefore: 48, Percent: 100}},
	})
	var invalid *domain.ValidationError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "refund_policy", invalid.Field)
}
