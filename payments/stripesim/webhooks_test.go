package stripesim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v76/webhook"

	"holdfast/payments/stripesim"
)

// endpoint is a receiver of webhooks.
type endpoint struct {
	*httptest.Server

	mu     sync.Mutex
	got    []delivery
	answer func(n int) int // the status of the n-th answer, from 1
}

type delivery struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	APIVersion string `json:"api_version"`
	signature  string
	body       []byte
}

func newEndpoint(t *testing.T, answer func(n int) int) *endpoint {
	t.Helper()
	e := &endpoint{answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d := delivery{signature: r.Header.Get("Stripe-Signature"), body: body}
		_ = json.Unmarshal(body, &d)
		e.mu.Lock()
		e.got = append(e.got, d)
		n := len(e.got)
		e.mu.Unlock()
		rw.Header().Set("Location", e.URL+"/elsewhere")
		rw.WriteHeader(e.answer(n))
	}))
	t.Cleanup(e.Close)
	return e
}

func always(status int) func(int) int { return func(int) int { return status } }

func (e *endpoint) deliveries() []delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]delivery{}, e.got...)
}

func (e *endpoint) types() []string {
	kinds := []string{}
	for _, d := range e.deliveries() {
		kinds = append(kinds, d.Type)
	}
	return kinds
}

func withEndpoint(t *testing.T, e *endpoint, mode string) *testBundle {
	t.Helper()
	b := setup(t, func(c *stripesim.Config) {
		c.WebhookURL, c.WebhookSecret, c.WebhookBackoff = e.URL, "whsec_sim", time.Hour
	})
	_, err := b.SetWebhooks(stripesim.Webhooks{Mode: mode})
	require.NoError(t, err)
	return b
}

// pay makes and confirms an intent. It causes charge.succeeded and payment_intent.succeeded.
func (b *testBundle) pay(t *testing.T) {
	t.Helper()
	require.Equal(t, http.StatusOK, b.confirm(t, b.create(t, "pm_card_visa"), "confirm").status)
}

// caused is what pay causes, in this order.
var caused = []string{"payment_intent.created", "charge.succeeded", "payment_intent.succeeded"}

func TestWebhooksAreSignedAsStripeSigns(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, always(http.StatusOK))
	b := withEndpoint(t, e, "auto")
	_, err := b.SetWebhooks(stripesim.Webhooks{Secret: "whsec_next,whsec_sim"})
	require.NoError(t, err)
	b.Advance(1000 * time.Hour) // signatures keep the wall clock
	b.pay(t)
	eventually(t, func() bool { return len(e.deliveries()) == len(caused) }, "every event is delivered")
	require.ElementsMatch(t, caused, e.types())
	for _, d := range e.deliveries() {
		for _, secret := range []string{"whsec_sim", "whsec_next"} {
			event, err := webhook.ConstructEvent(d.body, d.signature, secret)
			require.NoError(t, err)
			require.Equal(t, d.ID, event.ID)
		}
		require.JSONEq(t, b.get(t, "/v1/events/"+d.ID).raw, string(d.body))
	}
	eventually(t, func() bool { return len(b.Deliveries()) == 3 && b.Deliveries()[2].Done }, "it says so")
	require.Equal(t, 1, b.Deliveries()[0].Attempts)
}

// A delivery that is not taken comes again, signed anew, on the virtual clock: a redirection is not followed, and is no
// success.
func TestRefusedWebhooksComeAgain(t *testing.T) {
	t.Parallel()
	answers := []int{http.StatusInternalServerError, http.StatusFound, http.StatusNotFound}
	e := newEndpoint(t, func(n int) int {
		if n <= len(answers) {
			return answers[n-1]
		}
		return http.StatusNoContent
	})
	b := withEndpoint(t, e, "auto")
	b.create(t, "")
	for n := 1; n <= 4; n++ {
		eventually(t, func() bool { d := b.Deliveries(); return len(d) == 1 && d[0].Attempts == n && d[0].Status != 0 }, "the next attempt")
		require.Len(t, e.deliveries(), n)
		b.Advance(1000 * time.Hour)
	}
	eventually(t, func() bool { return b.Deliveries()[0].Done }, "it is taken")
	for _, d := range e.deliveries() {
		_, err := webhook.ConstructEvent(d.body, d.signature, "whsec_sim")
		require.NoError(t, err)
		require.Equal(t, e.deliveries()[0].ID, d.ID)
	}
}

func TestWebhooksAreGivenUpInTheEnd(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, always(http.StatusServiceUnavailable))
	b := withEndpoint(t, e, "auto")
	b.create(t, "")
	eventually(t, func() bool {
		b.Advance(100_000 * time.Hour)
		return b.Deliveries()[0].GivenUp
	}, "it is given up")
	require.Len(t, e.deliveries(), 8)
}

