package stripesim

import "maps"

const refundPending, refundSucceeded, refundFailed, refundCanceled = "pending", "succeeded", "failed", "canceled"

// refund gives money of a charge back. Guarded by world.mu; its writes also hold the lock of the charge's intent.
type refund struct {
	id       string
	order    int64
	created  int64
	charge   *charge
	amount   int64
	reason   string
	metadata map[string]string
	status   string
	failure  string // why it failed
	key      string // of the request that made it; "" if it was made at the dashboard

	transaction *transaction // nil: no money has gone yet
	returned    *transaction // the money, back
}

func (f *refund) ident() string { return f.id }
func (f *refund) place() int64  { return f.order }
func (f *refund) born() int64   { return f.created }

// refundByID answers nil if there is none.
func (w *world) refundByID(id string) *refund {
	for _, f := range w.refunds {
		if f.id == id {
			return f
		}
	}
	return nil
}

func (f *refund) render(x expansions) object {
	o := object{
		"id": f.id, "object": "refund", "created": f.created, "status": f.status, "amount": f.amount, "currency": f.charge.currency,
		"charge": f.charge.id, "payment_intent": f.charge.intent.id, "metadata": maps.Clone(f.metadata), "reason": null(f.reason),
		"balance_transaction": renderTransaction(f.transaction, x, "balance_transaction"), "receipt_number": nil, "source_transfer_reversal": nil, "transfer_reversal": nil,
	}
	if f.failure != "" {
		o["failure_reason"] = f.failure
	}
	if f.returned != nil {
		o["failure_balance_transaction"] = renderTransaction(f.returned, x, "failure_balance_transaction")
	}
	if x["charge"] {
		o["charge"] = f.charge.render(expansions{})
	}
	if x["payment_intent"] {
		o["payment_intent"] = f.charge.intent.render(expansions{})
	}
	return o
}

// refundExpansions are what can be expanded in a refund; in a list, in data.
func refundExpansions(in string) []string {
	return []string{in + "charge", in + "payment_intent", in + "balance_transaction", in + "failure_balance_transaction"}
}

func refundReasons() []string { return []string{"duplicate", "fraudulent", "requested_by_customer"} }

func prepareRefund(c *call) (execution, *apiError) {
	r := c.params.read()
	intentID, chargeID := r.text("payment_intent"), r.text("charge")
	amount := r.integer("amount")
	reason := r.choice("reason", refundReasons()...)
	metadata := r.object("metadata")
	checkMetadata(r, metadata)
	r.unmodelled("currency", "customer", "instructions_email", "origin", "refund_application_fee", "reverse_transfer")
	x := c.expansions(r, refundExpansions("")...)
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
		f, err := w.refund(c, ch, refund{amount: amount, reason: reason, metadata: mergeMetadata(nil, metadata), key: c.key})
		if err != nil {
			return nil, err
		}
		c.entry.Object = f.id
		return f.render(x), nil
	}, nil
}

// refund gives back what is asked of a charge, or all that is left. It says succeeded at once unless the card is one whose refunds
// are pending.
func (w *world) refund(c *call, ch *charge, f refund) (*refund, *apiError) {
	rest := ch.amount - ch.amountRefunded
	if f.amount > rest {
		return nil, invalid("", "amount", "Only %d of this charge is left to be refunded.", rest)
	}
	f.id, f.charge, f.amount, f.status = newID("re_3", 23), ch, orDefault(f.amount, rest), refundSucceeded
	f.order, f.created = w.birth()
	made := &f
	switch ch.method.later {
	case "pendingRefund":
		f.status = refundPending
		w.after(refundsEnd, func() {
			if made.status == refundPending {
				w.settleRefund(made, refundSucceeded, "")
			}
		})
	case "refundFail":
		w.after(refundsEnd, func() {
			if made.status == refundSucceeded {
				w.settleRefund(made, refundFailed, "")
			}
		})
	}
	ch.amountRefunded += f.amount
	w.refunds = append(w.refunds, made)
	w.pay(made)
	w.emit(c, "refund.created", made.render(expansions{}))
	w.emit(c, "charge.refunded", ch.render(expansions{}))
	return made, nil
}

// refundable finds the charge that a refund is for, if any of its money is left.
func (w *world) refundable(intentID, chargeID string) (*charge, *apiError) {
	var found *charge
	if intentID != "" {
		t := w.byID[intentID]
		if t == nil {
			return nil, missing("payment intent", "payment_intent", intentID)
		}
		if found = t.taken(); found == nil {
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
	case w.contested(found) != nil:
		return nil, invalid("charge_disputed", "", "This charge is disputed: it cannot be refunded.")
	}
	return found, nil
}

func prepareRefundRetrieve(c *call) (execution, *apiError) {
	r := c.params.read()
	x := c.expansions(r, refundExpansions("")...)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		if f := w.refundByID(c.id); f != nil {
			return f.render(x), nil
		}
		return nil, missing("refund", "id", c.id)
	}, nil
}

func prepareRefundList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	intentID, chargeID := r.text("payment_intent"), r.text("charge")
	x := c.expansions(r, refundExpansions("data.")...)
	if err := r.finish(); err != nil {
		return nil, err
	}
	wanted := func(f *refund) bool {
		return (intentID == "" || f.charge.intent.id == intentID) && (chargeID == "" || f.charge.id == chargeID)
	}
	return func(w *world) (object, *apiError) {
		return list(c, page, w.refunds, wanted, func(f *refund) object { return f.render(x.inside("data")) })
	}, nil
}
