package stripesim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// moves are the balance transactions of the ledger: category, amount, fee.
func (b *testBundle) moves() [][]any {
	rows := [][]any{}
	for _, x := range b.Ledger().BalanceTransactions {
		rows = append(rows, []any{x.ReportingCategory, x.Amount, x.Fee})
	}
	return rows
}

// row is the one balance transaction that answers a listing.
func (b *testBundle) row(t *testing.T, query string) map[string]any {
	t.Helper()
	page := b.get(t, "/v1/balance_transactions?"+query)
	data, _ := page.body["data"].([]any)
	require.Len(t, data, 1, page.raw)
	row, _ := data[0].(map[string]any)
	return row
}

// Every cause has its own line, and together they are the balance.
func TestEveryMovementHasItsOwnBalanceTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plain := b.paid(t, "pm_card_visa")
	b.refund(t, "r", "payment_intent="+plain+"&amount=600")
	b.act(t, stripesim.Action{Action: "fail_refund", PaymentIntent: plain})
	won := b.paid(t, "pm_card_createDispute")
	b.act(t, stripesim.Action{Action: "close_dispute", PaymentIntent: won})
	b.paid(t, "pm_card_createDisputeInquiry")
	require.Equal(t, [][]any{
		{"charge", int64(2000), int64(55)}, // 1.5 % and 25
		{"refund", int64(-600), int64(0)},
		{"refund_failure", int64(600), int64(0)},
		{"charge", int64(2000), int64(55)},
		{"dispute", int64(-2000), int64(1500)},
		{"dispute_reversal", int64(2000), int64(0)},
		{"charge", int64(2000), int64(55)},
	}, b.moves())
	require.Equal(t, int64(3*1945-1500), b.Ledger().Balance["eur"])
	require.NoError(t, b.Ledger().Check())

	refund := b.get(t, "/v1/refunds?payment_intent="+plain+"&expand[]=data.balance_transaction&expand[]=data.failure_balance_transaction")
	require.Contains(t, refund.raw, `"reporting_category": "refund"`)
	require.Contains(t, refund.raw, `"reporting_category": "refund_failure"`)
	dispute := b.get(t, "/v1/disputes?payment_intent="+won)
	require.Contains(t, dispute.raw, `"net": -3500`)
	require.Contains(t, dispute.raw, `"reporting_category": "dispute_reversal"`)
	require.Empty(t, ids(b.get(t, "/v1/balance_transactions?source="+ids(dispute)[0])), "as at Stripe")
	charge := b.Ledger().Charges[0].ID
	require.Equal(t, charge, b.row(t, "source="+charge)["source"])
	require.Len(t, ids(b.get(t, "/v1/balance_transactions?type=adjustment")), 2)
	require.Empty(t, ids(b.get(t, "/v1/balance_transactions?currency=usd")))
	require.Empty(t, ids(b.get(t, "/v1/balance_transactions?created[lt]=1")))
	require.Len(t, ids(b.get(t, "/v1/balance_transactions?limit=3")), 3)
	expanded := b.get(t, "/v1/payment_intents/"+plain+"?expand[]=latest_charge.balance_transaction")
	require.Contains(t, expanded.raw, `"fee": 55`)
	require.Equal(t, http.StatusNotFound, b.get(t, "/v1/balance_transactions/txn_unknown").status)
	require.Equal(t, http.StatusNotFound, b.get(t, "/v1/balance_transactions?payout=po_unknown").status)
}

// What is charged in one currency and settled in another has an exchange rate, and its fee is the settlement's.
func TestForeignMoneyIsSettledInTheAccountsCurrency(t *testing.T) {
	t.Parallel()
	b := setup(t)
	settlement := b.Settlement()
	settlement.Rates["jpy"] = 0.00625
	require.NoError(t, b.SetSettlement(settlement))
	for form, want := range map[string][]any{
		"amount=12345&currency=jpy": {7716.0, 141.0, "eur", 0.00625}, // 12345 yen are 77.15625
		"amount=2000&currency=eur":  {2000.0, 55.0, "eur", nil},
		"amount=5000&currency=sek":  {5000.0, 100.0, "sek", nil}, // which has no rate
	} {
		r := b.post(t, "/v1/payment_intents", form, form+"&payment_method_types[]=card&payment_method=pm_card_visa&confirm=true")
		require.Equal(t, "succeeded", r.body["status"], r.raw)
		charge, _ := r.body["latest_charge"].(string)
		x := b.row(t, "source="+charge)
		require.Equal(t, want, []any{x["amount"], x["fee"], x["currency"], x["exchange_rate"]}, form)
	}
	settlement.Rates["jpy"] = -1
	require.ErrorContains(t, b.SetSettlement(settlement), `rate -1 of "jpy"`)
	require.NoError(t, b.Ledger().Check())
}

