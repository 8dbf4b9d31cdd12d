package stripesim_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"

	"holdfast/payments/stripesim"
)

func newSDK(t *testing.T, b *testBundle, retries int64) *client.API {
	t.Helper()
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:               stripe.String(b.URL),
		HTTPClient:        b.client,
		MaxNetworkRetries: stripe.Int64(retries),
		EnableTelemetry:   stripe.Bool(false),
		LeveledLogger:     &stripe.LeveledLogger{},
	})
	return client.New("sk_test_simulator", &stripe.Backends{API: backend})
}

func sdkCreate(key, method string) *stripe.PaymentIntentParams {
	params := &stripe.PaymentIntentParams{
		Amount:             stripe.Int64(2000),
		Currency:           stripe.String("eur"),
		CaptureMethod:      stripe.String("automatic"),
		PaymentMethod:      stripe.String(method),
		PaymentMethodTypes: stripe.StringSlice([]string{"card"}),
		Metadata:           map[string]string{"booking_id": "b1"},
	}
	params.SetIdempotencyKey(key)
	return params
}

func sdkConfirm(key string) *stripe.PaymentIntentConfirmParams {
	params := &stripe.PaymentIntentConfirmParams{}
	params.SetIdempotencyKey(key)
	return params
}

func TestStripeGoPaysAndReadsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sdk := newSDK(t, b, 0)
	intent, err := sdk.PaymentIntents.New(sdkCreate("create", "pm_card_visa"))
	require.NoError(t, err)
	require.Equal(t, stripe.PaymentIntentStatusRequiresConfirmation, intent.Status)
	intent, err = sdk.PaymentIntents.Confirm(intent.ID, sdkConfirm("confirm"))
	require.NoError(t, err)
	require.Equal(t, stripe.PaymentIntentStatusSucceeded, intent.Status)

	get := &stripe.PaymentIntentParams{}
	get.AddExpand("latest_charge")
	intent, err = sdk.PaymentIntents.Get(intent.ID, get)
	require.NoError(t, err)
	require.Equal(t, stripe.ChargeStatusSucceeded, intent.LatestCharge.Status)
	require.Equal(t, "b1", intent.LatestCharge.Metadata["booking_id"])

	list := &stripe.ChargeListParams{PaymentIntent: stripe.String(intent.ID)}
	charges := sdk.Charges.List(list)
	require.True(t, charges.Next())
	require.Equal(t, intent.LatestCharge.ID, charges.Charge().ID)
	require.False(t, charges.Next())
	require.NoError(t, charges.Err())

	account, err := sdk.Accounts.Get()
	require.NoError(t, err)
	require.Equal(t, "acct_1SimulatorAccount", account.ID)
}

func TestStripeGoReadsADecline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sdk := newSDK(t, b, 0)
	intent, err := sdk.PaymentIntents.New(sdkCreate("create", "pm_card_visa_chargeDeclinedInsufficientFunds"))
	require.NoError(t, err)
	_, err = sdk.PaymentIntents.Confirm(intent.ID, sdkConfirm("confirm"))
	var declined *stripe.Error
	require.ErrorAs(t, err, &declined)
	require.Equal(t, http.StatusPaymentRequired, declined.HTTPStatusCode)
	require.Equal(t, stripe.ErrorTypeCard, declined.Type)
	require.Equal(t, stripe.DeclineCode("insufficient_funds"), declined.DeclineCode)
	require.Equal(t, stripe.PaymentIntentStatusRequiresPaymentMethod, declined.PaymentIntent.Status)
	require.Equal(t, intent.PaymentMethod.ID, declined.PaymentIntent.LastPaymentError.PaymentMethod.ID)
}

// What stripe-go does by itself: nil parameters carry no key, and each retry of a lost answer is another keyless request.
func TestStripeGoWithNilParamsSendsNoKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sdk := newSDK(t, b, 2)
	intent, err := sdk.PaymentIntents.New(sdkCreate("create", "pm_card_visa"))
	require.NoError(t, err)
	b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after", Times: 2})
	_, err = sdk.PaymentIntents.Confirm(intent.ID, nil)
	var refused *stripe.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, stripe.ErrorCodePaymentIntentUnexpectedState, refused.Code)
	require.Len(t, b.confirms(), 3)
	require.Equal(t, []string{"succeeded"}, b.charges(), "the intent guards the money")
	require.ErrorContains(t, b.Ledger().Check(), "without an idempotency key")
}
