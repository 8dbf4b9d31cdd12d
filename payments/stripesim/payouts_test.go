package stripesim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// A payout takes what is available and nothing else; its rows, less itself, come to it. One that fails, even after it said paid,
// brings its money back, and the next takes it.
func TestPayouts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_visa")
	_, err := b.Act(stripesim.Action{Action: "create_payout"})
	require.ErrorContains(t, err, "nothing to pay out")
	b.refund(t, "r", "payment_intent="+id+"&amount=445")
	b.Advance(48 * time.Hour)
	b.paid(t, "pm_card_visa") // is pending
	first := b.act(t, stripesim.Action{Action: "create_payout"})
	require.Equal(t, "in_transit", first.Status)
	require.Len(t, ids(b.get(t, "/v1/balance_transactions?payout="+first.Object)), 3)
	got := b.get(t, "/v1/payouts/"+first.Object+"?expand[]=balance_transaction")
	require.EqualValues(t, 1500, got.body["amount"], got.raw)
	require.Contains(t, got.raw, `"net": -1500`)
	require.Equal(t, int64(1945), b.Ledger().Balance["eur"])
	_, err = b.Act(stripesim.Action{Action: "create_payout"})
	require.ErrorContains(t, err, "nothing to pay out", "it has gone")

	b.Advance(24 * time.Hour)
	require.Equal(t, []string{first.Object}, ids(b.get(t, "/v1/payouts?status=paid")))
	require.Equal(t, "failed", b.act(t, stripesim.Action{Action: "fail_payout", Payout: first.Object, Reason: "no_account"}).Status)
	got = b.get(t, "/v1/payouts/"+first.Object+"?expand[]=failure_balance_transaction")
	require.Equal(t, "no_account", got.body["failure_code"])
	require.Contains(t, got.raw, `"reporting_category": "payout_reversal"`)
	require.Equal(t, []string{"payout.created", "payout.paid", "payout.failed"}, b.told(t, "payout.*"))
	for says, a := range map[string]stripesim.Action{
		"has failed":         {Action: "fail_payout", Payout: first.Object},
		"there is no payout": {Action: "fail_payout", Payout: "po_unknown"},
		"needs a payout":     {Action: "fail_payout"},
		"0 usd is available": {Action: "create_payout", Currency: "usd"},
	} {
		_, err := b.Act(a)
		require.ErrorContains(t, err, says)
	}

	second := b.act(t, stripesim.Action{Action: "create_payout"}).Object
	require.Len(t, ids(b.get(t, "/v1/balance_transactions?payout="+second)), 2, "what came back, and itself")
	require.Equal(t, []string{second, first.Object}, ids(b.get(t, "/v1/payouts")))
	require.Equal(t, []string{second}, ids(b.get(t, "/v1/payouts?status=in_transit")))
	require.Empty(t, ids(b.get(t, "/v1/payouts?arrival_date[lt]=1")))
	require.Equal(t, http.StatusNotFound, b.get(t, "/v1/payouts/po_unknown").status)
	require.NoError(t, b.Ledger().Check())
	b.AddFault(stripesimFault("payouts.list", "list_page_empty"))
	require.Empty(t, ids(b.get(t, "/v1/payouts")))
}
