package stripesim

import "maps"

const refundPending, refundSucceeded, refundFailed = "pending", "succeeded", "failed"

// refund gives money of a charge back. Guarded by world.mu; its birth also holds the lock of the charge's intent.
type refund struct {
	id       string
	order    int64
	created  int64
	charge   *charge
	amount   int64
	reason   string
	metadata map[string]string
	status   string
	key      string // of the request that made it
}

func (f *refund) ident() string { return f.id }
func (f *refund) place() int64  { return f.order }
func (f *refund) born() int64   { return f.created }

func (f *refund) render(x expansions) object {
	o := object{
		"id": f.id, "object": "refund", "created": f.created, "status": f.status, "amount": f.amount, "currency": f.charge.currency,
		"charge": f.charge.id, "payment_intent": f.charge.intent.id, "metadata": maps.Clone(f.metadata), "reason": null(f.reason),
		"balance_transaction": nil, "receipt_number": nil, "source_transfer_reversal": nil, "transfer_reversal": nil,
	}
	if f.status == refundFailed {
		o["failure_reason"] = "unknown"
	}
	if x["charge"] {
		o["charge"] = f.charge.render(expansions{})
	}
	if x["payment_intent"] {
		o["payment_intent"] = f.charge.intent.render(expansions{})
	}
	return o
}

func prepareRefund(c *call) (execution, *apiError) {
	r := c.params.read()
	intentID, chargeID := r.text("payment_intent"), r.text("charge")
	amount := r.integer("amount")
	reason := r.choice("reason", "duplicate", "fraudulent", "requested_by_customer")
	metadata := r.object("metadata")
	checkMetadata(r, metadata)
	r.unmodelled("currency", "customer", "instructions_email", "origin", "refund_application_fee", "reverse_transfer")
	x := c.expansions(r, "charge", "payment_intent")
	switch {
	case (intentID == "") == (chargeID == ""):
		r.refuse(invalid("parameter_missing", "payment_intent", "Name the payment_intent or the charge, and not both."))
	case r.present("amount") && amount < 1:
		r.refuse(invalid("parameter_invalid_integer", "amount", "The amount must be at least 1."))
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	c.about = orDefault(intentID, chargeID)
	return func(w *world) (object, *apiError) {
		ch, err := w.refundable(intentID, chargeID)
		if err != nil {
			return nil, err
		}
		rest := ch.amount - ch.amountRefunded
		if amount > rest {
			return nil, invalid("", "amount", "Only %d of this charge is left to be refunded.", rest)
		}
		f := &refund{
			id: newID("re_3", 23), charge: ch, amount: orDefault(amount, rest), reason: reason, metadata: mergeMetadata(nil, metadata),
			status: refundSucceeded, key: c.key,
		}
		if ch.method.later == "pendingRefund" {
			f.status = refundPending
		}
		f.order, f.created = w.birth()
		ch.amountRefunded += f.amount
		w.refunds = append(w.refunds, f)
		c.entry.Object = f.id
		w.emit(c, "refund.created", f.render(expansions{}))
		w.emit(c, "charge.refunded", ch.render(expansions{}))
		return f.render(x), nil
	}, nil
}

// refundable finds the charge that a refund is for, if any of its money is left.
func (w *world) refundable(intentID, chargeID string) (*charge, *apiError) {
	var found *charge
	if intentID != "" {
		t := w.byID[intentID]
		if t == nil {
			return nil, missing("payment intent", "payment_intent", intentID)
		}
		for _, ch := range t.charges {
			if ch.status == chargeSucceeded {
				found = ch
			}
		}
		if found == nil {
			return nil, invalid("", "payment_intent", "This PaymentIntent has no successful charge to refund.")
		}
	} else if found = w.chargeByID(chargeID); found == nil {
		return nil, missing("charge", "id", chargeID)
	}
	switch {
	case found.status != chargeSucceeded || !found.captured:
		return nil, invalid("", "charge", "This charge cannot be refunded: it has taken no money.")
	case found.amountRefunded == found.amount:
		return nil, invalid("charge_already_refunded", "", "This charge has already been refunded.")
	}
	return found, nil
}

// settleRefund ends the pending refund of an intent. A failed one gives its amount back to the charge.
func (w *world) settleRefund(t *intent, failed bool) bool {
	for _, f := range w.refunds {
		if f.charge.intent != t || f.status != refundPending {
			continue
		}
		f.status = refundSucceeded
		if failed {
			f.status = refundFailed
			f.charge.amountRefunded -= f.amount
		}
		w.emit(nil, "charge.refund.updated", f.render(expansions{}))
		return true
	}
	return false
}

func prepareRefundRetrieve(c *call) (execution, *apiError) {
	r := c.params.read()
	x := c.expansions(r, "charge", "payment_intent")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		for _, f := range w.refunds {
			if f.id == c.id {
				return f.render(x), nil
			}
		}
		return nil, missing("refund", "id", c.id)
	}, nil
}

func prepareRefundList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	intentID, chargeID := r.text("payment_intent"), r.text("charge")
	x := c.expansions(r, "data.charge", "data.payment_intent")
	if err := r.finish(); err != nil {
		return nil, err
	}
	wanted := func(f *refund) bool {
		return (intentID == "" || f.charge.intent.id == intentID) && (chargeID == "" || f.charge.id == chargeID)
	}
	return func(w *world) (object, *apiError) {
		return list(c, page, w.refunds, wanted, func(f *refund) object { return f.render(x.data()) })
	}, nil
}
