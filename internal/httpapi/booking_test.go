package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
)

func TestBookingIsShownAsItWasAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t, "one", b.body())
	require.Equal(t, http.StatusCreated, made.status, "%s", made.body)
	require.Equal(t, "application/json", made.header.Get("Content-Type"))
	require.Equal(t, "no-store", made.header.Get("Cache-Control"))
	require.Empty(t, made.header.Get("Idempotency-Replayed"))
	expires, err := time.Parse(time.RFC3339, made.header.Get("Idempotency-Key-Expires"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), expires, time.Minute)

	var answered, shown httpapi.Booking
	strict(t, made.body, &answered)
	require.Equal(t, domain.BookingHeld, answered.Status)
	require.Equal(t, domain.PaymentPending, answered.Payment.Status)
	require.Equal(t, domain.Money{Amount: 2500, Currency: "EUR"}, answered.Total)
	require.Equal(t, map[string]string{"order": "7"}, answered.Metadata)
	require.Equal(t, "/v1/bookings/"+answered.ID.String(), made.header.Get("Location"))

	read := b.get(t, made.header.Get("Location"))
	require.Equal(t, http.StatusOK, read.status, "%s", read.body)
	strict(t, read.body, &shown)
	require.Equal(t, answered, shown)
	require.JSONEq(t, string(made.body), string(read.body), "formats, too")
}

func TestEndedBookingTellsWhyAndWhen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t, "one", b.body())
	require.Equal(t, http.StatusCreated, made.status)
	for _, sql := range []string{
		`UPDATE bookings SET status = 'failed', ending_reason = 'refuse', ended_at = '2027-01-02T03:04:05Z'`,
		`UPDATE payments SET status = 'declined', decline_code = 'insufficient_funds', failure_code = 'card_declined'`,
	} {
		_, err := b.db.Pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	var shown httpapi.Booking
	strict(t, b.get(t, made.header.Get("Location")).body, &shown)
	require.Equal(t, domain.BookingFailed, shown.Status)
	require.Equal(t, domain.EndRefuse, shown.EndingReason)
	require.Equal(t, "2027-01-02T03:04:05.000000Z", shown.EndedAt.String())
	require.Equal(t, "insufficient_funds", shown.Payment.DeclineCode)
	require.Equal(t, "card_declined", shown.Payment.FailureCode)
}

// A decision: what took place already is entered afterwards.
// TestDisputeIsShownToTheOwner: in every view of the booking, in the provider's words, one that nobody has heard of included; and
// to no other client. Of several the open one is shown.
func TestDisputeIsShownToTheOwner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t, "key", b.body())
	id := bookingOf(t, made)
	require.NotContains(t, string(b.get(t, "/v1/bookings/"+id.String()).body), "dispute")
	dispute := func(dp, status, age string) {
		_, err := b.db.Pool.Exec(t.Context(), `
			INSERT INTO disputes (id, payment_id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at)
			SELECT $2, id, 1200, 'EUR', 'fraudulent', $3, true, now() - $4::interval, now(), now() FROM payments WHERE booking_id = $1`, id, dp, status, age)
		require.NoError(t, err)
	}
	for i, status := range []string{"lost", "on_the_moon"} {
		dispute(fmt.Sprint("dp_", i), status, fmt.Sprint(i, " hours")) // the open one is the older
		want := fmt.Sprintf(`"payment":{"status":"pending","dispute":{"status":%q,"amount":{"amount":1200,"currency":"EUR"},"reason":"fraudulent"}}`, status)
		require.Contains(t, string(b.get(t, "/v1/bookings/"+id.String()).body), want)
		require.Contains(t, string(b.get(t, "/v1/bookings").body), want)
	}
	other := "Authorization: Bearer " + b.newToken(t, "other", clients.BookingsRead).Reveal()
	b.send(t, http.MethodGet, "/v1/bookings/"+id.String(), nil, other).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
}

func TestStartInThePastIsTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.book(t, "one", b.body(set("start", "2001-05-01T10:00:00Z"), set("end", "2001-05-01T11:00:00Z")))
	require.Equal(t, http.StatusCreated, a.status, "%s", a.body)
}

// One smoke test of the idempotency rules as HTTP shows them; the rules themselves are proved where they are made.
func TestReplayAndRefusalsAsHTTPShowsThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.book(t, "one", b.body())
	require.Equal(t, http.StatusCreated, first.status)

	again := b.book(t, `"one"`, "\n"+b.body(func(m map[string]any) { m["start"] = "2027-05-01T08:00:00.0Z"; m["quantity"] = 1 }))
	require.Equal(t, http.StatusCreated, again.status)
	require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))
	require.Equal(t, first.body, again.body)
	require.Equal(t, first.header.Get("Location"), again.header.Get("Location"))
	require.Equal(t, first.header.Get("Idempotency-Key-Expires"), again.header.Get("Idempotency-Key-Expires"))

	reused := b.book(t, "one", b.body(func(m map[string]any) { m["payment_method"] = "pm_other" }))
	reused.refused(t, http.StatusUnprocessableEntity, httpapi.CodeKeyReused)
	require.Empty(t, reused.header.Get("Location"))

	for range 2 { // decided, and then replayed
		b.book(t, "two", b.body()).refused(t, http.StatusConflict, httpapi.CodeSlotUnavailable)
	}
	b.book(t, "three", b.body(func(m map[string]any) { m["expected_total"] = map[string]any{"amount": 2400, "currency": "EUR"} })).
		refused(t, http.StatusConflict, httpapi.CodePriceChanged)

	_, err := b.db.Pool.Exec(t.Context(), `UPDATE idempotency_keys SET response_expires_at = clock_timestamp() - interval '1 s'`)
	require.NoError(t, err)
	expired := b.book(t, "one", b.body())
	expired.refused(t, http.StatusConflict, httpapi.CodeKeyExpired)
	require.Equal(t, first.header.Get("Location"), expired.header.Get("Location"))
	expired = b.book(t, "two", b.body())
	expired.refused(t, http.StatusConflict, httpapi.CodeKeyExpired)
	require.Empty(t, expired.header.Get("Location"))
}