// Money is pending until its day and then available, by the virtual clock.
func TestMoneyBecomesAvailable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.paid(t, "pm_card_visa")
	b.paid(t, "pm_card_bypassPending")
	funds := func(field string) float64 {
		t.Helper()
		r := b.get(t, "/v1/balance")
		amounts, _ := r.body[field].([]any)
		first, _ := amounts[0].(map[string]any)
		require.Equal(t, "eur", first["currency"])
		amount, _ := first["amount"].(float64)
		return amount
	}
	require.Equal(t, []float64{1945, 1945}, []float64{funds("available"), funds("pending")})
	charge := b.Ledger().Charges[0].ID
	x := b.row(t, "source="+charge)
	require.Equal(t, "pending", x["status"])
	row := b.Ledger().BalanceTransactions[0]
	require.Equal(t, time.Unix(row.Created, 0).UTC().Truncate(24*time.Hour).AddDate(0, 0, 2).Unix(), row.AvailableOn)
	b.Advance(48 * time.Hour)
	require.Equal(t, []float64{3890, 0}, []float64{funds("available"), funds("pending")})
	require.Equal(t, "available", b.row(t, "source="+charge)["status"])
}

// A balance transaction may come after its charge: null first, then there, and told.
func TestALateBalanceTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/settlement", map[string]any{"late_ms": 3_600_000}, nil))
	id := b.paid(t, "pm_card_visa")
	charge := func() any {
		t.Helper()
		r := b.get(t, "/v1/payment_intents/"+id+"?expand[]=latest_charge.balance_transaction")
		fields, _ := r.body["latest_charge"].(map[string]any)
		return fields["balance_transaction"]
	}
	require.Nil(t, charge())
	require.Empty(t, b.moves())
	b.Advance(59 * time.Minute)
	require.Nil(t, charge())
	b.Advance(2 * time.Minute)
	require.NotNil(t, charge())
	require.Contains(t, b.told(t), "charge.updated")
	require.NoError(t, b.Ledger().Check())
	b.Reset()
	require.Zero(t, b.Settlement().LateMS, "a reset forgets it")
}

// A refund draws on what is available: too little, and it waits.
func TestARefundWaitsForTheBalance(t *testing.T) {
	t.Parallel()
	strict := stripesim.DefaultSettlement()
	strict.Strict = true
	b := setup(t, func(c *stripesim.Config) { c.Settlement = &strict })
	id := b.paid(t, "pm_card_visa")
	made := b.refund(t, "k", "payment_intent="+id+"&amount=500")
	require.Equal(t, []any{"pending", nil}, []any{made.body["status"], made.body["balance_transaction"]})
	canceled := b.refund(t, "k2", "payment_intent="+id+"&amount=100")
	b.act(t, stripesim.Action{Action: "settle_refund", Refund: canceled.id(), Outcome: "canceled"})
	require.Nil(t, b.get(t, "/v1/refunds/"+canceled.id()).body["failure_balance_transaction"], "no money had gone")
	b.Advance(48 * time.Hour)
	now := b.get(t, "/v1/refunds/"+made.id())
	require.Equal(t, "succeeded", now.body["status"])
	require.NotNil(t, now.body["balance_transaction"])
	require.Contains(t, b.told(t), "refund.updated")
	require.Equal(t, "succeeded", b.refund(t, "k3", "payment_intent="+id+"&amount=500").body["status"], "there is enough")
	require.Equal(t, "pending", b.refund(t, "k4", "payment_intent="+id).body["status"], "1000 of 945")
	require.NoError(t, b.Ledger().Check())
}

func TestSettlementIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for says, change := range map[string]any{
		"three small letters":          map[string]any{"currency": "EUR"},
		"late_ms are not negative":     map[string]any{"late_ms": -1},
		"greater than 0":               map[string]any{"rates": map[string]any{"jpy": 0}},
		"unknown field":                map[string]any{"fee": 1},
		"the body must be one JSON ob": "late",
	} {
		var complaint struct {
			Error string `json:"error"`
		}
		require.Equal(t, http.StatusBadRequest, b.control(t, http.MethodPost, "/_sim/settlement", change, &complaint), says)
		require.Contains(t, complaint.Error, says)
	}
	var now stripesim.Settlement
	require.Equal(t, http.StatusOK, b.control(t, http.MethodGet, "/_sim/settlement", nil, &now))
	require.Equal(t, stripesim.DefaultSettlement(), now)
}

// A fee is of what its currency can be paid in, as the charge is: an Icelandic one ends in 00.
func TestFeesAreInWholeSteps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	created := b.post(t, "/v1/payment_intents", "isk", "amount=400000&currency=isk&payment_method_types[]=card&payment_method=pm_card_visa")
	require.Equal(t, http.StatusOK, b.confirm(t, created.id(), "k").status)
	moved := b.Ledger().BalanceTransactions
	require.Len(t, moved, 1)
	require.Equal(t, []any{"isk", int64(400_000), int64(6000)}, []any{moved[0].Currency, moved[0].Amount, moved[0].Fee})
}
