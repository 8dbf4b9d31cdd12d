package stripesim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// States of a dispute. Those that begin with warning are an inquiry's: the bank asks, and moves no money yet.
const (
	warningNeedsResponse = "warning_needs_response"
	warningUnderReview   = "warning_under_review"
	warningClosed        = "warning_closed"
	needsResponse        = "needs_response"
	underReview          = "under_review"
	disputeWon           = "won"
	disputeLost          = "lost"
)

// answerWithin is how long Stripe waits for evidence.
const answerWithin = 20 * 24 * time.Hour

// dispute is a charge that its cardholder contests. Guarded by world.mu; its writes also hold the lock of the charge's intent.
type dispute struct {
	id           string
	order        int64
	created      int64
	charge       *charge
	amount       int64
	reason       string
	status       string
	metadata     map[string]string
	evidence     map[string]string
	submissions  int
	due          int64
	transactions []*transaction // what it took, and what came back
}

func (d *dispute) ident() string { return d.id }
func (d *dispute) place() int64  { return d.order }
func (d *dispute) born() int64   { return d.created }

// inquiry tells whether the bank only asks so far, or only ever asked.
func (d *dispute) inquiry() bool { return strings.HasPrefix(d.status, "warning_") }

func (d *dispute) closed() bool {
	return d.status == disputeWon || d.status == disputeLost || d.status == warningClosed
}

// refundable tells whether the charge can be refunded all the same: nobody has taken its money, or it has come back.
func (d *dispute) refundable() bool { return d.inquiry() || d.status == disputeWon }

// disputeByID answers nil if there is none.
func (w *world) disputeByID(id string) *dispute {
	for _, d := range w.disputes {
		if d.id == id {
			return d
		}
	}
	return nil
}

// contested answers the dispute that keeps a charge from being refunded, if there is one.
func (w *world) contested(ch *charge) *dispute {
	for _, d := range w.disputes {
		if d.charge == ch && !d.refundable() {
			return d
		}
	}
	return nil
}

// openDispute contests a charge that took money. An inquiry only asks; anything else takes the money at once.
func (w *world) openDispute(ch *charge, amount int64, reason string, inquiry bool) *dispute {
	d := &dispute{
		id: newID("dp_1", 23), charge: ch, amount: amount, reason: reason, status: needsResponse, metadata: map[string]string{},
		evidence: map[string]string{}, due: w.now().Add(answerWithin).Unix(),
	}
	if inquiry {
		d.status = warningNeedsResponse
	}
	d.order, d.created = w.birth()
	ch.disputed = true
	w.disputes = append(w.disputes, d)
	if !inquiry {
		w.failPendingRefunds(ch)
		w.bookDispute(d)
	}
	w.emit(nil, "charge.dispute.created", d.render(expansions{}))
	if !inquiry {
		w.emit(nil, "charge.dispute.funds_withdrawn", d.render(expansions{}))
	}
	return d
}

// escalate turns an inquiry into a dispute.
func (w *world) escalate(d *dispute) {
	d.status, d.due = needsResponse, w.now().Add(answerWithin).Unix()
	w.failPendingRefunds(d.charge)
	w.bookDispute(d)
	w.emit(nil, "charge.dispute.updated", d.render(expansions{}))
	w.emit(nil, "charge.dispute.funds_withdrawn", d.render(expansions{}))
}

// decide closes a dispute: won, its money comes back; lost, it stays away.
func (w *world) decide(d *dispute, status string) {
	d.status = status
	if status == disputeWon {
		d.transactions = append(d.transactions, w.back(d.transactions[0], "adjustment", categoryDisputeReversal))
		w.emit(nil, "charge.dispute.funds_reinstated", d.render(expansions{}))
	}
	w.emit(nil, "charge.dispute.closed", d.render(expansions{}))
}

// aftermath is what a test card brings upon a charge that has taken money.
func (w *world) aftermath(ch *charge) {
	if !ch.captured {
		return
	}
	switch ch.method.later {
	case "createDispute":
		w.openDispute(ch, ch.amountCaptured, "fraudulent", false)
	case "createDisputeProductNotReceived":
		w.openDispute(ch, ch.amountCaptured, "product_not_received", false)
	case "createDisputeInquiry":
		w.openDispute(ch, ch.amountCaptured, "fraudulent", true)
	}
}

