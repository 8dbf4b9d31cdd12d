package stripesim

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Action is something done by the customer, the bank or Stripe itself, and not by an API request.
type Action struct {
	// Action is authenticate, fail_authentication, customer_confirm, settle_processing, roll_forward or settle_refund.
	Action        string `json:"action"`
	PaymentIntent string `json:"payment_intent"`
	// PaymentMethod is what customer_confirm pays with; default: the intent's own, else pm_card_visa.
	PaymentMethod string `json:"payment_method"`
	// Outcome of settle_processing, roll_forward and settle_refund: succeeded (default) or failed.
	Outcome string `json:"outcome"`
	Charge  string `json:"charge"` // for actions to come
}

// ErrNotModelled marks an action that is known and not modelled yet.
var ErrNotModelled = errors.New("not modelled yet")

// Act performs an action and returns the intent's status after it. A decline is a result, not an error.
func (s *Simulator) Act(a Action) (status string, err error) {
	if err := a.check(); err != nil {
		return "", err
	}
	w := s.world.Load()
	unlock, ok := w.lock(a.PaymentIntent, s.cfg.LockWait)
	if !ok {
		return "", fmt.Errorf("payment intent %s is busy: try again", a.PaymentIntent)
	}
	defer unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.byID[a.PaymentIntent]
	if t == nil {
		return "", fmt.Errorf("there is no payment intent %q", a.PaymentIntent)
	}
	if err := w.act(t, a); err != nil {
		return "", err
	}
	return t.status, nil
}

// check says what is wrong with an action by itself, if anything.
func (a Action) check() error {
	modelled := []string{"authenticate", "fail_authentication", "customer_confirm", "settle_processing", "roll_forward", "settle_refund"}
	switch {
	case slices.Contains([]string{"open_dispute", "close_dispute", "refund", "fail_refund", "create_payout", "fail_payout"}, a.Action):
		return fmt.Errorf("action %q: %w", a.Action, ErrNotModelled)
	case !slices.Contains(modelled, a.Action):
		return fmt.Errorf("there is no action %q; there are %s", a.Action, strings.Join(modelled, ", "))
	case a.PaymentIntent == "":
		return fmt.Errorf("action %s needs a payment_intent", a.Action)
	case !slices.Contains([]string{"", chargeSucceeded, chargeFailed}, a.Outcome):
		return fmt.Errorf("outcome %q is neither succeeded nor failed", a.Outcome)
	}
	return nil
}

func (w *world) act(t *intent, a Action) error {
	switch a.Action {
	case "authenticate":
		if t.status != requiresAction {
			return fmt.Errorf("the intent is %s and waits for nobody", t.status)
		}
		t.nextAction = nil
		return actual(w.settle(nil, t))
	case "fail_authentication":
		if t.status != requiresAction {
			return fmt.Errorf("the intent is %s and waits for nobody", t.status)
		}
		t.fail(authenticationFailure(t.method))
		w.emit(nil, "payment_intent.payment_failed", t.render(expansions{}))
		return nil
	case "customer_confirm":
		how := confirmation{method: a.PaymentMethod, sdk: true}
		if how.method == "" && t.method == nil {
			how.method = "pm_card_visa"
		}
		return actual(w.confirm(nil, t, how))
	case "settle_refund":
		if !w.settleRefund(t, a.Outcome == refundFailed) {
			return errors.New("the intent has no pending refund")
		}
		return nil
	default: // settle_processing, roll_forward
		return w.finish(t, a.Outcome == chargeFailed)
	}
}

// finish ends a charge that is pending: that of a processing intent, or the one that partial_500 left.
func (w *world) finish(t *intent, failed bool) error {
	pending := t.half
	if pending == nil && t.status == processing {
		pending = t.latest
	}
	if pending == nil {
		return fmt.Errorf("the intent is %s and has no pending charge", t.status)
	}
	t.half = nil
	if failed {
		w.chargeFailed(nil, t, pending, declineOf("chargeDeclined"))
		return nil
	}
	w.charged(nil, t, pending)
	return nil
}

// actual drops declines: the action happened, the bank said no.
func actual(err *apiError) error {
	if err == nil || err.status == http.StatusPaymentRequired {
		return nil
	}
	return errors.New(err.message)
}
