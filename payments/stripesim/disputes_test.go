package stripesim_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// act performs an action that must be possible, and answers what came of it.
func (b *testBundle) act(t *testing.T, a stripesim.Action) stripesim.Done {
	t.Helper()
	done, err := b.Perform(a)
	require.NoError(t, err)
	return done
}

// told are the types of the events of these kinds, oldest first.
func (b *testBundle) told(t *testing.T, kinds ...string) []string {
	t.Helper()
	pairs := []string{"limit", "100"}
	for _, kind := range kinds {
		pairs = append(pairs, "types[]", kind)
	}
	page := b.get(t, "/v1/events?"+query(pairs...))
	require.Equal(t, http.StatusOK, page.status, page.raw)
	types := []string{}
	data, _ := page.body["data"].([]any)
	for _, item := range slices.Backward(data) {
		event, _ := item.(map[string]any)
		kind, _ := event["type"].(string)
		types = append(types, kind)
	}
	return types
}

const evidence = "evidence[uncategorized_text]="

// The cards that are disputed at once: the events come in the order that Stripe's do, before the intent's own.
func TestCardsThatAreDisputed(t *testing.T) {
	t.Parallel()
	for card, want := range map[string]struct {
		status, reason string
		refundable     bool
		events         []string
	}{
		"createDispute": {"needs_response", "fraudulent", false, []string{"charge.dispute.created", "charge.dispute.funds_withdrawn"}},
		"createDisputeProductNotReceived": {
			"needs_response", "product_not_received", false, []string{"charge.dispute.created", "charge.dispute.funds_withdrawn"},
		},
		"createDisputeInquiry": {"warning_needs_response", "fraudulent", true, []string{"charge.dispute.created"}},
	} {
		b := setup(t)
		id := b.paid(t, "pm_card_"+card)
		page := b.get(t, "/v1/disputes?payment_intent="+id)
		require.Len(t, ids(page), 1, card)
		d := b.get(t, "/v1/disputes/"+ids(page)[0]).body
		require.Equal(t, []any{want.status, want.reason, want.refundable, 2000.0, "eur", id},
			[]any{d["status"], d["reason"], d["is_charge_refundable"], d["amount"], d["currency"], d["payment_intent"]}, card)
		all := slices.Concat([]string{"payment_intent.created", "charge.succeeded"}, want.events, []string{"payment_intent.succeeded"})
		require.Equal(t, all, b.told(t), card)
		require.True(t, b.Ledger().Charges[0].Disputed)
		require.Equal(t, want.status, b.Ledger().Disputes[0].Status)
		require.Equal(t, true, b.get(t, "/v1/charges/"+b.Ledger().Charges[0].ID).body["disputed"])
	}
}

// What is disputed is not refunded: not by the API and not at the dashboard. An inquiry moves no money, and a dispute that is won
// has brought it back.
func TestADisputedChargeIsNotRefunded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		inquiry bool
		outcome string // "": still open
		refused bool
	}{
		"open": {refused: true}, "lost": {outcome: "lost", refused: true}, "won": {outcome: "won"},
		"inquiry": {inquiry: true}, "inquiry closed": {inquiry: true, outcome: "warning_closed"},
	} {
		b := setup(t)
		id := b.paid(t, "pm_card_visa")
		b.act(t, stripesim.Action{Action: "open_dispute", PaymentIntent: id, Inquiry: tc.inquiry})
		if tc.outcome != "" {
			require.Equal(t, tc.outcome, b.act(t, stripesim.Action{Action: "close_dispute", PaymentIntent: id, Outcome: tc.outcome}).Status)
		}
		r := b.refund(t, "k", "payment_intent="+id)
		_, atDashboard := b.Act(stripesim.Action{Action: "refund", PaymentIntent: b.paid(t, "pm_card_visa")})
		require.NoError(t, atDashboard)
		if !tc.refused {
			require.Equal(t, http.StatusOK, r.status, name)
			continue
		}
		require.Equal(t, []any{http.StatusBadRequest, "charge_disputed"}, []any{r.status, r.errorField("code")}, name)
		_, atDashboard = b.Act(stripesim.Action{Action: "refund", PaymentIntent: id})
		require.ErrorContains(t, atDashboard, "disputed", name)
		require.Len(t, b.Ledger().Refunds, 1, name)
	}
}