func disputeReasons() []string {
	return []string{
		"bank_cannot_process", "check_returned", "credit_not_processed", "customer_initiated", "debit_not_authorized", "duplicate",
		"fraudulent", "general", "incorrect_account_details", "insufficient_funds", "product_not_received", "product_unacceptable",
		"subscription_canceled", "unrecognized",
	}
}

// actOpenDispute contests what is left of a charge, or all of one of which nothing is left: a cardholder may well contest what
// has been refunded.
func (w *world) actOpenDispute(t *intent, a Action) (id, status string, err error) {
	ch := w.chargeByID(a.Charge)
	if ch == nil {
		ch = t.taken()
	}
	reason := orDefault(a.Reason, "fraudulent")
	switch {
	case ch == nil || ch.status != chargeSucceeded || !ch.captured:
		return "", "", errors.New("no charge of the intent has taken money")
	case slices.ContainsFunc(w.disputes, func(d *dispute) bool { return d.charge == ch && !d.closed() }):
		return "", "", fmt.Errorf("charge %s has an open dispute", ch.id)
	case !slices.Contains(disputeReasons(), reason):
		return "", "", fmt.Errorf("reason %q is none of %s", reason, strings.Join(disputeReasons(), ", "))
	case a.Amount > ch.amountCaptured:
		return "", "", fmt.Errorf("the charge took %d", ch.amountCaptured)
	}
	amount := orDefault(a.Amount, orDefault(ch.amount-ch.amountRefunded, ch.amountCaptured))
	d := w.openDispute(ch, amount, reason, a.Inquiry)
	return d.id, d.status, nil
}

func (w *world) actEscalateDispute(t *intent, a Action) (id, status string, err error) {
	d, err := w.openDisputeOf(t, a)
	switch {
	case err != nil:
		return "", "", err
	case !d.inquiry():
		return "", "", fmt.Errorf("dispute %s is %s, and no inquiry", d.id, d.status)
	case d.charge.amountRefunded == d.charge.amount:
		return "", "", errors.New("what was refunded in full does not escalate")
	}
	w.escalate(d)
	return d.id, d.status, nil
}

func (w *world) actCloseDispute(t *intent, a Action) (id, status string, err error) {
	d, err := w.openDisputeOf(t, a)
	if err != nil {
		return "", "", err
	}
	outcome := a.Outcome
	if outcome == "" {
		outcome = disputeWon
		if d.inquiry() {
			outcome = warningClosed
		}
	}
	if d.inquiry() != (outcome == warningClosed) {
		return "", "", fmt.Errorf("dispute %s is %s: an inquiry ends as warning_closed, anything else as won or lost", d.id, d.status)
	}
	w.decide(d, outcome)
	return d.id, d.status, nil
}

// openDisputeOf finds the open dispute that an action names, or the intent's.
func (w *world) openDisputeOf(t *intent, a Action) (*dispute, error) {
	for _, d := range w.disputes {
		if d.charge.intent != t || a.Charge != "" && d.charge.id != a.Charge || a.Dispute != "" && d.id != a.Dispute {
			continue
		}
		if !d.closed() {
			return d, nil
		}
	}
	return nil, errors.New("the intent has no open dispute")
}

func (d *dispute) render(x expansions) object {
	transactions := []object{}
	for _, b := range d.transactions {
		transactions = append(transactions, b.render(expansions{}))
	}
	o := object{
		"id": d.id, "object": "dispute", "livemode": false, "created": d.created, "status": d.status, "reason": d.reason,
		"amount": d.amount, "currency": d.charge.currency, "charge": d.charge.id, "payment_intent": d.charge.intent.id,
		"is_charge_refundable": d.refundable(), "metadata": maps.Clone(d.metadata), "balance_transactions": transactions,
		"evidence": d.renderEvidence(),
		"evidence_details": object{
			"due_by": d.due, "has_evidence": len(d.evidence) > 0, "past_due": false, "submission_count": d.submissions,
		},
		"payment_method_details": object{"type": "card", "card": object{"brand": d.charge.method.brand, "network_reason_code": "10.4"}},
	}
	if x["charge"] {
		o["charge"] = d.charge.render(expansions{})
	}
	if x["payment_intent"] {
		o["payment_intent"] = d.charge.intent.render(expansions{})
	}
	return o
}
