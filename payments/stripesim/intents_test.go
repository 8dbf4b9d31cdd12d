package stripesim_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

func TestAnIntentIsChargedOnceByConfirm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	require.Equal(t, "requires_confirmation", b.status(t, id))
	require.Empty(t, b.charges(), "an unconfirmed intent moves no money")

	r := b.confirm(t, id, "confirm-1")
	require.Equal(t, http.StatusOK, r.status, r.raw)
	require.Equal(t, "succeeded", r.body["status"])
	require.EqualValues(t, 2000, r.body["amount_received"])
	require.NotContains(t, r.body, "charges", "this version has no list of charges on the intent")

	again := b.confirm(t, id, "confirm-2")
	require.Equal(t, http.StatusBadRequest, again.status)
	require.Equal(t, "payment_intent_unexpected_state", again.errorField("code"))
	embedded, _ := again.errorField("payment_intent").(map[string]any)
	require.Equal(t, "succeeded", embedded["status"])

	require.Equal(t, []string{"succeeded"}, b.charges())
	charge := b.Ledger().Charges[0]
	require.Equal(t, "b1", charge.Metadata["booking_id"])
	require.Equal(t, "confirm-1", charge.IdempotencyKey)
	require.NoError(t, b.Ledger().Check())
}

func TestAMagicMethodComesBackUnderAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.get(t, "/v1/payment_intents/"+b.create(t, "pm_card_visa"))
	second := b.get(t, "/v1/payment_intents/"+b.create(t, "pm_card_visa", "description=another"))
	require.Regexp(t, `^pm_1\w{23}$`, first.body["payment_method"])
	require.NotEqual(t, first.body["payment_method"], second.body["payment_method"])
}

func TestADeclineTakesTheMethodAndKeepsTheFailedCharge(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ code, declineCode any }{
		"pm_card_chargeDeclined":                       {"card_declined", "generic_decline"},
		"pm_card_visa_chargeDeclined":                  {"card_declined", "generic_decline"},
		"pm_card_chargeCustomerFail":                   {"card_declined", "generic_decline"},
		"pm_card_chargeDeclinedInsufficientFunds":      {"card_declined", "insufficient_funds"},
		"pm_card_visa_chargeDeclinedInsufficientFunds": {"card_declined", "insufficient_funds"},
		"pm_card_chargeDeclinedLostCard":               {"card_declined", "lost_card"},
		"pm_card_chargeDeclinedStolenCard":             {"card_declined", "stolen_card"},
		"pm_card_chargeDeclinedExpiredCard":            {"expired_card", nil},
		"pm_card_chargeDeclinedIncorrectCvc":           {"incorrect_cvc", nil},
		"pm_card_chargeDeclinedProcessingError":        {"processing_error", nil},
		"pm_card_radarBlock":                           {"card_declined", "fraudulent"},
	}
	for method, want := range cases {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create(t, method)
			attached := b.get(t, "/v1/payment_intents/"+id).body["payment_method"]
			r := b.confirm(t, id, "confirm-1")
			require.Equal(t, http.StatusPaymentRequired, r.status)
			require.Equal(t, "card_error", r.errorField("type"))
			require.Equal(t, want.code, r.errorField("code"))
			require.Equal(t, want.declineCode, r.errorField("decline_code"))
			require.Regexp(t, `^ch_`, r.errorField("charge"))

			intent, _ := r.errorField("payment_intent").(map[string]any)
			require.Equal(t, "requires_payment_method", intent["status"])
			require.Nil(t, intent["payment_method"])
			require.Equal(t, r.errorField("charge"), intent["latest_charge"])
			last, _ := intent["last_payment_error"].(map[string]any)
			named, _ := last["payment_method"].(map[string]any)
			require.Equal(t, attached, named["id"], "the error names the method that was declined")
			require.Equal(t, []string{"failed"}, b.charges())

			stray := b.confirm(t, id, "confirm-2")
			require.Equal(t, "payment_intent_unexpected_state", stray.errorField("code"), "nothing to charge")
		})
	}
}

