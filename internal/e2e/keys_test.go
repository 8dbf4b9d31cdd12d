package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// G1: the response expires, the key does not.
// Expected: after the retention the same key gets 409 idempotency_key_expired with the booking's Location, whatever is
// sent again; there is one booking and one charge.
func TestAnExpiredKeyNeverBooksAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api", "IDEMPOTENCY_RETENTION=500ms")
	b.start("worker")
	court := b.resource(2, time.Hour)
	ada := b.customer("ada", api.address)

	first := ada.post(t, "one", wish{resource: court})
	require.Equal(t, http.StatusCreated, first.status, first.body)
	eventually(t, soon, "the answer has expired", func() bool {
		return ada.post(t, "one", wish{resource: court}).code() == "idempotency_key_expired"
	})
	again := ada.post(t, "one", wish{resource: court})
	require.Equal(t, http.StatusConflict, again.status)
	require.Equal(t, first.location, again.location)
	b.awaitStatus(soon, "confirmed", first.booking(t).ID)
	b.requireStory(confirmed(), first.booking(t).ID)
	require.Equal(t, 1, count(b, `SELECT count(*) FROM bookings`))
}

// G1, incident 09: a first request that has not decided is no evidence of anything. What stands in for it here is a
// transaction of the test that holds its key, or its slot, and is rolled back.
// Expected: while the key is held, 409 request_in_progress; while the slot is held, 503; both say when to come again.
// After the roll-back the same request gets 201, also where the database had gone on after the API had given up, and
// there is one booking and one charge of it.
func TestWhoWaitsInVainCanSendAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	api := b.start("api", "DB_LOCK_TIMEOUT=200ms", "BUSY_BUDGET=3s")
	b.start("worker")
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	for hour, held := range []struct {
		name, sql string
		args      []any
		status    int
		code      string
	}{
		{
			"key", `
			INSERT INTO idempotency_keys (client_id, method, route, key, fingerprint, fingerprint_version, created_at, response_expires_at)
			SELECT id, 'POST', '/v1/bookings', 'key', '', 1, now(), now() FROM clients WHERE name = 'ada'`,
			nil, http.StatusConflict, "request_in_progress",
		},
		{
			"slot", `
			INSERT INTO allocations (booking_id, resource_id, place, during)
			VALUES (gen_random_uuid(), $1, 1, '[2031-01-06 01:00+00, 2031-01-06 02:00+00)')`,
			[]any{court},
			http.StatusServiceUnavailable, "busy",
		},
	} {
		tx, err := b.db.Pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), held.sql, held.args...)
		require.NoError(t, err)
		waited := ada.post(t, held.name, wish{resource: court, hour: hour})
		require.NoError(t, tx.Rollback(t.Context()))
		require.Equal(t, held.status, waited.status, waited.body)
		require.Equal(t, held.code, waited.code(), held.name)
		require.NotEmpty(t, waited.retryAfter, held.name)

		id := ada.book(t, held.name, wish{resource: court, hour: hour})
		b.awaitStatus(soon, "confirmed", id)
		b.requireStory(confirmed(), id)
		require.Equal(t, hour+1, count(b, `SELECT count(*) FROM bookings`))
		require.Equal(t, hour+1, count(b, `SELECT count(*) FROM idempotency_keys`))
	}
}
