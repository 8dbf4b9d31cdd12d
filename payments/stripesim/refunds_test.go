package stripesim_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// paid makes an intent that has succeeded, of 2000 cents.
func (b *testBundle) paid(t *testing.T, method string) string {
	t.Helper()
	id := b.create(t, method, fmt.Sprintf("metadata[booking_id]=b%d", len(b.Journal(0))))
	require.Equal(t, "succeeded", b.confirm(t, id, "paid-"+id).body["status"])
	return id
}

func (b *testBundle) refund(t *testing.T, key, form string) response {
	t.Helper()
	return b.post(t, "/v1/refunds", key, form)
}

// A refund without an amount gives back all that is left, once; the charge, the ledger and the events say so.
func TestARefundGivesTheMoneyBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_visa")
	charge := b.Ledger().Charges[0].ID
	part := b.refund(t, "part", "charge="+charge+"&amount=500&reason=duplicate&metadata[refund_id]=r1")
	require.Equal(t, http.StatusOK, part.status, part.raw)
	require.Equal(t, "succeeded", part.body["status"])
	require.Equal(t, id, part.body["payment_intent"])
	ch := b.get(t, "/v1/charges/"+charge)
	require.EqualValues(t, 500, ch.body["amount_refunded"])
	require.Equal(t, false, ch.body["refunded"])

	rest := b.refund(t, "rest", "payment_intent="+id)
	require.EqualValues(t, 1500, rest.body["amount"], rest.raw)
	again := b.refund(t, "rest", "payment_intent="+id)
	require.Equal(t, rest.raw, again.raw)
	require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	ch = b.get(t, "/v1/charges/"+charge)
	require.Equal(t, true, ch.body["refunded"])

	refunds := b.Ledger().Refunds
	require.Len(t, refunds, 2)
	require.Equal(t, "part", refunds[0].IdempotencyKey)
	require.Equal(t, map[string]string{"refund_id": "r1"}, refunds[0].Metadata)
	require.Len(t, ids(b.get(t, "/v1/events?types[]=refund.created&types[]=charge.refunded")), 4)
	require.NoError(t, b.Ledger().Check())
}

func TestRefundsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_visa")
	unpaid := b.create(t, "pm_card_visa")
	gone := b.paid(t, "pm_card_mastercard")
	require.Equal(t, http.StatusOK, b.refund(t, "all", "payment_intent="+gone).status)
	for form, want := range map[string][]any{
		"payment_intent=" + gone:                   {400, "charge_already_refunded", nil},
		"payment_intent=" + id + "&amount=2001":    {400, nil, "amount"},
		"payment_intent=" + id + "&amount=0":       {400, "parameter_invalid_integer", "amount"},
		"payment_intent=" + id + "&reason=because": {400, nil, "reason"},
		"payment_intent=" + unpaid:                 {400, nil, "payment_intent"},
		"payment_intent=pi_unknown":                {404, "resource_missing", "payment_intent"},
		"charge=ch_unknown":                        {404, "resource_missing", "id"},
		"amount=5":                                 {400, "parameter_missing", "payment_intent"},
	} {
		r := b.refund(t, form, form)
		require.Equal(t, want, []any{r.status, r.errorField("code"), r.errorField("param")}, form)
	}
	require.Equal(t, http.StatusNotFound, b.get(t, "/v1/refunds/re_unknown").status)
	require.Len(t, b.Ledger().Refunds, 1)
}

// Refunds under different keys at once never give back more than was taken (the simulator's own promise).
func TestRefundsAtOnceNeverExceedTheCharge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_visa")
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { b.refund(t, fmt.Sprint("k", i), "payment_intent="+id+"&amount=700") })
	}
	all.Wait()
	require.Len(t, b.Ledger().Refunds, 2)
	require.NoError(t, b.Ledger().Check())
}

// A refund waits for the writes on its intent, whichever way it names it.
func TestARefundHoldsTheLockOfItsIntent(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"payment_intent", "charge"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.paid(t, "pm_card_visa")
			named := id
			if by == "charge" {
				named = b.Ledger().Charges[0].ID
			}
			b.AddFault(stripesim.Fault{Operation: "payment_intents.update", Fault: "delay", DelayMS: 2000})
			update := make(chan struct{})
			go func() {
				defer close(update)
				b.post(t, intentPath(id, ""), "u", "description=x")
			}()
			eventually(t, func() bool { return len(b.requests("payment_intents.update")) == 1 }, "the update holds the intent")
			eventually(t, func() bool {
				return b.refund(t, "k", by+"="+named+"&amount=1").errorField("code") == "lock_timeout"
			}, "the refund waits for the intent")
			<-update
			require.Equal(t, http.StatusOK, b.refund(t, "k", by+"="+named+"&amount=1").status)
		})
	}
}

func TestRefundListsArePaged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, other := b.paid(t, "pm_card_visa"), b.paid(t, "pm_card_visa")
	var made []string
	for i := range 3 {
		made = append(made, b.refund(t, fmt.Sprint("k", i), "payment_intent="+id+"&amount=10").id())
	}
	b.refund(t, "other", "payment_intent="+other)
	first := b.get(t, "/v1/refunds?limit=2&payment_intent="+id)
	require.Equal(t, []string{made[2], made[1]}, ids(first))
	require.Equal(t, true, first.body["has_more"])
	require.Equal(t, []string{made[0]}, ids(b.get(t, "/v1/refunds?limit=2&payment_intent="+id+"&starting_after="+made[1])))
	require.Len(t, ids(b.get(t, "/v1/refunds")), 4)
	b.AddFault(stripesim.Fault{Operation: "refunds.list", Fault: "list_page_empty"})
	require.Empty(t, ids(b.get(t, "/v1/refunds")))
}

// A pending refund counts as refunded until it fails.
func TestAPendingRefund(t *testing.T) {
	t.Parallel()
	for outcome, left := range map[string]int64{"succeeded": 2000, "failed": 0} {
		b := setup(t)
		id := b.paid(t, "pm_card_pendingRefund")
		require.Equal(t, "pending", b.refund(t, "k", "payment_intent="+id).body["status"])
		require.EqualValues(t, 2000, b.Ledger().Charges[0].AmountRefunded)
		_, err := b.Act(stripesim.Action{Action: "settle_refund", PaymentIntent: id, Outcome: outcome})
		require.NoError(t, err)
		require.Equal(t, outcome, b.Ledger().Refunds[0].Status)
		require.Equal(t, left, b.Ledger().Charges[0].AmountRefunded)
		_, err = b.Act(stripesim.Action{Action: "settle_refund", PaymentIntent: id})
		require.Error(t, err)
	}
}