// G1 over two clients: the same key and body are two intentions, and neither learns of the other (G9).
func TestIncident12_KeysBelongToOneClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.book(t, "shared", b.body())
	require.Equal(t, http.StatusCreated, first.status)
	other := *b
	other.token = b.newToken(t, "rival", clients.BookingsRead, clients.BookingsWrite)
	second := other.book(t, "shared", b.body(func(m map[string]any) { m["start"] = "2027-05-01T12:00:00Z"; m["end"] = "2027-05-01T13:00:00Z" }))
	require.Equal(t, http.StatusCreated, second.status, "%s", second.body)
	require.NotEqual(t, first.header.Get("Location"), second.header.Get("Location"))

	// G9: another's booking is answered exactly as one that does not exist, and as an id that cannot be one.
	foreign := other.get(t, first.header.Get("Location"))
	foreign.refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	for _, id := range []string{uuid.NewString(), "no-id", "%00", "' OR 1=1 --"} {
		unknown := other.get(t, "/v1/bookings/"+id)
		require.Equal(t, foreign.status, unknown.status)
		require.Equal(t, string(foreign.body), string(unknown.body), id)
		for _, a := range []answer{foreign, unknown} {
			a.header.Del("Date")
			a.header.Del("X-Request-Id") // random
		}
		require.Equal(t, foreign.header, unknown.header)
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var list struct {
		Resources []httpapi.Resource `json:"resources"`
	}
	strict(t, b.get(t, "/v1/resources").body, &list)
	require.Len(t, list.Resources, 1)
	var one httpapi.Resource
	strict(t, b.get(t, "/v1/resources/"+b.resource.ID.String()).body, &one)
	require.Equal(t, list.Resources[0], one)
	require.Equal(t, httpapi.Resource{
		ID: b.resource.ID, Name: "Court 1", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60,
		Price: domain.Money{Amount: 2500, Currency: "EUR"}, HoldSeconds: 900,
		Refunds: []httpapi.RefundStep{{HoursBefore: 0, Percent: 100}},
	}, one)
	b.get(t, "/v1/resources/"+uuid.NewString()).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
	b.get(t, "/v1/resources/x").refused(t, http.StatusNotFound, httpapi.CodeNotFound)

	_, err := b.db.Pool.Exec(t.Context(), `DELETE FROM resources`)
	require.NoError(t, err)
	require.JSONEq(t, `{"resources":[]}`, string(b.get(t, "/v1/resources").body))
}

func TestResourcesComeInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.db.Pool.Exec(t.Context(), `
		INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold, created_at)
		SELECT gen_random_uuid(), 'Court ' || n, 'UTC', 1, 60, 100, 'EUR', '15 min', now() + n / 10 * interval '1 s'
		  FROM generate_series(2, 1001) n`)
	require.NoError(t, err)
	type page struct {
		Resources []httpapi.Resource `json:"resources"`
		Next      string             `json:"next"`
	}
	all := func(query string) (pages []int, ids map[domain.ResourceID]bool) {
		ids = map[domain.ResourceID]bool{}
		for after := ""; ; {
			var p page
			strict(t, b.get(t, "/v1/resources"+query+after).body, &p)
			pages = append(pages, len(p.Resources))
			for _, r := range p.Resources {
				ids[r.ID] = true
			}
			if p.Next == "" {
				return pages, ids
			}
			after = "&after=" + p.Next
		}
	}
	for query, want := range map[string][]int{
		"?limit=1000": {1000, 1}, "?limit=334": {334, 334, 333}, "?limit=501": {501, 500},
	} {
		pages, ids := all(query)
		require.Equal(t, want, pages, query)
		require.Len(t, ids, 1001, "each once, also where many are as old: %s", query)
	}
	var first, one page
	strict(t, b.get(t, "/v1/resources").body, &first)
	require.Len(t, first.Resources, 1000)
	require.Equal(t, b.resource.ID, first.Resources[0].ID, "the oldest first")
	strict(t, b.get(t, "/v1/resources?limit=1").body, &one)
	require.Equal(t, b.resource.ID.String(), one.Next)

	for query, location := range map[string]string{
		"after=x": "query.after", "after=" + uuid.NewString(): "query.after", "after=" + strings.ToUpper(one.Next): "query.after",
		"limit=0": "query.limit", "limit=1001": "query.limit", "limit=x": "query.limit", "before=x": "query.before",
	} {
		p := b.get(t, "/v1/resources?"+query).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
		require.Equal(t, location, p.Errors[0].Location, query)
	}
}
