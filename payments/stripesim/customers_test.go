package stripesim_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// customer makes one and answers its id.
func (b *testBundle) customer(t *testing.T, key string) string {
	t.Helper()
	r := b.post(t, "/v1/customers", key, "email="+key+"@example.com&metadata[a]=1")
	require.Equal(t, http.StatusOK, r.status, r.raw)
	return r.id()
}

// attached keeps a card for a customer and answers its id.
func (b *testBundle) attached(t *testing.T, card, customer string) string {
	t.Helper()
	r := b.post(t, "/v1/payment_methods/"+card+"/attach", "attach"+card+customer, "customer="+customer)
	require.Equal(t, http.StatusOK, r.status, r.raw)
	require.Equal(t, customer, r.body["customer"])
	return r.id()
}

func TestCustomers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, bob := b.customer(t, "ada"), b.customer(t, "bob")
	changed := b.post(t, "/v1/customers/"+ada, "u", "name=Ada&email=&metadata[b]=2")
	require.Equal(t, []any{"Ada", nil, map[string]any{"a": "1", "b": "2"}}, []any{changed.body["name"], changed.body["email"], changed.body["metadata"]})
	require.Equal(t, changed.raw, b.get(t, "/v1/customers/"+ada).raw)
	require.Equal(t, []string{bob, ada}, ids(b.get(t, "/v1/customers")))
	require.Equal(t, []string{bob}, ids(b.get(t, "/v1/customers?email=bob@example.com")))
	require.Equal(t, []string{"customer.created", "customer.created", "customer.updated"}, b.told(t))
	for _, path := range []string{"/v1/customers/cus_unknown", "/v1/customers?starting_after=cus_unknown"} {
		require.Equal(t, http.StatusNotFound, b.get(t, path).status, path)
	}
	require.Equal(t, http.StatusNotFound, b.post(t, "/v1/customers/cus_unknown", "x", "name=x").status)
	refused := b.post(t, "/v1/customers/"+ada, "d", "invoice_settings[default_payment_method]=pm_card_visa")
	require.Equal(t, "invoice_settings", refused.errorField("param"), "a confirm could fall back to it")
	b.AddFault(stripesimFault("customers.list", "list_page_error"))
	require.Equal(t, http.StatusInternalServerError, b.get(t, "/v1/customers").status)
}

// A card that is kept for a customer pays for that customer and for nobody else.
func TestAnotherCustomersCard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, bob := b.customer(t, "ada"), b.customer(t, "bob")
	card := b.attached(t, "pm_card_visa", ada)
	pay := func(key, extra string) response {
		t.Helper()
		return b.post(t, "/v1/payment_intents", key, cardIntent+"&confirm=true&payment_method="+card+extra)
	}
	require.Equal(t, "succeeded", pay("own", "&customer="+ada).body["status"])
	for name, tc := range map[string]struct {
		r    response
		want []any
	}{
		"another customer":       {pay("other", "&customer="+bob), []any{400, nil, "payment_method"}},
		"no customer":            {pay("none", ""), []any{400, "parameter_missing", "source"}},
		"no such customer":       {pay("unknown", "&customer=cus_unknown"), []any{400, "resource_missing", "customer"}},
		"attached to another":    {b.post(t, "/v1/payment_methods/"+card+"/attach", "steal", "customer="+bob), []any{400, nil, "payment_method"}},
		"attached to nobody":     {b.post(t, "/v1/payment_methods/"+card+"/attach", "lose", "customer=cus_unknown"), []any{400, "resource_missing", "customer"}},
		"no such card":           {b.post(t, "/v1/payment_methods/pm_x/attach", "x", "customer="+bob), []any{400, "resource_missing", "payment_method"}},
		"an update, of nobody's": {b.post(t, intentPath(b.create(t, ""), ""), "up", "payment_method="+card), []any{400, "parameter_missing", "source"}},
	} {
		require.Equal(t, tc.want, []any{tc.r.status, tc.r.errorField("code"), tc.r.errorField("param")}, name)
	}
	failing := b.attached(t, "pm_card_chargeCustomerFail", ada)
	declined := b.post(t, "/v1/payment_intents", "fails", cardIntent+"&confirm=true&payment_method="+failing+"&customer="+ada)
	require.Equal(t, http.StatusPaymentRequired, declined.status, "it attaches, and declines when charged")
	require.NoError(t, b.Ledger().Check())
}
