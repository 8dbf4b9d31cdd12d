package stripesim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// A card refund says succeeded and may fail a month later: its amount is the charge's again, and can be refunded once more.
func TestARefundFailsAfterItSucceeded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_visa")
	first, second := b.refund(t, "a", "payment_intent="+id+"&amount=600").id(), b.refund(t, "b", "payment_intent="+id+"&amount=500").id()
	b.Advance(30 * 24 * time.Hour)
	before := len(b.told(t))
	failed := b.act(t, stripesim.Action{Action: "fail_refund", Refund: first, Reason: "expired_or_canceled_card"})
	require.Equal(t, []string{id, first, "failed"}, []string{failed.PaymentIntent, failed.Object, failed.Status})
	require.Equal(t, []string{"refund.updated", "charge.refund.updated", "refund.failed"}, b.told(t)[before:])
	got := b.get(t, "/v1/refunds/"+first).body
	require.Equal(t, []any{"failed", "expired_or_canceled_card"}, []any{got["status"], got["failure_reason"]})
	require.EqualValues(t, 500, b.Ledger().Charges[0].AmountRefunded)
	_, err := b.Act(stripesim.Action{Action: "fail_refund", Refund: first})
	require.ErrorContains(t, err, "no refund that is pending or succeeded")
	_, err = b.Act(stripesim.Action{Action: "fail_refund", PaymentIntent: id, Reason: "moon"})
	require.ErrorContains(t, err, "is none of charge_for_pending_refund_disputed")
	require.Equal(t, second, b.act(t, stripesim.Action{Action: "fail_refund", PaymentIntent: id}).Object, "the newest that can")
	require.Equal(t, http.StatusOK, b.refund(t, "c", "payment_intent="+id).status)
	require.EqualValues(t, 2000, b.Ledger().Charges[0].AmountRefunded)
	require.NoError(t, b.Ledger().Check())
}

// The cards whose refunds are made to end, by the clock if by nothing else.
func TestRefundsThatTimeEnds(t *testing.T) {
	t.Parallel()
	for card, want := range map[string]struct {
		born, ends string
		left       int64
	}{"pm_card_pendingRefund": {"pending", "succeeded", 2000}, "pm_card_refundFail": {"succeeded", "failed", 0}} {
		b := setup(t)
		id := b.paid(t, card)
		re := b.refund(t, "k", "payment_intent="+id)
		require.Equal(t, want.born, re.body["status"], card)
		b.Advance(100 * time.Hour)
		require.Equal(t, want.born, b.Ledger().Refunds[0].Status, card)
		b.Advance(20 * time.Hour)
		require.Equal(t, want.ends, b.Ledger().Refunds[0].Status, card)
		require.Equal(t, want.left, b.Ledger().Charges[0].AmountRefunded, card)
		require.Contains(t, b.told(t), "charge.refund.updated", card)

		decided := b.paid(t, card)
		b.refund(t, "decided", "payment_intent="+decided)
		ended := b.act(t, stripesim.Action{Action: "fail_refund", PaymentIntent: decided}).Object
		after := len(b.told(t))
		b.Advance(1000 * time.Hour)
		require.Len(t, b.told(t), after, "what has ended ends no more: %s", ended)
	}
}

// A refund made at the dashboard carries nothing of ours.
func TestARefundAtTheDashboard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_visa")
	made := b.act(t, stripesim.Action{Action: "refund", PaymentIntent: id, Amount: 700, Reason: "requested_by_customer"})
	require.Equal(t, "succeeded", made.Status)
	rest := b.act(t, stripesim.Action{Action: "refund", Charge: b.Ledger().Charges[0].ID})
	require.Equal(t, id, rest.PaymentIntent)
	refunds := b.Ledger().Refunds
	require.Equal(t, []int64{700, 1300}, []int64{refunds[0].Amount, refunds[1].Amount})
	require.Empty(t, refunds[0].Metadata)
	require.Empty(t, refunds[0].IdempotencyKey)
	require.Equal(t, "{}", string(mustJSON(t, b.get(t, "/v1/refunds/"+made.Object).body["metadata"])))
	for says, a := range map[string]stripesim.Action{
		"already been refunded":           {Action: "refund", PaymentIntent: id},
		"Only 2000 of this charge":        {Action: "refund", PaymentIntent: b.paid(t, "pm_card_visa"), Amount: 2001},
		"is none of duplicate":            {Action: "refund", PaymentIntent: id, Reason: "because"},
		"has no successful charge":        {Action: "refund", PaymentIntent: b.create(t, "")},
		"no refund that is pending":       {Action: "settle_refund", PaymentIntent: id},
		"succeeded, failed, canceled":     {Action: "settle_refund", PaymentIntent: id, Outcome: "lost"},
		"or a charge, refund or dispute ": {Action: "refund"},
	} {
		_, err := b.Act(a)
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, b.Ledger().Check())
}

func TestARefundIsUpdatedAndCanceled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_pendingRefund")
	re := b.refund(t, "k", "payment_intent="+id+"&metadata[a]=1").id()
	updated := b.post(t, "/v1/refunds/"+re, "u", "metadata[b]=2")
	require.Equal(t, map[string]any{"a": "1", "b": "2"}, updated.body["metadata"], updated.raw)
	require.Equal(t, http.StatusNotFound, b.post(t, "/v1/refunds/re_unknown", "v", "metadata[b]=2").status)
	require.Equal(t, "canceled", b.act(t, stripesim.Action{Action: "settle_refund", Refund: re, Outcome: "canceled"}).Status)
	require.Zero(t, b.Ledger().Charges[0].AmountRefunded)
	require.Equal(t, http.StatusOK, b.refund(t, "again", "payment_intent="+id).status)
	require.NoError(t, b.Ledger().Check())
}
