package stripesim

import "maps"

const chargePending, chargeSucceeded, chargeFailed = "pending", "succeeded", "failed"

// charge is one attempt to move an intent's money.
type charge struct {
	id             string
	order          int64
	created        int64
	intent         *intent
	method         *method
	key            string // of the request that made it
	amount         int64
	currency       string
	customer       string
	description    string
	metadata       map[string]string // the intent's, as it was then
	status         string
	captured       bool
	amountCaptured int64
	amountRefunded int64
	disputed       bool // an inquiry counts, too
	decline        *decline
	transaction    *transaction // nil: took nothing, or is not booked yet
}

func (ch *charge) ident() string { return ch.id }
func (ch *charge) place() int64  { return ch.order }
func (ch *charge) born() int64   { return ch.created }

// newCharge opens a pending charge.
func (w *world) newCharge(c *call, t *intent) *charge {
	ch := &charge{
		id: newID("ch_3", 23), intent: t, method: t.method, amount: t.amount, currency: t.currency, customer: t.customer,
		description: t.description, metadata: maps.Clone(t.metadata), status: chargePending,
	}
	if c != nil {
		ch.key = c.key
	}
	ch.order, ch.created = w.birth()
	w.charges = append(w.charges, ch)
	t.charges = append(t.charges, ch)
	return ch
}

// taken is the charge of an intent that has taken money; nil if none has.
func (t *intent) taken() *charge {
	for _, ch := range t.charges {
		if ch.status == chargeSucceeded {
			return ch
		}
	}
	return nil
}

// chargeByID answers nil if there is none.
func (w *world) chargeByID(id string) *charge {
	for _, ch := range w.charges {
		if ch.id == id {
			return ch
		}
	}
	return nil
}

func (ch *charge) succeed(capture bool) {
	ch.status = chargeSucceeded
	if capture {
		ch.capture(ch.amount)
	}
}

// capture takes what was authorised; what is left of it is released.
func (ch *charge) capture(amount int64) {
	ch.captured, ch.amountCaptured, ch.amountRefunded = true, amount, ch.amount-amount
}

// release gives an authorisation back. Stripe shows it as refunded, though nothing had been taken.
func (ch *charge) release() { ch.amountRefunded = ch.amount }

func (ch *charge) fail(d *decline) { ch.status, ch.decline = chargeFailed, d }

func (ch *charge) render(x expansions) object {
	o := object{
		"id": ch.id, "object": "charge", "livemode": false, "created": ch.created, "status": ch.status,
		"paid": ch.status == chargeSucceeded, "amount": ch.amount, "currency": ch.currency,
		"captured": ch.captured, "amount_captured": ch.amountCaptured,
		"refunded": ch.status == chargeSucceeded && ch.amountRefunded == ch.amount, "amount_refunded": ch.amountRefunded,
		"disputed": ch.disputed, "metadata": maps.Clone(ch.metadata), "payment_intent": ch.intent.id, "payment_method": ch.method.id,
		"customer": null(ch.customer), "description": null(ch.description), "billing_details": billingDetails(),
		"balance_transaction": renderTransaction(ch.transaction, x, "balance_transaction"), "calculated_statement_descriptor": "SIMULATED", "outcome": ch.outcome(),
		"failure_code": nil, "failure_message": nil, "failure_balance_transaction": nil, "fraud_details": object{},
		"payment_method_details": ch.methodDetails(),
		"receipt_email":          null(ch.intent.receiptEmail), "receipt_number": nil, "receipt_url": nil,
		"statement_descriptor": null(ch.intent.descriptor), "statement_descriptor_suffix": null(ch.intent.suffix),
		"application": nil, "application_fee": nil, "application_fee_amount": nil, "invoice": nil, "on_behalf_of": nil,
		"radar_options": object{}, "review": nil, "shipping": nil, "source_transfer": nil, "transfer_data": nil,
		"transfer_group": null(ch.intent.transferGroup),
	}
	if ch.decline != nil {
		o["failure_code"], o["failure_message"] = ch.decline.code, ch.decline.message
	}
	if x["payment_intent"] {
		o["payment_intent"] = ch.intent.render(expansions{})
	}
	return o
}

func (ch *charge) methodDetails() object {
	return object{"type": "card", "card": object{
		"amount_authorized": ch.amount, "brand": ch.method.brand, "checks": cardChecks(), "country": "US", "exp_month": 8,
		"exp_year": 2034, "fingerprint": "Fp" + ch.method.last4, "funding": ch.method.funding, "installments": nil,
		"last4": ch.method.last4, "mandate": nil, "network": ch.method.brand, "three_d_secure": nil, "wallet": nil,
	}}
}

func (ch *charge) outcome() any {
	outcome := object{
		"type": "authorized", "network_status": "approved_by_network", "reason": nil, "risk_level": "normal", "risk_score": 20,
		"seller_message": "Payment complete.",
	}
	switch {
	case ch.status == chargePending:
		return nil
	case ch.decline == nil:
	case ch.decline.blocked:
		outcome["type"], outcome["network_status"], outcome["reason"] = "blocked", "not_sent_to_network", "highest_risk_level"
		outcome["risk_level"], outcome["risk_score"] = "highest", 90
		outcome["seller_message"] = "Blocked by risk rules."
	default:
		outcome["type"], outcome["network_status"] = "issuer_declined", "declined_by_network"
		outcome["reason"] = orDefault(ch.decline.declineCode, ch.decline.code)
		outcome["seller_message"] = "The bank declined."
	}
	return outcome
}

func prepareChargeRetrieve(c *call) (execution, *apiError) {
	r := c.params.read()
	x := c.expansions(r, "payment_intent", "balance_transaction")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		if ch := w.chargeByID(c.id); ch != nil {
			return ch.render(x), nil
		}
		return nil, missing("charge", "id", c.id)
	}, nil
}

func prepareChargeList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	intentID, customer := r.text("payment_intent"), r.text("customer")
	r.unmodelled("transfer_group")
	x := c.expansions(r, "data.payment_intent", "data.balance_transaction")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		charges := w.charges
		if intentID != "" {
			charges = nil
			if t := w.byID[intentID]; t != nil {
				charges = t.charges
			}
		}
		return list(c, page, charges,
			func(ch *charge) bool { return customer == "" || ch.customer == customer },
			func(ch *charge) object { return ch.render(x.inside("data")) })
	}, nil
}
