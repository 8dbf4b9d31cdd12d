package stripesim

import (
	"maps"
	"net/http"
)

// States of a PaymentIntent.
const (
	requiresPaymentMethod = "requires_payment_method"
	requiresConfirmation  = "requires_confirmation"
	requiresAction        = "requires_action"
	requiresCapture       = "requires_capture"
	processing            = "processing"
	succeeded             = "succeeded"
	canceled              = "canceled"
)

const (
	captureAutomatic      = "automatic"
	captureAutomaticAsync = "automatic_async"
	captureManual         = "manual"
)

// intent is a PaymentIntent. Guarded by world.mu; its writes also hold its lock.
type intent struct {
	id, secret string
	order      int64
	created    int64
	terms
	status             string
	method             *method
	lastError          *apiError
	nextAction         object
	charges            []*charge // all attempts, oldest first
	latest             *charge
	half               *charge // left pending by partial_500; latest does not show it
	received           int64
	capturable         int64
	canceledAt         int64
	cancellationReason string
}

// terms are what a client may say about an intent.
type terms struct {
	amount        int64
	currency      string
	captureMethod string
	confirmation  string
	customer      string
	description   string
	descriptor    string
	suffix        string
	receiptEmail  string
	futureUse     string
	transferGroup string
	types         []string
	automatic     object // automatic_payment_methods, nil when types were given
	redirects     bool   // a method that redirects may be used: confirm wants a return_url
	metadata      map[string]string
	changes       map[string]string // of the metadata; nil if not named
}

func (t *intent) ident() string { return t.id }
func (t *intent) place() int64  { return t.order }
func (t *intent) born() int64   { return t.created }

// find answers the intent that the path names.
func (w *world) find(id string) (*intent, *apiError) {
	if t := w.byID[id]; t != nil {
		return t, nil
	}
	return nil, missing("payment intent", "intent", id)
}

// unexpected refuses what an intent's state does not allow, and shows that state.
func (t *intent) unexpected(act string) *apiError {
	e := invalid(codeUnexpectedState, "", "This PaymentIntent cannot be %s: its status is %s.", act, t.status)
	e.paymentIntent = t.render(expansions{})
	return e
}

// attach gives the intent another payment method. A challenge of the method before it lapses.
func (t *intent) attach(m *method) {
	t.method, t.nextAction, t.status = m, nil, requiresConfirmation
}

// fail takes the method away, so that a stray confirm fails instead of charging, and says why.
func (t *intent) fail(err *apiError) {
	t.status, t.method, t.nextAction, t.lastError = requiresPaymentMethod, nil, nil, err
}

// mergeMetadata changes what is named: an empty value removes its key, and an empty object removes all.
func mergeMetadata(old, changes map[string]string) map[string]string {
	merged := map[string]string{}
	if len(changes) == 0 {
		return merged
	}
	maps.Copy(merged, old)
	for key, value := range changes {
		if value == "" {
			delete(merged, key)
		} else {
			merged[key] = value
		}
	}
	return merged
}

func (t *intent) render(x expansions) object {
	return object{
		"id": t.id, "object": "payment_intent", "livemode": false, "created": t.created, "status": t.status,
		"client_secret": t.secret, "metadata": maps.Clone(t.metadata),
		"amount": t.amount, "currency": t.currency, "amount_received": t.received, "amount_capturable": t.capturable,
		"amount_details": object{"tip": object{}}, "capture_method": t.captureMethod, "confirmation_method": t.confirmation,
		"customer": null(t.customer), "description": null(t.description), "receipt_email": null(t.receiptEmail),
		"statement_descriptor": null(t.descriptor), "statement_descriptor_suffix": null(t.suffix),
		"setup_future_usage": null(t.futureUse), "transfer_group": null(t.transferGroup),
		"payment_method": t.renderMethod(x), "payment_method_types": t.types,
		"payment_method_options": t.options(), "payment_method_configuration_details": nil,
		"automatic_payment_methods": orNull(t.automatic), "next_action": orNull(t.nextAction),
		"last_payment_error": t.renderError(), "latest_charge": t.renderCharge(x),
		"canceled_at": t.renderCanceledAt(), "cancellation_reason": null(t.cancellationReason),
		"application": nil, "application_fee_amount": nil, "invoice": nil, "on_behalf_of": nil, "processing": nil, "review": nil,
		"shipping": nil, "transfer_data": nil,
	}
}

func (t *intent) options() object {
	return object{"card": object{
		"installments": nil, "mandate_options": nil, "network": nil, "request_three_d_secure": "automatic",
	}}
}

func (t *intent) renderMethod(x expansions) any {
	switch {
	case t.method == nil:
		return nil
	case x["payment_method"]:
		return t.method.render()
	}
	return t.method.id
}

func (t *intent) renderCharge(x expansions) any {
	switch {
	case t.latest == nil:
		return nil
	case x["latest_charge"]:
		return t.latest.render(x.inside("latest_charge"))
	}
	return t.latest.id
}

func (t *intent) renderError() any {
	if t.lastError == nil {
		return nil
	}
	return t.lastError.fields()
}

func (t *intent) renderCanceledAt() any {
	if t.canceledAt == 0 {
		return nil
	}
	return t.canceledAt
}

func orNull(o object) any {
	if o == nil {
		return nil
	}
	return o
}

// withIntent embeds the intent in its own refusal, as Stripe does for 402.
func (t *intent) withIntent(err *apiError) *apiError {
	if err == nil || err.status != http.StatusPaymentRequired {
		return err
	}
	embedded := *err
	embedded.paymentIntent = t.render(expansions{})
	return &embedded
}
