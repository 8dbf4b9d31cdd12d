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
	ada, bob := b.customer(t, "ada"), b.customer(t, "bob")
	old := b.create(t, "pm_card_visa", "customer="+ada)
	b.Advance(time.Hour)
	young := b.create(t, "pm_card_visa", "customer="+bob)
	created, _ := b.get(t, "/v1/payment_intents/"+young).body["created"].(float64)
	at := strconv.Itoa(int(created))
	list := func(pairs ...string) []string { return ids(b.get(t, "/v1/payment_intents?"+query(pairs...))) }
	require.Equal(t, []string{young}, list("created[gte]", at))
	require.Equal(t, []string{old}, list("created[lt]", at))
	require.Equal(t, []string{young}, list("created", at))
	require.Empty(t, list("created[gt]", at))
	require.Equal(t, []string{young, old}, list("created[lte]", at))
	require.Equal(t, []string{old}, list("customer", ada))

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

// What is born while somebody walks the pages shifts nothing: a cursor is an object, not a number.
func TestAnObjectBornBetweenPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	oldest, older := b.create(t, "", "description=1"), b.create(t, "", "description=2")
	first := b.get(t, "/v1/payment_intents?limit=1")
	require.Equal(t, []string{older}, ids(first))
	b.create(t, "", "description=3")
	second := b.get(t, "/v1/payment_intents?"+query("limit", "1", "starting_after", older))
	require.Equal(t, []string{oldest}, ids(second))
	require.Equal(t, false, second.body["has_more"])
}

// Everything that a write does is told under its key, also what happens later of itself under none.
func TestEventsOfAChargeEchoTheConfirmsKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	b.confirm(t, id, "the-confirm")
	told := func(kinds string) map[string]any {
		t.Helper()
		page := b.get(t, "/v1/events?type="+kinds)
		require.Len(t, ids(page), 1, kinds)
		data, _ := page.body["data"].([]any)
		event, _ := data[0].(map[string]any)
		request, _ := event["request"].(map[string]any)
		return request
	}
	for _, kind := range []string{"charge.succeeded", "payment_intent.succeeded"} {
		require.Equal(t, "the-confirm", told(kind)["idempotency_key"], kind)
		require.Equal(t, b.confirms()[0].RequestID, told(kind)["id"], kind)
	}

	half := b.create(t, "pm_card_visa", "metadata[booking_id]=half")
	b.AddFault(stripesimFault("payment_intents.confirm", "partial_500"))
	b.confirm(t, half, "the-half")
	require.Len(t, ids(b.get(t, "/v1/events?type=charge.*")), 1, "nothing is told of what is half-done")
	b.Advance(time.Hour)
	newest := b.get(t, "/v1/events?limit=1")
	require.Contains(t, newest.raw, `"payment_intent.succeeded"`)
	require.Contains(t, newest.raw, half)
	require.Contains(t, newest.raw, `"idempotency_key": null`, "nobody asked for it just then")
}

func TestNothingIsListedAfterWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/v1/payment_methods/pm_unknown", "/v1/events/evt_unknown", "/v1/charges/ch_unknown", "/v1/charges?starting_after=ch_unknown"} {
		r := b.get(t, path)
		require.Equal(t, http.StatusNotFound, r.status, path)
		require.Equal(t, "resource_missing", r.errorField("code"), path)
	}
	require.Empty(t, ids(b.get(t, "/v1/charges?payment_intent=pi_unknown")))
}