func TestHeldAndDroppedWebhooks(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, always(http.StatusOK))
	b := withEndpoint(t, e, "hold")
	b.pay(t)
	require.Empty(t, e.deliveries())
	var answer struct {
		Released, Held int
		Mode, URL      string
	}
	require.Equal(t, http.StatusOK, b.control(t, http.MethodGet, "/_sim/webhooks", nil, &answer))
	require.Equal(t, []any{3, "hold", e.URL}, []any{answer.Held, answer.Mode, answer.URL})
	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/webhooks/release", nil, &answer))
	require.Equal(t, 3, answer.Released)
	eventually(t, func() bool { return len(e.deliveries()) == 3 }, "what was held is delivered")
	require.Equal(t, caused, e.types(), "oldest first")

	_, err := b.SetWebhooks(stripesim.Webhooks{Mode: "drop"})
	require.NoError(t, err)
	b.create(t, "pm_card_mastercard")
	require.Zero(t, b.ReleaseWebhooks())
	require.Len(t, b.Deliveries(), 3)
	require.Contains(t, b.get(t, "/v1/events?limit=1").raw, "payment_intent.created", "the list of events has it")
}

func TestDuplicatedWebhooks(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, always(http.StatusOK))
	b := withEndpoint(t, e, "duplicate")
	b.create(t, "")
	eventually(t, func() bool { return len(e.deliveries()) == 3 }, "three deliveries of one change")
	ids := map[string]int{}
	for _, d := range e.deliveries() {
		ids[d.ID]++
		require.Equal(t, http.StatusOK, b.get(t, "/v1/events/"+d.ID).status)
	}
	require.Len(t, ids, 2, "one of them twice, and a second event")
}

func TestReorderedWebhooks(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, always(http.StatusOK))
	b := withEndpoint(t, e, "reorder")
	id := b.create(t, "pm_card_visa")
	eventually(t, func() bool { return len(e.deliveries()) == 1 }, "a moment later")
	require.Equal(t, http.StatusOK, b.confirm(t, id, "confirm").status)
	eventually(t, func() bool { return len(e.deliveries()) == 3 }, "a moment later")
	require.Equal(t, []string{"payment_intent.created", "payment_intent.succeeded", "charge.succeeded"}, e.types())
}

func TestWebhooksBySetting(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, always(http.StatusOK))
	b := setup(t)
	b.create(t, "") // without an endpoint nothing is delivered, now or later
	set := map[string]string{"mode": "auto", "url": e.URL, "secret": "whsec_set", "api_version": "2020-08-27"}
	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/webhooks", set, nil))
	b.create(t, "pm_card_visa")
	eventually(t, func() bool { return len(e.deliveries()) == 1 }, "it is delivered")
	require.Equal(t, "2020-08-27", e.deliveries()[0].APIVersion)
	_, err := b.SetWebhooks(stripesim.Webhooks{URL: "nonsense"})
	require.ErrorContains(t, err, "such as http://")
	b.Reset()
	b.create(t, "pm_card_amex")
	require.Empty(t, b.Deliveries(), "a reset forgets the endpoint, too")
	require.Equal(t, 1, strings.Count(strings.Join(e.types(), " "), "created"))
}

// A signature can be wrong in every way that a receiver has to notice.
func TestSignaturesThatAreNotGood(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, always(http.StatusOK))
	b := withEndpoint(t, e, "auto")
	for i, tc := range []struct {
		signature string
		want      error
	}{
		{"wrong", webhook.ErrNoValidSignature},
		{"old", webhook.ErrTooOld},
		{"none", webhook.ErrNotSigned},
		{"valid", nil},
		{"future", nil}, // which Stripe's own library does not notice
	} {
		require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/webhooks", map[string]string{"signature": tc.signature}, nil))
		b.create(t, "", "description="+tc.signature)
		eventually(t, func() bool { return len(e.deliveries()) == i+1 }, "it is delivered")
		d := e.deliveries()[i]
		_, err := webhook.ConstructEvent(d.body, d.signature, "whsec_sim")
		require.ErrorIs(t, err, tc.want, tc.signature)
	}
	_, err := b.SetWebhooks(stripesim.Webhooks{Signature: "forged"})
	require.ErrorContains(t, err, "valid, wrong, old, future, none")
}

// A delivery that was held for days tells what was, as it was, with a signature of today.
func TestAWebhookDaysLate(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t, always(http.StatusOK))
	b := withEndpoint(t, e, "hold")
	id := b.create(t, "pm_card_visa")
	b.Advance(72 * time.Hour)
	b.confirm(t, id, "k")
	require.Equal(t, 3, b.ReleaseWebhooks())
	eventually(t, func() bool { return len(e.deliveries()) == 3 }, "what was held is delivered")
	first := e.deliveries()[0]
	event, err := webhook.ConstructEvent(first.body, first.signature, "whsec_sim")
	require.NoError(t, err)
	require.Less(t, event.Created, b.Now().Add(-71*time.Hour).Unix())
	require.Contains(t, string(first.body), "requires_confirmation")
}
