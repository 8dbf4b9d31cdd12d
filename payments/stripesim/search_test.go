package stripesim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

func (b *testBundle) search(t *testing.T, text string, more ...string) response {
	t.Helper()
	r := b.get(t, "/v1/payment_intents/search?"+query(append([]string{"query", text}, more...)...))
	require.Equal(t, http.StatusOK, r.status, r.raw)
	return r
}

// What is younger than the lag is not found, and what is found is as it was: a miss proves nothing, nor does a state.
func TestSearchIsLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const ours = "metadata['booking_id']:'b1'"
	id := b.create(t, "pm_card_visa")
	require.Empty(t, ids(b.search(t, ours)), "found at once")
	b.Advance(61 * time.Second)
	b.confirm(t, id, "k")
	require.Equal(t, "succeeded", b.status(t, id))
	found := b.search(t, ours)
	require.Equal(t, []string{id}, ids(found))
	require.Contains(t, found.raw, `"status": "requires_confirmation"`)
	require.Equal(t, []string{id}, ids(b.search(t, ours+" AND status:'requires_confirmation'")))
	require.Empty(t, ids(b.search(t, ours+" AND status:'succeeded'")))

	b.Advance(61 * time.Second)
	require.Equal(t, []string{id}, ids(b.search(t, ours+" status:\"succeeded\"")))
	b.AddFault(stripesim.Fault{Operation: "payment_intents.search", Fault: "search_lag"})
	require.Empty(t, ids(b.search(t, ours)), "an outage of the index")
	b.AddFault(stripesim.Fault{Operation: "*.search", Fault: "search_lag", DelayMS: 70_000})
	require.Contains(t, b.search(t, ours).raw, `"status": "requires_confirmation"`)
	require.Equal(t, "search_lag", b.requests("payment_intents.search")[6].Fault)
	require.Contains(t, b.search(t, ours).raw, `"status": "succeeded"`)
}

// An update that no event tells reaches the index like any other change.
func TestSearchLearnsOfUpdates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "")
	b.Advance(2 * time.Minute)
	b.post(t, intentPath(id, ""), "u", "metadata[booking_id]=b2")
	require.Equal(t, []string{id}, ids(b.search(t, "metadata['booking_id']:'b1'")))
	b.Advance(2 * time.Minute)
	require.Empty(t, ids(b.search(t, "metadata['booking_id']:'b1'")))
	require.Equal(t, []string{id}, ids(b.search(t, `metadata["booking_id"]:"b2"`)))
}

func TestSearchPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	oldest, older, newest := b.create(t, "", "description=1"), b.create(t, "", "description=2"), b.create(t, "", "description=3")
	b.create(t, "", "metadata[booking_id]=other")
	b.Advance(2 * time.Minute)
	const ours = "metadata['booking_id']:'b1'"
	first := b.search(t, ours, "limit", "2")
	require.Equal(t, []string{newest, older}, ids(first))
	require.Equal(t, true, first.body["has_more"])
	for text, found := range map[string]int{"amount:2000": 4, "amount>=2000": 4, "amount>2000": 0, "amount<=2000 AND amount<2001": 4, "created>1": 4, "created<1": 0} {
		require.Len(t, ids(b.search(t, text)), found, text)
	}
	next, _ := first.body["next_page"].(string)
	second := b.search(t, ours, "limit", "2", "page", next)
	require.Equal(t, []string{oldest}, ids(second))
	require.Equal(t, false, second.body["has_more"])
	require.Nil(t, second.body["next_page"])
}

func TestSearchRefusesWhatItDoesNotModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, bad := range [][]string{
		{},
		{"query", "amount>'100'"},
		{"query", "created>yesterday"},
		{"query", "status:'succeeded' OR status:'canceled'"},
		{"query", "-status:'succeeded'"},
		{"query", "status:succeeded"},
		{"query", "status:'succeeded'AND"},
		{"query", "metadata['a']~'b'"},
		{"query", "status:'succeeded'", "limit", "101"},
		{"query", "status:'succeeded'", "page", "page_pi_unknown"},
		{"query", "status:'succeeded'", "created[gte]", "1"},
	} {
		require.Equal(t, http.StatusBadRequest, b.get(t, "/v1/payment_intents/search?"+query(bad...)).status, bad)
	}
}
