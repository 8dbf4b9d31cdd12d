package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// G5, G6: a customer passes 3-D Secure, and nobody asks the provider: polls and sweeps are hours apart. The webhook alone
// tells, through the built binaries, under a secret that is being rolled, each event doubled and under a second id.
// Expected: confirmed within moments, one charge, told once.
func TestAnAuthenticationIsNoticedByItsWebhook(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil, "RECONCILE_POLL=4h", "EVENTS_SWEEP_INTERVAL=4h", "STRIPE_WEBHOOK_SECRETS=whsec_next, whsec_e2e")
	api := b.start("api")
	b.start("worker")
	b.start("reconciler")
	_, err := b.sim.SetWebhooks(stripesim.Webhooks{
		Mode: "duplicate", URL: "http://" + api.address + "/v1/webhooks/stripe", Secret: "whsec_old,whsec_e2e", APIVersion: "2020-08-27",
	})
	require.NoError(t, err)
	court := b.resource(1, time.Hour)
	ada := b.customer("ada", api.address)
	id := ada.book(t, "one", wish{resource: court, method: "pm_card_threeDSecure2Required"})
	eventually(t, soon, "the customer is asked to authenticate", func() bool {
		return ada.get(t, id).booking(t).Payment.Status == "requires_action"
	})
	intent := value[string](b, `SELECT provider_intent_id FROM payments WHERE booking_id = $1`, id)
	_, err = b.sim.Act(stripesim.Action{Action: "authenticate", PaymentIntent: intent})
	require.NoError(t, err)
	began := time.Now()
	b.awaitStatus(soon, "confirmed", id)
	t.Logf("confirmed %s after the authentication", time.Since(began).Round(time.Millisecond))
	eventually(t, soon, "every receipt is acted on", func() bool {
		return count(b, `SELECT count(*) FROM provider_events WHERE status NOT IN ('settled', 'ignored')`) == 0
	})
	require.Positive(t, count(b, `SELECT count(*) FROM provider_events WHERE type = 'payment_intent.succeeded' AND via = 'webhook'`))
	require.Len(t, b.sim.Ledger().Succeeded(id), 1)
}