// Evidence ends a dispute by what it says, as in Stripe's test mode; staged evidence does not.
func TestEvidence(t *testing.T) {
	t.Parallel()
	const updated, withdrawn = "charge.dispute.updated", "charge.dispute.funds_withdrawn"
	const reinstated, closed = "charge.dispute.funds_reinstated", "charge.dispute.closed"
	for name, tc := range map[string]struct {
		inquiry    bool
		form, want string
		events     []string
	}{
		"winning":            {form: evidence + "winning_evidence", want: "won", events: []string{updated, reinstated, closed}},
		"losing":             {form: evidence + "losing_evidence", want: "lost", events: []string{updated, closed}},
		"any other":          {form: evidence + "see+attached", want: "under_review", events: []string{updated}},
		"staged":             {form: evidence + "winning_evidence&submit=false", want: "needs_response", events: []string{updated}},
		"inquiry, escalated": {true, evidence + "escalate_inquiry_evidence", "needs_response", []string{updated, updated, withdrawn}},
		"inquiry, closed":    {true, evidence + "losing_evidence", "warning_closed", []string{updated, closed}},
		"inquiry, any other": {true, evidence + "see+attached", "warning_under_review", []string{updated}},
		"metadata alone":     {form: "metadata[a]=b", want: "needs_response", events: []string{updated}},
	} {
		b := setup(t)
		id := b.paid(t, "pm_card_visa")
		d := b.act(t, stripesim.Action{Action: "open_dispute", PaymentIntent: id, Inquiry: tc.inquiry}).Object
		before := len(b.told(t))
		r := b.post(t, "/v1/disputes/"+d, "k", tc.form)
		require.Equal(t, []any{http.StatusOK, tc.want}, []any{r.status, r.body["status"]}, name)
		require.Equal(t, tc.events, b.told(t)[before:], name)
		details, _ := r.body["evidence_details"].(map[string]any)
		require.Equal(t, strings.Contains(tc.form, "evidence["), details["has_evidence"], name)
		late := b.post(t, "/v1/disputes/"+d, "late", evidence+"more")
		if strings.HasSuffix(tc.want, "needs_response") {
			require.Equal(t, http.StatusOK, late.status, name)
		} else {
			require.Equal(t, http.StatusBadRequest, late.status, name)
		}
	}
}

