package stripesim

import (
	"net/http"
	"time"
)

// confirmation is how a confirm is asked for.
type confirmation struct {
	method     string // replaces the intent's, if given
	returnURL  string
	offSession bool
	sdk        bool
}

func readConfirmation(r *reader) confirmation {
	how := confirmation{returnURL: r.text("return_url"), sdk: r.boolean("use_stripe_sdk")}
	switch off := r.text("off_session"); off {
	case "", "false":
	case "true", "one_off", "recurring":
		how.offSession = true
	default:
		r.refuse(invalid("", "off_session", "off_session must be true or false, not %q.", off))
	}
	return how
}

func prepareConfirm(c *call) (execution, *apiError) {
	r := c.params.read()
	how := readConfirmation(r)
	how.method = r.text("payment_method")
	r.unmodelled("capture_method", "confirmation_token", "error_on_requires_action", "mandate", "mandate_data", "payment_method_data",
		"payment_method_options", "radar_options", "receipt_email", "setup_future_usage", "shipping")
	x := c.expansions(r, "latest_charge", "latest_charge.balance_transaction", "payment_method")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		t, err := w.find(c.id)
		if err != nil {
			return nil, err
		}
		if err := w.confirm(c, t, how); err != nil {
			return nil, t.withIntent(err)
		}
		return t.render(x), nil
	}, nil
}

// confirm tries to charge. It is the only way into money, for the API and for the customer alike.
func (w *world) confirm(c *call, t *intent, how confirmation) *apiError {
	switch t.status {
	case requiresPaymentMethod, requiresConfirmation, requiresAction:
	default:
		return t.unexpected("confirmed")
	}
	if t.half != nil {
		return lockTimeout() // an earlier confirm is not finished: a second charge beside it could make two
	}
	if t.redirects && how.returnURL == "" && !how.sdk {
		return invalid("", "return_url", "This PaymentIntent takes methods that may redirect: give a return_url, or create it with "+
			"payment_method_types[]=card or automatic_payment_methods[allow_redirects]=never.")
	}
	if how.method != "" {
		m, err := w.resolve(how.method, t.customer)
		if err != nil {
			return err
		}
		t.attach(m)
	}
	if t.method == nil {
		return t.unexpected("confirmed without a payment method")
	}
	t.lastError, t.nextAction = nil, nil
	switch {
	case t.method.challenge == "", t.method.challenge == challengeOnSession && how.offSession:
		return w.settle(c, t)
	case how.offSession:
		return w.decline(c, t, &decline{
			code: "authentication_required", declineCode: "authentication_required",
			message: "The bank wants to see the customer, who is not there.",
		})
	}
	t.challenge(how)
	w.emit(c, "payment_intent.requires_action", t.render(expansions{}))
	return nil
}

// challenge sends the customer to the bank. No money moves and no charge exists until the customer is back.
func (t *intent) challenge(how confirmation) {
	t.status = requiresAction
	page := "https://hooks.stripe.com/3d_secure_2/hosted?payment_intent=" + t.id
	if how.returnURL != "" {
		t.nextAction = object{
			"type": "redirect_to_url", "redirect_to_url": object{"return_url": how.returnURL, "url": page},
		}
		return
	}
	t.nextAction = object{
		"type":           "use_stripe_sdk",
		"use_stripe_sdk": object{"type": "three_d_secure_redirect", "stripe_js": page, "source": newID("src_1", 23)},
	}
}

// settle asks the bank for the money of an intent whose customer has nothing left to do.
func (w *world) settle(c *call, t *intent) *apiError {
	switch {
	case t.method.decline != nil:
		return w.decline(c, t, t.method.decline)
	case c != nil && c.spec.partial:
		t.half = w.newCharge(c, t)
		w.rollForwardAfter(t, time.Duration(c.fault.DelayMS)*time.Millisecond)
		return nil
	}
	t.latest = w.newCharge(c, t)
	if t.method.pending {
		t.status = processing
		w.emit(c, "payment_intent.processing", t.render(expansions{}))
		return nil
	}
	w.charged(c, t, t.latest)
	return nil
}

// charged makes a pending charge good, and with it the intent. An intent canceled meanwhile stays canceled: the money moved all
// the same.
func (w *world) charged(c *call, t *intent, ch *charge) {
	ch.succeed(t.captureMethod != captureManual)
	if ch.captured {
		w.earn(ch)
	}
	w.emit(c, "charge.succeeded", ch.render(expansions{}))
	w.aftermath(ch)
	if t.status == canceled {
		return
	}
	t.latest, t.nextAction, t.lastError = ch, nil, nil
	if !ch.captured {
		t.status, t.capturable = requiresCapture, t.amount
		w.emit(c, "payment_intent.amount_capturable_updated", t.render(expansions{}))
		return
	}
	t.status, t.received = succeeded, t.amount
	w.emit(c, "payment_intent.succeeded", t.render(expansions{}))
}

// decline records the refusal: a failed charge stays, the method goes.
func (w *world) decline(c *call, t *intent, d *decline) *apiError {
	ch := w.newCharge(c, t)
	return w.chargeFailed(c, t, ch, d)
}

func (w *world) chargeFailed(c *call, t *intent, ch *charge, d *decline) *apiError {
	ch.fail(d)
	w.emit(c, "charge.failed", ch.render(expansions{}))
	err := d.declined(ch.method, ch.id)
	if t.status != canceled {
		t.latest = ch
		t.fail(err)
		w.emit(c, "payment_intent.payment_failed", t.render(expansions{}))
	}
	return err
}

// rollForward ends what partial_500 left half-done. The caller holds mu.
func (w *world) rollForward() {
	for _, t := range w.intents {
		if t.half != nil {
			_ = w.finish(t, false) // refuses only what has no pending charge
		}
	}
}

// rollForwardAfter does so for one intent by itself, on the wall clock.
func (w *world) rollForwardAfter(t *intent, d time.Duration) {
	if d <= 0 {
		return
	}
	time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.done.Err() == nil && t.half != nil {
			_ = w.finish(t, false) // refuses only what has no pending charge
		}
	})
}

func authenticationFailure(m *method) *apiError {
	return &apiError{
		status: http.StatusPaymentRequired, kind: typeInvalid, code: "payment_intent_authentication_failure",
		message: "The customer did not pass the bank's check.", paymentMethod: m.render(),
	}
}