func TestAnotherCardOnTheSameIntent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_chargeDeclined")
	b.confirm(t, id, "confirm-1")
	r := b.post(t, "/v1/payment_intents/"+id, "update-1", "payment_method=pm_card_visa&metadata[booking_id]=b2&metadata[more]=x")
	require.Equal(t, "requires_confirmation", r.body["status"], r.raw)
	require.NotNil(t, r.body["last_payment_error"], "the old error stays until the next confirm")
	r = b.confirm(t, id, "confirm-3")
	require.Equal(t, "succeeded", r.body["status"])
	require.Nil(t, r.body["last_payment_error"])
	require.Equal(t, []string{"failed", "succeeded"}, b.charges())
	require.Equal(t, "b1", b.Ledger().Charges[0].Metadata["booking_id"], "a charge keeps the metadata of its birth")
	require.Equal(t, "b2", b.Ledger().Charges[1].Metadata["booking_id"])
	require.NoError(t, b.Ledger().Check())
}

func TestThreeDSecure(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, method, form, action, status string }{
		{"passed", "pm_card_threeDSecure2Required", "", "authenticate", "succeeded"},
		{"always", "pm_card_authenticationRequired", "return_url=https://x.test", "authenticate", "succeeded"},
		{"failed", "pm_card_authenticationRequired", "", "fail_authentication", "requires_payment_method"},
		{"passed and declined", "pm_card_threeDSecureRequiredChargeDeclined", "", "authenticate", "requires_payment_method"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create(t, tc.method)
			r := b.post(t, "/v1/payment_intents/"+id+"/confirm", "confirm-1", tc.form)
			require.Equal(t, "requires_action", r.body["status"], r.raw)
			next, _ := r.body["next_action"].(map[string]any)
			if tc.form == "" {
				require.Equal(t, "use_stripe_sdk", next["type"])
			} else {
				require.Equal(t, "redirect_to_url", next["type"])
			}
			require.Empty(t, b.charges(), "no charge before the customer is back")

			status, err := b.Act(stripesim.Action{Action: tc.action, PaymentIntent: id})
			require.NoError(t, err)
			require.Equal(t, tc.status, status)
			stale := b.post(t, "/v1/payment_intents/"+id+"/confirm", "confirm-1", tc.form)
			require.Equal(t, "requires_action", stale.body["status"], "a replay is a snapshot")
			require.Equal(t, "true", stale.header.Get("Idempotent-Replayed"))
			require.NoError(t, b.Ledger().Check())
		})
	}
	t.Run("off session is refused", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := b.create(t, "pm_card_authenticationRequired")
		r := b.post(t, "/v1/payment_intents/"+id+"/confirm", "confirm-1", "off_session=true")
		require.Equal(t, http.StatusPaymentRequired, r.status)
		require.Equal(t, "authentication_required", r.errorField("code"))
		require.Equal(t, "authentication_required", r.errorField("decline_code"))
		require.Equal(t, []string{"failed"}, b.charges())
	})
	t.Run("a card set up for it succeeds off session", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := b.create(t, "pm_card_authenticationRequiredSetupForOffSession")
		r := b.post(t, "/v1/payment_intents/"+id+"/confirm", "confirm-1", "off_session=true")
		require.Equal(t, "succeeded", r.body["status"], r.raw)
	})
}

func TestCancelIsAFence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	r := b.post(t, "/v1/payment_intents/"+id+"/cancel", "cancel-1", "cancellation_reason=abandoned")
	require.Equal(t, "canceled", r.body["status"], r.raw)
	require.Equal(t, "abandoned", r.body["cancellation_reason"])
	require.NotNil(t, r.body["canceled_at"])
	for key, path := range map[string]string{"confirm-1": "/confirm", "cancel-2": "/cancel"} {
		refused := b.post(t, "/v1/payment_intents/"+id+path, key, "")
		require.Equal(t, "payment_intent_unexpected_state", refused.errorField("code"), path)
	}
	require.Empty(t, b.charges())
}

