package httpapi_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/httpapi"
	"holdfast/internal/postgres"
	"holdfast/payments"
	"holdfast/payments/stripe"
)

const webhookSecret = domain.Secret("whsec_endpoint")

func verifier() payments.Verifier {
	v, err := stripe.NewVerifier([]domain.Secret{"whsec_next", webhookSecret})
	if err != nil {
		panic(err)
	}
	return v
}

func signed(at time.Time, body string) string {
	mac := hmac.New(sha256.New, []byte(webhookSecret.Reveal()))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("Stripe-Signature: t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

func (b *bed) deliver(t *testing.T, body string, headers ...string) answer {
	t.Helper()
	return b.send(t, http.MethodPost, "/v1/webhooks/stripe", strings.NewReader(body), headers...)
}

func (b *bed) receipts(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, b.db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM provider_events`).Scan(&n))
	return n
}

const delivery = `{"id":"evt_1","type":"payment_intent.succeeded","created":1700000000,"data":{"object":{"id":"pi_1","object":"payment_intent","client_secret":"pi_1_secret_hush"}}}`

// A delivery is stored once, whatever its content type, its version and its route through proxies, and without a token.
func TestWebhook_IsStoredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h := signed(time.Now(), delivery)
	for _, headers := range [][]string{
		{h},
		{h, "Content-Type: application/json; charset=utf-8"},
		{h, "Content-Type: text/plain"},
		{h, "Authorization: Bearer nonsense"},
		{h, "Idempotency-Key: a b"},
		{h, "Accept: text/html"},
	} {
		a := b.deliver(t, delivery, headers...)
		require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	}
	require.Equal(t, http.StatusOK, b.send(t, http.MethodPost, "/v1/webhooks/stripe?tenant=1", strings.NewReader(delivery), h).status)
	require.Equal(t, 1, b.receipts(t))
	require.Contains(t, b.log.String(), `"event_id":"evt_1"`)
	require.NotContains(t, b.log.String(), "hush")
	require.NotContains(t, b.log.String(), h[len("Stripe-Signature: "):])
}

// Incident 23: what is not the provider's is refused with a reason, stored nowhere, and logged as a warning.
func TestIncident23_RefusalsSayWhy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	b.deliver(t, delivery).refused(t, http.StatusBadRequest, httpapi.CodeSignatureInvalid)
	b.deliver(t, delivery+" ", signed(now, delivery)).refused(t, http.StatusBadRequest, httpapi.CodeSignatureInvalid)
	b.deliver(t, delivery, signed(now, delivery), signed(now, delivery)).refused(t, http.StatusBadRequest, httpapi.CodeSignatureInvalid)
	b.deliver(t, delivery, signed(now.Add(-time.Hour), delivery)).refused(t, http.StatusBadRequest, httpapi.CodeSignatureExpired)
	b.deliver(t, delivery, signed(now.Add(time.Hour), delivery)).refused(t, http.StatusBadRequest, httpapi.CodeSignatureExpired)
	b.deliver(t, "[]", signed(now, "[]")).refused(t, http.StatusBadRequest, httpapi.CodeEventUnreadable)
	b.deliver(t, "", signed(now, "")).refused(t, http.StatusBadRequest, httpapi.CodeEventUnreadable)
	long := strings.Repeat(" ", 512<<10) + delivery
	b.deliver(t, long, signed(now, long)).refused(t, http.StatusRequestEntityTooLarge, httpapi.CodeBodyTooLarge)
	b.send(t, http.MethodGet, "/v1/webhooks/stripe", nil).refused(t, http.StatusMethodNotAllowed, httpapi.CodeMethodNotAllowed)
	require.Zero(t, b.receipts(t))
	require.Contains(t, b.log.String(), `"level":"WARN","msg":"request","method":"POST","route":"POST /v1/webhooks/stripe","status":400`)

	long = strings.Repeat(" ", 500<<10) + delivery
	require.Equal(t, http.StatusOK, b.deliver(t, long, signed(now, long)).status, "long, and the provider's")
}

// Without a secret nobody can be believed. 503 and not 404: the provider tries again for days.
func TestWebhook_WithoutASecret(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *httpapi.Config) { c.Inbox = nil })
	a := b.deliver(t, delivery, signed(time.Now(), delivery))
	a.refused(t, http.StatusServiceUnavailable, httpapi.CodeWebhooksNotSetUp)
	require.NotEmpty(t, a.header.Get("Retry-After"))
	require.Zero(t, b.receipts(t))
}

// While the database is away nothing is stored, and the provider is told to come back (G5); 500 would be a bug.
func TestWebhook_WhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	nowhere, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: "postgres://nobody@127.0.0.1:1/none", ApplicationName: "away"})
	require.NoError(t, err)
	t.Cleanup(nowhere.Close)
	b := setup(t, func(c *httpapi.Config) { c.Inbox = payments.NewInbox(nowhere, verifier(), nil) })
	b.deliver(t, delivery, signed(time.Now(), delivery)).refused(t, http.StatusServiceUnavailable, httpapi.CodeBusy)

	b = setup(t, func(c *httpapi.Config) { c.Inbox = brokenInbox{} })
	b.deliver(t, delivery).refused(t, http.StatusInternalServerError, httpapi.CodeInternal)
}

type brokenInbox struct{}

func (brokenInbox) Receive(context.Context, string, []byte) (string, error) {
	return "", errors.New("a bug")
}
