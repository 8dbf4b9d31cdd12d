package stripesim

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Action is something done by the customer, the bank, a person at the dashboard or Stripe itself, and not by an API request.
type Action struct {
	// Action is one of
	//   - authenticate, fail_authentication: of the customer whom a 3-D Secure challenge waits for;
	//   - customer_confirm: the customer pays in the browser;
	//   - settle_processing, roll_forward: a pending charge ends;
	//   - refund: money is given back at the dashboard, without metadata and key;
	//   - settle_refund: the oldest pending refund ends;
	//   - fail_refund: a refund fails, also one that had succeeded; its amount is the charge's again;
	//   - open_dispute, escalate_dispute, close_dispute: the bank contests a charge, turns its inquiry into a dispute, decides;
	//   - create_payout, fail_payout: what is available goes out; it comes back.
	Action string `json:"action"`
	// PaymentIntent, Charge, Refund or Dispute names what is acted on; any of them will do that leads there.
	PaymentIntent string `json:"payment_intent"`
	Charge        string `json:"charge"`
	Refund        string `json:"refund"`
	Dispute       string `json:"dispute"`
	// Payout is what fail_payout is about.
	Payout string `json:"payout"`
	// Currency of create_payout; default: what the account is settled in.
	Currency string `json:"currency"`
	// PaymentMethod is what customer_confirm pays with; default: the intent's own, else pm_card_visa.
	PaymentMethod string `json:"payment_method"`
	// Outcome is how something ends: succeeded (default) or failed; of settle_refund canceled, too; of close_dispute won
	// (default) or lost, and warning_closed (the only one) of an inquiry.
	Outcome string `json:"outcome"`
	// Amount of refund and open_dispute in the currency's smallest unit; default: all that is left.
	Amount int64 `json:"amount"`
	// Reason of refund and open_dispute, and the failure_reason of fail_refund and settle_refund, the
	// failure_code of fail_payout.
	Reason string `json:"reason"`
	// Inquiry makes open_dispute a question of the bank's that moves no money yet.
	Inquiry bool `json:"inquiry"`
}

// Done is what an action led to.
type Done struct {
	PaymentIntent string `json:"payment_intent"`
	Object        string `json:"object"` // the id of what was acted on: an intent, a refund, a dispute, a payout
	Status        string `json:"status"` // of that object
}

// deed is what an action's name means.
type deed struct {
	outcomes []string // the first is the default; none: the action has no outcome
	do       func(w *world, t *intent, a Action) (id, status string, err error)
	account  bool // it is about the account, and no intent
}

func deeds() map[string]deed {
	ends := []string{chargeSucceeded, chargeFailed}
	onIntent := func(do func(*world, *intent, Action) error) func(*world, *intent, Action) (string, string, error) {
		return func(w *world, t *intent, a Action) (string, string, error) {
			err := do(w, t, a)
			return t.id, t.status, err
		}
	}
	return map[string]deed{
		"authenticate":        {do: onIntent((*world).actAuthenticate)},
		"fail_authentication": {do: onIntent((*world).actFailAuthentication)},
		"customer_confirm":    {do: onIntent((*world).actCustomerConfirm)},
		"settle_processing":   {outcomes: ends, do: onIntent((*world).actFinish)},
		"roll_forward":        {outcomes: ends, do: onIntent((*world).actFinish)},
		"refund":              {do: (*world).actRefund},
		"settle_refund":       {outcomes: []string{refundSucceeded, refundFailed, refundCanceled}, do: (*world).actSettleRefund},
		"fail_refund":         {do: (*world).actFailRefund},
		"open_dispute":        {do: (*world).actOpenDispute},
		"escalate_dispute":    {do: (*world).actEscalateDispute},
		"close_dispute":       {outcomes: []string{disputeWon, disputeLost, warningClosed}, do: (*world).actCloseDispute},
		"create_payout":       {do: (*world).actCreatePayout, account: true},
		"fail_payout":         {do: (*world).actFailPayout, account: true},
	}
}

