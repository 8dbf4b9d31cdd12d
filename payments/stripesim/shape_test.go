package stripesim_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The fields of each object in Stripe's published description of this API version: an object has all that are required, and none
// that version does not know.
func TestShapesAreThoseOfTheVersion(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/fields_2023-10-16.json")
	require.NoError(t, err)
	var schemas map[string]struct{ Required, Known []string }
	require.NoError(t, json.Unmarshal(raw, &schemas))

	b := setup(t)
	check := func(r response) {
		t.Helper()
		require.NoError(t, r.err)
		name, _ := r.body["object"].(string)
		require.Contains(t, schemas, name, r.raw)
		for _, field := range schemas[name].Required {
			require.Contains(t, r.body, field, name)
		}
		for field := range r.body {
			require.Contains(t, schemas[name].Known, field, name)
		}
	}
	for _, method := range []string{"pm_card_visa", "pm_card_chargeDeclined", "pm_card_threeDSecure2Required", "pm_sim_processing"} {
		id := b.create(t, method)
		before := b.get(t, "/v1/payment_intents/"+id)
		b.confirm(t, id, "confirm-"+id)
		check(before)
		check(b.get(t, "/v1/payment_intents/"+id))
		used, _ := before.body["payment_method"].(string)
		check(b.get(t, "/v1/payment_methods/"+used))
	}
	for _, ch := range b.Ledger().Charges {
		check(b.get(t, "/v1/charges/"+ch.ID))
	}
	for _, id := range ids(b.get(t, "/v1/events?limit=100")) {
		check(b.get(t, "/v1/events/"+id))
	}
}
