package stripesim_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ids are the identifiers on a page.
func ids(r response) []string {
	found := []string{}
	data, _ := r.body["data"].([]any)
	for _, item := range data {
		fields, _ := item.(map[string]any)
		id, _ := fields["id"].(string)
		found = append(found, id)
	}
	return found
}

func TestListsAreNewestFirstWithExclusiveCursors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	born := make([]string, 0, 5)
	for i := range 5 {
		born = append(born, b.create(t, "", fmt.Sprintf("description=%d", i)))
	}
	newest := []string{born[4], born[3], born[2], born[1], born[0]}
	page := func(pairs ...string) response { return b.get(t, "/v1/payment_intents?"+query(pairs...)) }

	require.Equal(t, newest, ids(page()))
	first := page("limit", "2")
	require.Equal(t, newest[:2], ids(first))
	require.Equal(t, true, first.body["has_more"])
	require.Equal(t, newest[2:4], ids(page("limit", "2", "starting_after", newest[1])))
	last := page("limit", "2", "starting_after", newest[3])
	require.Equal(t, newest[4:], ids(last))
	require.Equal(t, false, last.body["has_more"])
	back := page("limit", "2", "ending_before", newest[3])
	require.Equal(t, newest[1:3], ids(back), "the nearest to the cursor")
	require.Equal(t, true, back.body["has_more"])

	unknown := page("starting_after", "pi_unknown")
	require.Equal(t, http.StatusNotFound, unknown.status)
	require.Equal(t, "starting_after", unknown.errorField("param"))
	for _, bad := range [][]string{
		{"limit", "0"},
		{"limit", "101"},
		{"limit", "x"},
		{"created[near]", "1"},
		{"created", "now"},
		{"starting_after", newest[0], "ending_before", newest[0]},
	} {
		require.Equal(t, http.StatusBadRequest, page(bad...).status, bad)
	}
	require.Equal(t, "parameter_unknown", page("metadata[booking_id]", "b1").errorField("code"), "Stripe has no such filter")
}

func TestListsFilter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := b.create(t, "pm_card_visa", "customer=cus_1")
	b.Advance(time.Hour)
	young := b.create(t, "pm_card_visa", "customer=cus_2")
	created, _ := b.get(t, "/v1/payment_intents/"+young).body["created"].(float64)
	at := strconv.Itoa(int(created))
	list := func(pairs ...string) []string { return ids(b.get(t, "/v1/payment_intents?"+query(pairs...))) }
	require.Equal(t, []string{young}, list("created[gte]", at))
	require.Equal(t, []string{old}, list("created[lt]", at))
	require.Equal(t, []string{young}, list("created", at))
	require.Empty(t, list("created[gt]", at))
	require.Equal(t, []string{young, old}, list("created[lte]", at))
	require.Equal(t, []string{old}, list("customer", "cus_1"))

	b.confirm(t, old, "c1")
	b.confirm(t, young, "c2")
	charges := b.get(t, "/v1/charges?"+query("payment_intent", old))
	require.Equal(t, []string{b.Ledger().Charges[0].ID}, ids(charges))
	charge := b.get(t, "/v1/charges/"+ids(charges)[0])
	require.Equal(t, old, charge.body["payment_intent"])
	require.Equal(t, "resource_missing", b.get(t, "/v1/charges/ch_unknown").errorField("code"))
}

func TestEventsEchoTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.AddFault(stripesimFault("payment_intents.create", "reset_after"))
	b.post(t, "/v1/payment_intents", "the-key", cardIntent)
	events := b.get(t, "/v1/events?type=payment_intent.created")
	require.Len(t, ids(events), 1)
	event := b.get(t, "/v1/events/"+ids(events)[0])
	request, _ := event.body["request"].(map[string]any)
	require.Equal(t, "the-key", request["idempotency_key"])
	require.Empty(t, ids(b.get(t, "/v1/events?"+query("types[]", "charge.*"))))
}

func TestExpand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	b.confirm(t, id, "k")
	r := b.get(t, "/v1/payment_intents/"+id+"?"+query("expand[]", "latest_charge", "expand[]", "latest_charge.balance_transaction"))
	charge, _ := r.body["latest_charge"].(map[string]any)
	require.Equal(t, "succeeded", charge["status"])
	r = b.get(t, "/v1/payment_intents?"+query("expand[]", "data.latest_charge"))
	require.Contains(t, r.raw, `"latest_charge": {`)
	require.Equal(t, http.StatusBadRequest, b.get(t, "/v1/payment_intents/"+id+"?expand[]=charges").status)
}
