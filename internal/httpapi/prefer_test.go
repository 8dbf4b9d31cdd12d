package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/httpapi"
)

func TestPreferIsReadAsTheStandardSays(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"wait=5": 5 * time.Second, "WAIT = 5": 5 * time.Second, "respond-async, wait=5": 5 * time.Second, "wait=5;of=x, wait=9": 5 * time.Second,
		`note="a, wait=3; b", wait=5`: 5 * time.Second, `note="\", wait=3", wait=5`: 5 * time.Second, "a|wait=5": 5 * time.Second,
		"wait=0": 0, "wait=99999999999999999999": 10 * time.Second, "foo;wait=3, wait=5 ; x": 5 * time.Second,
	} {
		got, ok := httpapi.PreferredWait(strings.Split(header, "|"))
		require.True(t, ok, header)
		require.Equal(t, want, got, header)
	}
	for _, header := range []string{
		"", "wait", "wait=", "wait=x", "wait=-1", "wait=+1", "wait=1.5", `wait="5"`, "wait=5 s", "await=5", "foo;wait=3", `"wait=5`, "wait=x, wait=5", ",;,=", "wait=٣",
	} {
		_, ok := httpapi.PreferredWait([]string{header})
		require.False(t, ok, header)
	}
}

// waits looks at a booking in the background. No answer at all is the zero one.
func (b *bed) waits(t *testing.T, booking, prefer string) <-chan answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/v1/bookings/"+booking, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+b.token.Reveal())
	r.Header.Set("Prefer", prefer)
	answered := make(chan answer, 1)
	go func() {
		defer close(answered)
		resp, err := b.http.Do(r)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err == nil {
			answered <- answer{resp.StatusCode, resp.Header, text}
		}
	}()
	return answered
}

func TestPreferWaitAnswersAsSoonAsThereIsSomethingToSay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ event, booking, payment string }{
		"confirmed":  {"confirmed", `status = 'confirmed'`, `status = 'succeeded'`},
		"failed":     {"failed", `status = 'failed', ending_reason = 'refuse', ended_at = now()`, `status = 'refused'`},
		"declined":   {"payment_declined", `status = 'held'`, `status = 'declined'`},
		"their turn": {"action_required", `status = 'held'`, `status = 'requires_action'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(c *httpapi.Config) { c.RequestTimeout = eternity })
			b.listen(t)
			id := b.held(t, "one")
			waited := b.waits(t, id, "wait=600")
			require.Eventually(t, func() bool { return b.api.Following() == 1 }, eternity, time.Millisecond)
			select {
			case a := <-waited:
				require.Fail(t, "answered although nothing has happened", "%s", a.body)
			case <-time.After(200 * time.Millisecond):
			}
			b.event(t, id, c.event, c.booking, c.payment)
			began := time.Now()
			a := <-waited
			require.Less(t, time.Since(began), 8*time.Second, "long before the ten seconds")
			require.Equal(t, http.StatusOK, a.status, "%s", a.body)
			require.Equal(t, "wait=10", a.header.Get("Preference-Applied"))
			require.Equal(t, string(b.get(t, "/v1/bookings/"+id).body), string(a.body))
			again := b.send(t, http.MethodGet, "/v1/bookings/"+id, nil, b.bearer(), "Prefer: wait=3")
			require.Equal(t, "wait=3", again.header.Get("Preference-Applied"))
			require.Equal(t, string(a.body), string(again.body), "there is nothing to wait for")
		})
	}
}

func TestPreferWaitHasAnEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.held(t, "one")
	look := func(prefer string) (answer, time.Duration) {
		began := time.Now()
		a := b.send(t, http.MethodGet, "/v1/bookings/"+id, nil, b.bearer(), "Prefer: "+prefer)
		require.Equal(t, http.StatusOK, a.status, "%s", a.body)
		return a, time.Since(began)
	}
	a, took := look("wait=1")
	require.GreaterOrEqual(t, took, time.Second)
	require.Equal(t, "wait=1", a.header.Get("Preference-Applied"))
	var shown httpapi.Booking
	strict(t, a.body, &shown)
	require.Equal(t, domain.BookingHeld, shown.Status)

	for _, ignored := range []string{"wait=x", "respond-async"} {
		a, _ := look(ignored)
		require.Empty(t, a.header.Values("Preference-Applied"), ignored)
	}

	// A declined card is nothing that the customer can cure once the booking is ending.
	b.event(t, id, "payment_declined", `status = 'ending', ending_reason = 'expire'`, `status = 'declined'`)
	_, took = look("wait=1")
	require.GreaterOrEqual(t, took, time.Second)

	b.event(t, id, "confirmed", `status = 'confirmed', ending_reason = NULL`, `status = 'succeeded'`)
	b = setupOn(t, b, func(c *httpapi.Config) { c.RequestTimeout = 0 }) // the default
	a, _ = look("wait=3600")
	require.Equal(t, "wait=6", a.header.Get("Preference-Applied"), "below the ten seconds of a request")
}
