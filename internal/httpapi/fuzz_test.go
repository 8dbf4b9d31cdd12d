package httpapi_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/testdb"
)

// fuzzed is the API on a real database, with a resource and a token for it.
func fuzzed(f *testing.F) (api http.Handler, resource domain.Resource, token domain.Secret) {
	f.Helper()
	db := testdb.New(f)
	api, err := httpapi.New(config(db), slog.New(slog.DiscardHandler))
	require.NoError(f, err)
	resource, err = bookings.New(db.Pool, noWaker{}, bookings.Config{}).CreateResource(f.Context(), domain.Resource{
		Name: "Hall", TimeZone: "UTC", Places: 3, UnitMinutes: 1, Price: domain.Money{Amount: 100, Currency: "EUR"}, Hold: time.Minute,
	})
	require.NoError(f, err)
	made, err := clients.New(db.Pool).Create(f.Context(), "fuzz", clients.Scopes(), "", time.Hour)
	require.NoError(f, err)
	return api, resource, made.Token
}

// neverOurFault posts a body: whatever it is, the answer is never a server's error, it is JSON, and a refusal is a
// known problem.
func neverOurFault(t *testing.T, api http.Handler, token domain.Secret, key, body string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/bookings", strings.NewReader(body))
	r.Header = http.Header{"Authorization": {"Bearer " + token.Reveal()}, "Content-Type": {"application/json"}, "Idempotency-Key": {key}}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	require.Less(t, w.Code, 500, "%q: %s", body, w.Body)
	require.NoError(t, theContract(t).allows(http.MethodPost, "/v1/bookings", answer{w.Code, w.Header(), w.Body.Bytes()}), "%q: %s", body, w.Body)
	require.True(t, utf8.Valid(w.Body.Bytes()))
	if w.Code == http.StatusCreated {
		var booking httpapi.Booking
		strict(t, w.Body.Bytes(), &booking)
		return
	}
	answer{w.Code, w.Header(), w.Body.Bytes()}.problem(t)
}

// FuzzBooking sends any body under any key.
func FuzzBooking(f *testing.F) {
	api, resource, token := fuzzed(f)
	b := &bed{resource: resource}
	const here = "RESOURCE" // stands for the id, so that the corpus fits every database
	good := strings.Replace(b.body(), resource.ID.String(), here, 1)
	for _, seed := range []string{
		good, "", "null", "{}", "[]", strings.Replace(good, "Ada", `\u0000`, 1), strings.Replace(good, "Ada", `\ud800`, 1),
		strings.Replace(good, "2500", "1e400", 1), strings.Replace(good, "2500", "-0", 1), good + good, strings.Repeat("[", 100),
		strings.Replace(good, "2027-05-01T11", "2028-05-01T11", 1), strings.Replace(good, "{", `{"quantity":3,`, 1),
		strings.Replace(good, "+02:00", "-23:59", 1), strings.Replace(good, "ada@example.org", `\"a b\"@[127.0.0.1]`, 1),
		strings.Replace(good, `"order"`, `"\u202e"`, 1), strings.Replace(good, `"7"`, `"\ufffe\uffff"`, 1), strings.Replace(good, "10:00:00", "10:00:00.999999", 1),
	} {
		f.Add(seed, "key")
		f.Add(seed, uuid.NewString())
	}
	f.Fuzz(func(t *testing.T, body, key string) {
		body = strings.ReplaceAll(body, here, resource.ID.String())
		neverOurFault(t, api, token, key, body)
	})
}

// FuzzBookingMembers sends well-formed bodies with any text in them, which reach the database.
func FuzzBookingMembers(f *testing.F) {
	api, resource, token := fuzzed(f)
	const start, end = "2027-05-01T10:00:00Z", "2027-05-01T11:00:00Z"
	for i, text := range []string{"Ada", "", "\x00", "\ufffe", "\u202e", "\uFFFD", "\xff", "\"'\\", "😀", "null"} {
		f.Add(text, "a@b.example", "pm_1", text, text, start, end, int64(i), int64(100*i), "eur")
		f.Add("Ada", text+"@b.example", "pm_1"+text, "k", "v", start, "2027-05-01T10:00:00."+text+"Z", int64(1), int64(6000), text)
	}
	f.Fuzz(func(t *testing.T, name, email, method, note, value, start, end string, quantity, amount int64, currency string) {
		body, err := json.Marshal(map[string]any{
			"resource_id": resource.ID, "start": start, "end": end, "quantity": quantity, "payment_method": method,
			"customer": map[string]any{"name": name, "email": email}, "metadata": map[string]any{note: value},
			"expected_total": map[string]any{"amount": amount, "currency": currency},
		})
		require.NoError(t, err)
		neverOurFault(t, api, token, uuid.NewString(), string(body))
	})
}

// FuzzInstant: any text is a moment of the years that are taken, written with its offset, or a fault; and any such moment,
// written with any offset, is that moment.
func FuzzInstant(f *testing.F) {
	for _, text := range []string{
		"2027-05-01T10:00:00+02:00", "2027-05-01t10:00:00.123456z", "2027-05-01T10:00:00", "2027-05-01T10:00:60Z", "2027-02-29T10:00:00Z",
		"2028-02-29T24:00:00Z", "2027-05-01T10:00:00,5Z", "2027-05-01T10:00:00+24:00", "2027-05-01T10:00:00-00:00", "2027-05-01 10:00:00Z",
		"1999-12-31T23:59:59-00:01", "2101-01-01T00:00:00+00:01", "2000-01-01T00:00:00+00:01", "2027-05-01T10:00:00.1234567Z", "2027-05-01T10:00:00.Z",
		"2027-5-1T10:00:00Z", "+2027-05-01T10:00:00Z", "2027-05-01T10:00:00Z\n", "٢٠٢٧-05-01T10:00:00Z", "2027-05-01T10:00:00ｚ", "", "now",
	} {
		f.Add(text, int64(1_800_000_000_123_456), int16(120))
	}
	first, last := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, micro := range []int64{first.UnixMicro(), first.UnixMicro() - 1, last.UnixMicro() - 1, last.UnixMicro()} {
		for _, offset := range []int16{0, 1, -1, 23*60 + 59, -23*60 - 59, 630, 825} {
			f.Add("2027-05-01T10:00:00Z", micro, offset)
		}
	}
	f.Fuzz(func(t *testing.T, text string, micro int64, offset int16) {
		at, fault := httpapi.ParseInstant(text)
		if fault != "" {
			require.True(t, at.IsZero())
		} else {
			require.False(t, at.Before(first) || !at.Before(last))
			require.Equal(t, at.Truncate(time.Microsecond), at)
			require.Equal(t, time.UTC, at.Location())
			want, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
			require.NoError(t, err)
			require.True(t, want.Equal(at))
		}

		want := time.UnixMicro(micro).UTC()
		zone := time.FixedZone("", int(offset%(24*60))*60)
		if year := want.In(zone).Year(); year < 0 || year > 9999 {
			return // cannot be written
		}
		at, fault = httpapi.ParseInstant(want.In(zone).Format(time.RFC3339Nano))
		if want.Before(first) || !want.Before(last) {
			require.NotEmpty(t, fault)
			return
		}
		require.Empty(t, fault)
		require.Equal(t, want, at)
	})
}