func TestDisputeActions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_visa")
	charge := b.Ledger().Charges[0].ID
	open := b.act(t, stripesim.Action{Action: "open_dispute", Charge: charge, Amount: 500, Reason: "duplicate", Inquiry: true})
	require.Equal(t, []string{id, "warning_needs_response"}, []string{open.PaymentIntent, open.Status})
	for says, a := range map[string]stripesim.Action{
		"has an open dispute":       {Action: "open_dispute", PaymentIntent: id},
		"ends as warning_closed":    {Action: "close_dispute", PaymentIntent: id, Outcome: "won"},
		"is none of won, lost":      {Action: "close_dispute", PaymentIntent: id, Outcome: "withdrawn"},
		"has no outcome":            {Action: "open_dispute", PaymentIntent: id, Outcome: "won"},
		"there is no dispute":       {Action: "close_dispute", Dispute: "dp_unknown"},
		"no charge of the intent":   {Action: "open_dispute", PaymentIntent: b.create(t, "pm_card_visa")},
		"took 2000":                 {Action: "open_dispute", PaymentIntent: b.paid(t, "pm_card_visa"), Amount: 2001},
		"is none of bank_cannot":    {Action: "open_dispute", PaymentIntent: b.paid(t, "pm_card_amex"), Reason: "because"},
		"has no open dispute":       {Action: "escalate_dispute", PaymentIntent: b.paid(t, "pm_card_visa_debit")},
		"is not of payment intent ": {Action: "close_dispute", Dispute: open.Object, PaymentIntent: b.paid(t, "pm_card_mastercard")},
		"amount is not negative":    {Action: "open_dispute", PaymentIntent: id, Amount: -1},
	} {
		_, err := b.Act(a)
		require.ErrorContains(t, err, says)
	}
	require.Equal(t, "needs_response", b.act(t, stripesim.Action{Action: "escalate_dispute", Dispute: open.Object}).Status)
	_, err := b.Act(stripesim.Action{Action: "escalate_dispute", Dispute: open.Object})
	require.ErrorContains(t, err, "no inquiry")
	closed := b.post(t, "/v1/disputes/"+open.Object+"/close", "close", "")
	require.Equal(t, "lost", closed.body["status"])
	require.Equal(t, http.StatusBadRequest, b.post(t, "/v1/disputes/"+open.Object+"/close", "close again", "").status)
	require.Equal(t, http.StatusNotFound, b.post(t, "/v1/disputes/dp_unknown/close", "close unknown", "").status)
	require.Equal(t, http.StatusNotFound, b.post(t, "/v1/disputes/dp_unknown", "update unknown", "").status)
	require.Equal(t, http.StatusNotFound, b.get(t, "/v1/disputes/dp_unknown").status)
	require.Equal(t, "parameter_unknown", b.post(t, "/v1/disputes/"+open.Object, "colour", "evidence[colour]=red").errorField("code"))

	again := b.act(t, stripesim.Action{Action: "open_dispute", PaymentIntent: id})
	require.Equal(t, []string{again.Object, open.Object}, ids(b.get(t, "/v1/disputes?charge="+charge)), "newest first")
	require.Equal(t, []string{again.Object}, ids(b.get(t, "/v1/disputes?limit=1&charge="+charge)))
	require.Empty(t, ids(b.get(t, "/v1/disputes?created[lt]=1")))
	require.Empty(t, ids(b.get(t, "/v1/disputes?payment_intent=pi_unknown")))
	b.AddFault(stripesimFault("disputes.list", "list_page_error"))
	require.Equal(t, http.StatusInternalServerError, b.get(t, "/v1/disputes").status)
	b.Reset()
	require.Empty(t, ids(b.get(t, "/v1/disputes")))
}

// A cardholder may contest what has been refunded: by default what is left, else all of it.
func TestADisputeAfterARefund(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_visa")
	b.refund(t, "part", "payment_intent="+id+"&amount=500")
	b.act(t, stripesim.Action{Action: "open_dispute", PaymentIntent: id})
	require.EqualValues(t, 1500, b.Ledger().Disputes[0].Amount)
	b.act(t, stripesim.Action{Action: "close_dispute", PaymentIntent: id, Outcome: "lost"})

	whole := b.paid(t, "pm_card_visa")
	b.refund(t, "whole", "payment_intent="+whole)
	b.act(t, stripesim.Action{Action: "open_dispute", PaymentIntent: whole, Inquiry: true})
	require.EqualValues(t, 2000, b.Ledger().Disputes[1].Amount)
	_, err := b.Act(stripesim.Action{Action: "escalate_dispute", PaymentIntent: whole})
	require.ErrorContains(t, err, "refunded in full")
	require.NoError(t, b.Ledger().Check())
}

// A refund that is pending when the charge is disputed fails, and Stripe says why.
func TestADisputeFailsAPendingRefund(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.paid(t, "pm_card_pendingRefund")
	re := b.refund(t, "k", "payment_intent="+id+"&amount=600").id()
	b.act(t, stripesim.Action{Action: "open_dispute", PaymentIntent: id, Inquiry: true})
	require.Equal(t, "pending", b.Ledger().Refunds[0].Status, "an inquiry takes nothing")
	b.act(t, stripesim.Action{Action: "escalate_dispute", PaymentIntent: id})
	got := b.get(t, "/v1/refunds/"+re).body
	require.Equal(t, []any{"failed", "charge_for_pending_refund_disputed"}, []any{got["status"], got["failure_reason"]})
	require.Zero(t, b.Ledger().Charges[0].AmountRefunded)
}
