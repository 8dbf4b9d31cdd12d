package paymentstest

import (
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// disputes is what is read of a dispute: all of them, as they stand, or an error.
func disputes() []claim {
	return []claim{
		{name: "what nobody disputes lists no dispute", prove: proveNoDispute},
		{name: "a disputed charge lists its dispute", prove: proveDisputed},
		{name: "a dispute is followed to its end, and keeps its id", simulated: true, prove: proveDisputeFollowed},
		{name: "a refund of a disputed charge is refused for good", simulated: true, prove: proveDisputedRefund},
		{name: "a page that fails makes a listing of disputes an error", simulated: true, prove: proveDisputesUnread},
	}
}

func proveNoDispute(x *exam) {
	_, intent := x.paid()
	found, err := x.gateway.Disputes(x.Context(), intent)
	require.NoError(x, err)
	require.Empty(x, found)
	for _, id := range []string{"", "pi_1/x", "pi 1"} {
		_, err := x.gateway.Disputes(x.Context(), id)
		require.Error(x, err)
	}
}

// disputed pays with a card, and waits until its dispute is listed.
func (x *exam) disputed(card string) (payments.Charge, payments.ProviderDispute) {
	x.Helper()
	c, intent := x.paidBy(card)
	var found []payments.ProviderDispute
	require.Eventually(x, func() bool {
		var err error
		found, err = x.gateway.Disputes(x.Context(), intent)
		require.NoError(x, err)
		return len(found) == 1
	}, time.Minute, 100*time.Millisecond)
	require.Equal(x, intent, found[0].IntentID)
	require.Equal(x, c.Total, found[0].Amount)
	return c, found[0]
}

func proveDisputed(x *exam) {
	for card, want := range map[string]payments.ProviderDispute{
		"pm_card_createDispute":                   {Dispute: domain.Dispute{Status: domain.DisputeNeedsResponse, Reason: "fraudulent"}},
		"pm_card_createDisputeProductNotReceived": {Dispute: domain.Dispute{Status: domain.DisputeNeedsResponse, Reason: "product_not_received"}},
		"pm_card_createDisputeInquiry":            {Dispute: domain.Dispute{Status: domain.DisputeWarningNeedsResponse, Reason: "fraudulent"}},
	} {
		_, found := x.disputed(card)
		require.Equal(x, want.Status, found.Status)
		require.Equal(x, want.Reason, found.Reason)
		require.Equal(x, want.Status == domain.DisputeNeedsResponse, found.Withdrawn, "an inquiry takes no money")
		require.WithinDuration(x, time.Now(), found.Opened, time.Hour)
	}
}

func proveDisputeFollowed(x *exam) {
	_, d := x.disputed("pm_card_createDisputeInquiry")
	for _, step := range []struct {
		act  stripesim.Action
		want domain.DisputeStatus
	}{
		{stripesim.Action{Action: "escalate_dispute"}, domain.DisputeNeedsResponse},
		{stripesim.Action{Action: "close_dispute", Outcome: "lost"}, domain.DisputeLost},
	} {
		step.act.PaymentIntent = d.IntentID
		_, err := x.Sim.Act(step.act)
		require.NoError(x, err)
		found, err := x.gateway.Disputes(x.Context(), d.IntentID)
		require.NoError(x, err)
		require.Len(x, found, 1)
		require.Equal(x, d.ID, found[0].ID)
		require.Equal(x, d.Opened, found[0].Opened)
		require.Equal(x, step.want, found[0].Status)
	}
}

func proveDisputedRefund(x *exam) {
	c, d := x.disputed("pm_card_createDispute")
	out := x.gateway.Send(x.Context(), x.refund(c, d.IntentID))
	require.Equal(x, payments.Rejected, out.Class, describe(out))
	require.Equal(x, payments.CodeDisputed, out.Code)
	_, err := x.Sim.Act(stripesim.Action{Action: "close_dispute", PaymentIntent: d.IntentID, Outcome: "won"})
	require.NoError(x, err)
	out = x.gateway.Send(x.Context(), x.refund(c, d.IntentID))
	require.Equal(x, payments.Executed, out.Class, describe(out))
}

func proveDisputesUnread(x *exam) {
	_, d := x.disputed("pm_card_createDispute")
	x.Sim.AddFault(stripesim.Fault{Fault: "list_page_error", Operation: "disputes.list", Times: -1})
	found, err := x.gateway.Disputes(x.Context(), d.IntentID)
	require.Error(x, err)
	require.Nil(x, found)
}
