package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/postgres"
)

// G1: thirty requests at once under one key. Expected: one creation; the others get its bytes, or a 409 that says to come
// again, and then its bytes; no 5xx.
func TestIncident09_ThirtyAtOnceUnderOneKey(t *testing.T) {
	t.Parallel()
	const twins = 30
	// send posts them, calls meanwhile with how many have been told to come again, and asserts what each was answered.
	send := func(t *testing.T, b *bed, meanwhile func(waiting <-chan struct{})) (inProgress int) {
		t.Helper()
		answers, waiting := make([]answer, twins), make(chan struct{}, twins)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				answers[i] = b.book(t, "one", b.body())
				if answers[i].status == http.StatusConflict {
					waiting <- struct{}{}
				}
			})
		}
		meanwhile(waiting)
		all.Wait()
		stored := b.book(t, "one", b.body())
		require.Equal(t, http.StatusCreated, stored.status, "%s", stored.body)
		require.Equal(t, "true", stored.header.Get("Idempotency-Replayed"))
		created := 0
		for _, a := range answers {
			if a.status != http.StatusCreated {
				a.refused(t, http.StatusConflict, httpapi.CodeRequestInProgress)
				require.NotEmpty(t, a.header.Get("Retry-After"))
				require.Empty(t, a.header.Get("Location"))
				inProgress++
				continue
			}
			require.Equal(t, string(stored.body), string(a.body))
			require.Equal(t, stored.header.Get("Location"), a.header.Get("Location"))
			if a.header.Get("Idempotency-Replayed") == "" {
				created++
			}
		}
		require.Equal(t, 1, created)
		for _, table := range []string{"idempotency_keys", "bookings", "payments", "allocations", "river_job"} {
			require.Equal(t, 1, b.count(t, `SELECT count(*) FROM `+table), table)
		}
		return inProgress
	}

	t.Run("the first decides at once", func(t *testing.T) {
		t.Parallel()
		send(t, setup(t), func(<-chan struct{}) {})
	})
	t.Run("the first waits for a rival that has not decided", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		hasty, err := postgres.Open(t.Context(), postgres.PoolConfig{
			URL: b.db.URL, ApplicationName: "test", MaxConns: twins, LockTimeout: 300 * time.Millisecond,
		})
		require.NoError(t, err)
		defer hasty.Close()
		waits := setup(t, func(c *httpapi.Config) {
			c.Clients, c.Bookings = b.clients, bookings.New(hasty, noWaker{}, bookings.Config{Budget: time.Minute})
		})
		waits.db, waits.token, waits.resource = b.db, b.token, b.resource
		rival, err := b.db.Pool.Begin(t.Context())
		require.NoError(t, err)
		takeSlot(t, b, rival)
		told := send(t, waits, func(waiting <-chan struct{}) {
			select {
			case <-waiting:
			case <-time.After(time.Minute):
			}
			require.NoError(t, rival.Rollback(context.WithoutCancel(t.Context())))
		})
		require.Positive(t, told, "nobody had to wait, so this has shown nothing")
	})
}

// takeSlot takes the slot that a good request is for, as a rival would who has not committed.
func takeSlot(t *testing.T, b *bed, tx pgx.Tx) {
	t.Helper()
	_, err := tx.Exec(t.Context(), `
		INSERT INTO allocations (booking_id, resource_id, place, during)
		VALUES (gen_random_uuid(), $1, 1, '[2027-05-01 08:00Z, 2027-05-01 09:00Z)')`, b.resource.ID.UUID)
	require.NoError(t, err)
}

// G1, G9: the same key and the same body from two clients are two intentions, and neither is told anything of the other.
func TestIncident12_TheSameRequestOfTwoClients(t *testing.T) {
	t.Parallel()
	for places, second := range map[int]int{2: http.StatusCreated, 1: http.StatusConflict} {
		t.Run(fmt.Sprint(places, " places"), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			_, err := b.db.Pool.Exec(t.Context(), `UPDATE resources SET places = $1`, places)
			require.NoError(t, err)
			rival := *b
			rival.token = b.newToken(t, "rival", clients.BookingsRead, clients.BookingsWrite)
			body := b.body()
			ours, theirs := b.book(t, "shared", body), rival.book(t, "shared", body)
			require.Equal(t, http.StatusCreated, ours.status, "%s", ours.body)
			require.Equal(t, second, theirs.status, "%s", theirs.body)
			require.Empty(t, theirs.header.Get("Idempotency-Replayed"), "it is no replay of ours")
			id := bookingOf(t, ours).String()
			require.NotContains(t, string(theirs.body), id)
			require.NotContains(t, fmt.Sprint(theirs.header), id)
			if places == 1 {
				theirs.refused(t, http.StatusConflict, httpapi.CodeSlotUnavailable)
			}
			for _, again := range []struct {
				of    *bed
				first answer
			}{{b, ours}, {&rival, theirs}} {
				a := again.of.book(t, "shared", body)
				require.Equal(t, "true", a.header.Get("Idempotency-Replayed"))
				require.Equal(t, string(again.first.body), string(a.body), "to each its own answer")
			}
			require.Equal(t, places, b.count(t, `SELECT count(*) FROM bookings`))
			require.Equal(t, places, b.count(t, `SELECT count(DISTINCT booking_id) FROM outbox WHERE kind = 'charge'`))
		})
	}
}

