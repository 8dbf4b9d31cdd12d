package stripesim_test

import (
	"context"
	"fmt"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"

	"holdfast/payments/stripesim"
)

// The answer to a confirm is lost; sending the same key again finds out what happened, and the customer has paid once.
func Example() {
	sim, err := stripesim.Start(context.Background(), "127.0.0.1:0", stripesim.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = sim.Close() }()
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(sim.URL), MaxNetworkRetries: stripe.Int64(0), LeveledLogger: &stripe.LeveledLogger{},
	})
	sdk := client.New("sk_test_anything", &stripe.Backends{API: backend})

	create := &stripe.PaymentIntentParams{
		Amount: stripe.Int64(2000), Currency: stripe.String("eur"), PaymentMethod: stripe.String("pm_card_visa"),
		PaymentMethodTypes: stripe.StringSlice([]string{"card"}),
	}
	create.SetIdempotencyKey("order-1:create")
	intent, err := sdk.PaymentIntents.New(create)
	if err != nil {
		panic(err)
	}

	sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "html_502_after"})
	confirm := &stripe.PaymentIntentConfirmParams{}
	confirm.SetIdempotencyKey("order-1:confirm")
	_, err = sdk.PaymentIntents.Confirm(intent.ID, confirm)
	fmt.Println("known:", err == nil)

	intent, err = sdk.PaymentIntents.Confirm(intent.ID, confirm)
	if err != nil {
		panic(err)
	}
	fmt.Println(intent.Status, intent.LastResponse.Header.Get("Idempotent-Replayed"))
	fmt.Println("charges:", len(sim.Ledger().Succeeded("")), "problems:", sim.Ledger().Check())
	// Output:
	// known: false
	// succeeded true
	// charges: 1 problems: <nil>
}