// Act performs an action and returns the status that it led to, of the intent, the refund or the dispute. A decline is a result,
// not an error.
func (s *Simulator) Act(a Action) (status string, err error) {
	done, err := s.Perform(a)
	return done.Status, err
}

// Perform is Act that also tells which object it was.
func (s *Simulator) Perform(a Action) (Done, error) {
	d, err := a.check()
	if err != nil {
		return Done{}, err
	}
	w := s.world.Load()
	var t *intent
	var done Done
	if !d.account {
		if t, err = w.subject(a); err != nil {
			return Done{}, err
		}
		done.PaymentIntent = t.id
	}
	unlock, ok := w.lock(done.PaymentIntent, s.cfg.LockWait)
	if !ok {
		return Done{}, fmt.Errorf("payment intent %s is busy: try again", t.id)
	}
	defer unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass()
	if done.Object, done.Status, err = d.do(w, t, a); err != nil {
		return Done{}, err
	}
	return done, nil
}

// check says what is wrong with an action by itself, if anything.
func (a Action) check() (deed, error) {
	known := deeds()
	d, modelled := known[a.Action]
	switch {
	case !modelled:
		return d, fmt.Errorf("there is no action %q; there are %s", a.Action, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	case !d.account && a.PaymentIntent == "" && a.Charge == "" && a.Refund == "" && a.Dispute == "":
		return d, fmt.Errorf("action %s needs a payment_intent, or a charge, refund or dispute of one", a.Action)
	case a.Outcome != "" && len(d.outcomes) == 0:
		return d, fmt.Errorf("action %s has no outcome", a.Action)
	case a.Outcome != "" && !slices.Contains(d.outcomes, a.Outcome):
		return d, fmt.Errorf("outcome %q is none of %s", a.Outcome, strings.Join(d.outcomes, ", "))
	case a.Amount < 0:
		return d, errors.New("amount is not negative")
	}
	return d, nil
}

// subject finds the one intent that an action is about.
func (w *world) subject(a Action) (*intent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found *intent
	for _, named := range []struct{ what, id string }{
		{"payment intent", a.PaymentIntent}, {"charge", a.Charge}, {"refund", a.Refund}, {"dispute", a.Dispute},
	} {
		if named.id == "" {
			continue
		}
		t := w.intentOf(named.id)
		switch {
		case t == nil:
			return nil, fmt.Errorf("there is no %s %q", named.what, named.id)
		case found != nil && found != t:
			return nil, fmt.Errorf("the %s %s is not of payment intent %s", named.what, named.id, found.id)
		}
		found = t
	}
	return found, nil
}

// intentOf finds the intent that an object belongs to, itself included; nil if there is none. The caller holds mu.
func (w *world) intentOf(id string) *intent {
	if t := w.byID[id]; t != nil {
		return t
	}
	if ch := w.chargeByID(id); ch != nil {
		return ch.intent
	}
	if f := w.refundByID(id); f != nil {
		return f.charge.intent
	}
	if d := w.disputeByID(id); d != nil {
		return d.charge.intent
	}
	return nil
}

func (w *world) actAuthenticate(t *intent, _ Action) error {
	if t.status != requiresAction {
		return fmt.Errorf("the intent is %s and waits for nobody", t.status)
	}
	t.nextAction = nil
	return actual(w.settle(nil, t))
}

func (w *world) actFailAuthentication(t *intent, _ Action) error {
	if t.status != requiresAction {
		return fmt.Errorf("the intent is %s and waits for nobody", t.status)
	}
	t.fail(authenticationFailure(t.method))
	w.emit(nil, "payment_intent.payment_failed", t.render(expansions{}))
	return nil
}

func (w *world) actCustomerConfirm(t *intent, a Action) error {
	how := confirmation{method: a.PaymentMethod, sdk: true}
	if how.method == "" && t.method == nil {
		how.method = "pm_card_visa"
	}
	return actual(w.confirm(nil, t, how))
}

func (w *world) actFinish(t *intent, a Action) error { return w.finish(t, a.Outcome == chargeFailed) }

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
