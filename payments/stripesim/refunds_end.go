package stripesim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// refundsEnd is how long after its birth a refund of the cards made for that ends: pending ones succeed, the others fail.
const refundsEnd = 5 * 24 * time.Hour

func failureReasons() []string {
	return []string{
		"charge_for_pending_refund_disputed", "declined", "expired_or_canceled_card", "insufficient_funds", "lost_or_stolen_card",
		"merchant_request", "unknown",
	}
}

// pay takes the money of a new refund from the balance. Where that counts and too little is available the refund is pending until
// there is enough.
func (w *world) pay(f *refund) {
	if w.settlement.Strict && !w.affords(f) {
		f.status = refundPending
		w.short = append(w.short, f)
		return
	}
	w.bookRefund(f)
}

func (w *world) affords(f *refund) bool {
	amount, currency, _ := w.settlement.settled(f.amount, f.charge.currency)
	available, _ := w.funds(currency)
	return available >= amount
}

// payShort makes the refunds that have waited for money, oldest first.
func (w *world) payShort() {
	for len(w.short) > 0 {
		f := w.short[0]
		if f.status == refundPending && !w.affords(f) {
			return
		}
		w.short = w.short[1:]
		if f.status == refundPending {
			w.settleRefund(f, refundSucceeded, "")
		}
	}
}

// settleRefund ends a refund. One that fails or is canceled, even after it succeeded, gives its amount back to the charge.
func (w *world) settleRefund(f *refund, status, failure string) {
	f.status = status
	if status == refundFailed {
		f.failure = orDefault(failure, "unknown")
	}
	switch {
	case status == refundSucceeded && f.transaction == nil:
		w.bookRefund(f)
	case status != refundSucceeded:
		f.charge.amountRefunded -= f.amount
		if f.transaction != nil {
			f.returned = w.back(f.transaction, "refund_failure", categoryRefundFailure)
		}
	}
	w.emit(nil, "refund.updated", f.render(expansions{}))
	w.emit(nil, "charge.refund.updated", f.render(expansions{}))
	if status == refundFailed {
		w.emit(nil, "refund.failed", f.render(expansions{}))
	}
}

// failPendingRefunds ends the refunds of a charge whose money is about to be taken by a dispute.
func (w *world) failPendingRefunds(ch *charge) {
	for _, f := range w.refunds {
		if f.charge == ch && f.status == refundPending {
			w.settleRefund(f, refundFailed, "charge_for_pending_refund_disputed")
		}
	}
}

// actRefund is a refund made at the dashboard.
func (w *world) actRefund(t *intent, a Action) (id, status string, err error) {
	if a.Reason != "" && !slices.Contains(refundReasons(), a.Reason) {
		return "", "", fmt.Errorf("reason %q is none of %s", a.Reason, strings.Join(refundReasons(), ", "))
	}
	intentID := t.id
	if a.Charge != "" {
		intentID = ""
	}
	ch, refused := w.refundable(intentID, a.Charge)
	if refused != nil {
		return "", "", actual(refused)
	}
	f, refused := w.refund(nil, ch, refund{amount: a.Amount, reason: a.Reason, metadata: map[string]string{}})
	if refused != nil {
		return "", "", actual(refused)
	}
	return f.id, f.status, nil
}

// actSettleRefund ends the oldest pending refund.
func (w *world) actSettleRefund(t *intent, a Action) (id, status string, err error) {
	f, err := pickRefund(w.refunds, t, a, refundPending)
	if err != nil {
		return "", "", err
	}
	w.settleRefund(f, orDefault(a.Outcome, refundSucceeded), a.Reason)
	return f.id, f.status, nil
}

// actFailRefund fails the newest refund that can.
func (w *world) actFailRefund(t *intent, a Action) (id, status string, err error) {
	newest := slices.Clone(w.refunds)
	slices.Reverse(newest)
	f, err := pickRefund(newest, t, a, refundPending, refundSucceeded)
	if err != nil {
		return "", "", err
	}
	w.settleRefund(f, refundFailed, a.Reason)
	return f.id, f.status, nil
}

// pickRefund finds the first refund in one of these states that the action names, or the first of the intent's.
func pickRefund(refunds []*refund, t *intent, a Action, statuses ...string) (*refund, error) {
	if a.Reason != "" && !slices.Contains(failureReasons(), a.Reason) {
		return nil, fmt.Errorf("reason %q is none of %s", a.Reason, strings.Join(failureReasons(), ", "))
	}
	for _, f := range refunds {
		if f.charge.intent != t || a.Charge != "" && f.charge.id != a.Charge || a.Refund != "" && f.id != a.Refund {
			continue
		}
		if slices.Contains(statuses, f.status) {
			return f, nil
		}
	}
	return nil, fmt.Errorf("the intent has no refund that is %s", strings.Join(statuses, " or "))
}
