package stripesim

import (
	"net/http"
	"strings"
)

// behaviour is what a test payment method does when it is charged.
type behaviour struct {
	brand   string
	last4   string
	funding string
	decline *decline
	// challenge says when the bank asks for 3-D Secure: "", always, or on_session for a card set up for off-session use.
	challenge string
	pending   bool   // the charge is accepted and not final: the intent says processing
	later     string // what follows a success: a dispute, or refunds that are pending or fail
}

const (
	challengeAlways    = "always"
	challengeOnSession = "on_session"
)

// decline is how a bank says no.
type decline struct {
	code        string // error code; card_declined carries a decline code
	declineCode string
	blocked     bool // by the provider's own risk rules: the bank was never asked
	message     string
}

// method is one use of a test payment method.
type method struct {
	behaviour
	id       string
	order    int64
	created  int64
	customer string
}

// resolve answers the payment method that a parameter names. A magic name makes a new method with an id of its own each time, as
// at Stripe: what comes back is never the name that was sent.
func (w *world) resolve(name, customer string) (*method, *apiError) {
	if m := w.methods[name]; m != nil {
		switch m.customer {
		case "", customer:
			return m, nil
		}
		if customer == "" {
			return nil, invalid("parameter_missing", "source", "This payment method is a customer's: name the customer.")
		}
		return nil, invalid("", "payment_method", "This payment method is another customer's.")
	}
	b, known := magic(name)
	if !known {
		return nil, invalid("resource_missing", "payment_method",
			"There is no payment method with the id %q in this account, nor is it one of the test methods, such as pm_card_visa.", name)
	}
	m := &method{behaviour: b, id: newID("pm_1", 23), customer: customer}
	m.order, m.created = w.birth()
	w.methods[m.id] = m
	return m, nil
}

// magic is the table of test payment methods.
func magic(name string) (behaviour, bool) {
	b := behaviour{brand: "visa", last4: "4242", funding: "credit"}
	short, isCard := strings.CutPrefix(name, "pm_card_")
	if !isCard {
		b.pending = name == "pm_sim_processing" // the simulator's own: no card of Stripe's ends in processing
		return b, b.pending
	}
	if decline := declineOf(strings.TrimPrefix(short, "visa_")); decline != nil {
		b.decline, b.last4 = decline, "0002"
		return b, true
	}
	switch short {
	case "visa", "threeDSecureOptional":
	case "mastercard":
		b.brand, b.last4 = "mastercard", "4444"
	case "amex":
		b.brand, b.last4 = "amex", "8431"
	case "visa_debit":
		b.last4, b.funding = "5556", "debit"
	case "authenticationRequired", "authenticationRequiredOnSetup", "threeDSecure2Required", "threeDSecureRequired":
		b.last4, b.challenge = "3184", challengeAlways
	case "authenticationRequiredSetupForOffSession":
		b.last4, b.challenge = "3155", challengeOnSession
	case "threeDSecureRequiredChargeDeclined", "authenticationRequiredChargeDeclinedInsufficientFunds":
		b.last4, b.challenge, b.decline = "8416", challengeAlways, declineOf("chargeDeclinedInsufficientFunds")
	case "createDispute", "createDisputeProductNotReceived", "createDisputeInquiry", "pendingRefund", "refundFail", "bypassPending":
		b.later = short
	default:
		return behaviour{}, false
	}
	return b, true
}

func declineOf(short string) *decline {
	refused := func(declineCode string) *decline {
		return &decline{code: "card_declined", declineCode: declineCode, message: "The card was declined."}
	}
	switch short {
	case "chargeDeclined", "chargeCustomerFail":
		return refused("generic_decline")
	case "chargeDeclinedInsufficientFunds":
		return refused("insufficient_funds")
	case "chargeDeclinedLostCard":
		return refused("lost_card")
	case "chargeDeclinedStolenCard":
		return refused("stolen_card")
	case "chargeDeclinedExpiredCard":
		return &decline{code: "expired_card", message: "The card has expired."}
	case "chargeDeclinedIncorrectCvc":
		return &decline{code: "incorrect_cvc", message: "The card's security code is incorrect."}
	case "chargeDeclinedProcessingError":
		return &decline{code: "processing_error", message: "The card could not be processed just now."}
	case "radarBlock":
		blocked := refused("fraudulent")
		blocked.blocked = true
		return blocked
	default:
		return nil
	}
}

func (m *method) render() object {
	return object{
		"id": m.id, "object": "payment_method", "type": "card", "created": m.created, "livemode": false,
		"customer": null(m.customer), "metadata": object{}, "billing_details": billingDetails(),
		"card": object{
			"brand": m.brand, "checks": cardChecks(), "country": "US", "display_brand": m.brand, "exp_month": 8, "exp_year": 2034,
			"fingerprint": "Fp" + m.last4, "funding": m.funding, "generated_from": nil, "last4": m.last4,
			"networks":             object{"available": []string{m.brand}, "preferred": nil},
			"three_d_secure_usage": object{"supported": true}, "wallet": nil,
		},
	}
}

func billingDetails() object {
	return object{
		"address": object{"city": nil, "country": nil, "line1": nil, "line2": nil, "postal_code": nil, "state": nil},
		"email":   nil, "name": nil, "phone": nil,
	}
}

func cardChecks() object {
	return object{"address_line1_check": nil, "address_postal_code_check": nil, "cvc_check": "pass"}
}

func prepareMethodRetrieve(c *call) (execution, *apiError) {
	if err := c.params.read().finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		m := w.methods[c.id]
		if m == nil {
			return nil, missing("payment method", "payment_method", c.id)
		}
		return m.render(), nil
	}, nil
}

func prepareAccount(c *call) (execution, *apiError) {
	if err := c.params.read().finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		return object{
			"id": w.cfg.Account, "object": "account", "type": "standard", "country": "DE", "default_currency": "eur",
			"charges_enabled": true, "payouts_enabled": true, "details_submitted": true, "email": nil, "metadata": object{},
			"business_type": nil, "business_profile": nil, "capabilities": object{"card_payments": "active"},
		}, nil
	}, nil
}

// declined is the 402 of a charge that the bank refused.
func (d *decline) declined(m *method, chargeID string) *apiError {
	return &apiError{
		status: http.StatusPaymentRequired, kind: typeCard, code: d.code, declineCode: d.declineCode, message: d.message,
		charge: chargeID, paymentMethod: m.render(),
	}
}