func TestManualCapture(t *testing.T) {
	t.Parallel()
	authorised := func(t *testing.T, b *testBundle) string {
		t.Helper()
		r := b.post(t, "/v1/payment_intents", "create", "amount=2000&currency=eur&payment_method_types[]=card&capture_method=manual"+
			"&payment_method=pm_card_visa&confirm=true")
		require.Equal(t, "requires_capture", r.body["status"], r.raw)
		require.EqualValues(t, 2000, r.body["amount_capturable"])
		return r.id()
	}
	t.Run("part of it", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := authorised(t, b)
		much := b.post(t, "/v1/payment_intents/"+id+"/capture", "capture-0", "amount_to_capture=2001")
		require.Equal(t, "amount_too_large", much.errorField("code"))
		r := b.post(t, "/v1/payment_intents/"+id+"/capture", "capture-1", "amount_to_capture=1500")
		require.Equal(t, "succeeded", r.body["status"], r.raw)
		require.EqualValues(t, 1500, b.Ledger().Charges[0].AmountCaptured)
		require.EqualValues(t, 500, b.Ledger().Charges[0].AmountRefunded)
	})
	t.Run("released by cancel", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := authorised(t, b)
		require.Equal(t, "canceled", b.post(t, "/v1/payment_intents/"+id+"/cancel", "cancel-1", "").body["status"])
		require.False(t, b.Ledger().Charges[0].Captured)
		require.EqualValues(t, 2000, b.Ledger().Charges[0].AmountRefunded)
	})
}

func TestProcessingEndsEitherWay(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string]string{"succeeded": "succeeded", "failed": "requires_payment_method"} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create(t, "pm_sim_processing")
			require.Equal(t, "processing", b.confirm(t, id, "confirm-1").body["status"])
			require.Equal(t, []string{"pending"}, b.charges())
			r := b.post(t, "/v1/payment_intents/"+id+"/cancel", "cancel-1", "")
			require.Equal(t, "payment_intent_unexpected_state", r.errorField("code"))
			status, err := b.Act(stripesim.Action{Action: "settle_processing", PaymentIntent: id, Outcome: outcome})
			require.NoError(t, err)
			require.Equal(t, want, status)
			require.Equal(t, []string{outcome}, b.charges())
		})
	}
}

func TestTheCustomerConfirms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "")
	status, err := b.Act(stripesim.Action{Action: "customer_confirm", PaymentIntent: id})
	require.NoError(t, err)
	require.Equal(t, "succeeded", status)
	require.Empty(t, b.confirms(), "the customer is no API request")
	require.Empty(t, b.Ledger().Charges[0].IdempotencyKey)
}

func TestAutomaticMethodsWantAReturnURL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.post(t, "/v1/payment_intents", "create", "amount=2000&currency=eur&payment_method=pm_card_visa")
	require.NotNil(t, r.body["automatic_payment_methods"])
	refused := b.confirm(t, r.id(), "confirm-1")
	require.Equal(t, http.StatusBadRequest, refused.status)
	require.Equal(t, "return_url", refused.errorField("param"))
	r = b.post(t, "/v1/payment_intents/"+r.id()+"/confirm", "confirm-2", "return_url=https://x.test")
	require.Equal(t, "succeeded", r.body["status"], r.raw)
}

// A customer who never comes back leaves an intent that can be fenced, and then can charge nothing any more.
func TestAnAbandonedChallengeIsFenced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_threeDSecure2Required")
	require.Equal(t, "requires_action", b.confirm(t, id, "confirm-1").body["status"])
	r := b.post(t, "/v1/payment_intents/"+id+"/cancel", "cancel-1", "")
	require.Equal(t, "canceled", r.body["status"], r.raw)
	require.Nil(t, r.body["next_action"])
	for _, action := range []string{"authenticate", "fail_authentication", "customer_confirm"} {
		_, err := b.Act(stripesim.Action{Action: action, PaymentIntent: id})
		require.Error(t, err, action)
	}
	require.Empty(t, b.charges())
}

// Each of these pays; what Stripe lets follow some of them is not modelled.
func TestMethodsThatSucceed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	methods := []string{
		"visa", "mastercard", "amex", "visa_debit", "createDispute", "createDisputeProductNotReceived", "createDisputeInquiry", "pendingRefund",
		"refundFail", "bypassPending",
	}
	for _, method := range methods {
		id := b.create(t, "pm_card_"+method, "metadata[booking_id]="+method)
		require.Equal(t, "succeeded", b.confirm(t, id, method).body["status"], method)
	}
	require.Len(t, b.Ledger().Succeeded(""), len(methods))
	require.NoError(t, b.Ledger().Check())
}