// What a key was used for on another route is nothing to this one.
func TestIncident12_KeysBelongToOneRoute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.book(t, "shared", b.body())
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
	later := b.book(t, "other", b.body(set("start", "2027-05-02T10:00:00Z"), set("end", "2027-05-02T11:00:00Z")))
	for _, booking := range []answer{a, later} { // two bookings are two routes
		b.decline(t)
		changed := b.change(t, booking, "shared", `{"payment_method":"pm_card_mastercard"}`)
		require.Equal(t, http.StatusAccepted, changed.status, "%s", changed.body)
		require.Empty(t, changed.header.Get("Idempotency-Replayed"))
		cancelled := b.cancel(t, booking, "shared")
		require.Equal(t, http.StatusAccepted, cancelled.status, "%s", cancelled.body)
		require.Empty(t, cancelled.header.Get("Idempotency-Replayed"))
		_, err := b.db.Pool.Exec(t.Context(), `UPDATE payments SET status = 'succeeded' WHERE status = 'pending'`)
		require.NoError(t, err)
		b.token = b.newToken(t, "acme", clients.Scopes()...)
		refunded := b.refund(t, booking, "shared", `{"amount":1,"reason":"one cent"}`)
		require.Equal(t, http.StatusCreated, refunded.status, "%s", refunded.body)
		require.Empty(t, refunded.header.Get("Idempotency-Replayed"))
	}
	require.Equal(t, 7, b.count(t, `SELECT count(*) FROM idempotency_keys WHERE key = 'shared'`))

	var charge domain.EffectID
	require.NoError(t, b.db.Pool.QueryRow(t.Context(), `SELECT id FROM outbox WHERE kind = 'charge' LIMIT 1`).Scan(&charge))
	acts := []string{"replay", "republish", "resolve", "discard"}
	for _, act := range acts {
		a := b.act(t, act, "shared", `{"reason":"the same key"}`, charge)
		require.NotContains(t, []int{http.StatusCreated, http.StatusUnprocessableEntity}, a.status, "%s", a.body)
		require.Empty(t, a.header.Get("Idempotency-Replayed"))
	}

	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(b.get(t, "/openapi.json").body, &document))
	var keyed []string
	for path, operations := range document.Paths {
		for method, operation := range operations {
			if strings.Contains(string(operation), `"Idempotency-Key"`) && method == "post" {
				keyed = append(keyed, path)
			}
		}
	}
	known := []string{"/v1/bookings", "/v1/bookings/{id}/payment", "/v1/bookings/{id}/cancel", "/v1/ops/bookings/{id}/refunds"}
	for _, act := range acts {
		known = append(known, "/v1/ops/effects/{id}/"+act)
	}
	require.ElementsMatch(t, known, keyed, "a new keyed route is to be tried here for real")
}

// The order of members, white space and how a text is escaped are no part of what is meant.
func TestIncident12_TheSameMeaningIsAReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.resource.ID.String()
	first := b.book(t, "one", `{"resource_id":"`+id+`","start":"2027-05-01T10:00:00+02:00","end":"2027-05-01T11:00:00+02:00",`+
		`"customer":{"name":"Ada","email":"ada@example.org"},"payment_method":"pm_card_visa","metadata":{"a":"1","b":"2"}}`)
	require.Equal(t, http.StatusCreated, first.status, "%s", first.body)
	again := b.book(t, "one", "\t{\r\n  \"metadata\" : { \"b\":\"2\" , \"a\":\"\\u0031\" },\n \"payment_method\":\"pm_card_visa\", "+
		"\"customer\":{\"email\":\"ada@example.org\",\"name\":\"\\u0041da\"}, \"quantity\":1,\n"+
		"\"end\":\"2027-05-01T09:00:00Z\", \"start\":\"2027-05-01T08:00:00.000Z\", \"resource_id\":\""+id+"\" }\n\n")
	require.Equal(t, http.StatusCreated, again.status, "%s", again.body)
	require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))
	require.Equal(t, string(first.body), string(again.body))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM bookings`))
}

// Another amount or a query under a used key is refused: no booking, no charge, nothing of the first request.
func TestIncident12_AnotherMeaningIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.db.Pool.Exec(t.Context(), `UPDATE resources SET places = 9`)
	require.NoError(t, err)
	first := b.book(t, "one", b.body())
	require.Equal(t, http.StatusCreated, first.status, "%s", first.body)
	written := b.rows(t)
	for name, change := range map[string]func(map[string]any){
		"amount":       set("expected_total", map[string]any{"amount": 2501, "currency": "eur"}),
		"currency":     set("expected_total", map[string]any{"amount": 2500, "currency": "usd"}),
		"no amount":    without("expected_total"),
		"places":       set("quantity", 2),
		"another hour": set("end", "2027-05-01T12:00:00+02:00"),
		"card":         set("payment_method", "pm_card_mastercard"),
	} {
		a := b.book(t, "one", b.body(change))
		a.refused(t, http.StatusUnprocessableEntity, httpapi.CodeKeyReused)
		require.NotContains(t, string(a.body), bookingOf(t, first).String(), name)
		require.Empty(t, a.header.Get("Location"), name)
	}
	queried := b.send(t, http.MethodPost, "/v1/bookings?dry_run=true", strings.NewReader(b.body()), b.bearer(), asJSON, "Idempotency-Key: one")
	queried.refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	require.Equal(t, written, b.rows(t), "rows, the charge's effect and job included")
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'charge'`))
}
