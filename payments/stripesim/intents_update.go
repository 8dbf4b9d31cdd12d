package stripesim

import "strings"

func prepareUpdate(c *call) (execution, *apiError) {
	r := c.params.read()
	change := readTerms(r)
	methodName := r.text("payment_method")
	customer := r.text("customer")
	if currency := r.text("currency"); currency != "" {
		change.currency = strings.ToLower(currency)
		if !validCurrency(change.currency) {
			r.refuse(invalid("", "currency", "%q is not a currency.", change.currency))
		}
	}
	r.unmodelled("application_fee_amount", "capture_method", "payment_method_configuration", "payment_method_data",
		"payment_method_options", "payment_method_types", "shipping", "transfer_data")
	x := c.expansions(r, "latest_charge", "latest_charge.balance_transaction", "payment_method")
	if r.present("amount") && change.amount < 1 {
		r.refuse(invalid("parameter_invalid_integer", "amount", "The amount must be at least 1."))
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		t, err := w.find(c.id)
		if err != nil {
			return nil, err
		}
		if err := w.update(t, change, methodName, customer); err != nil {
			return nil, err
		}
		w.index(encode(t.render(expansions{}))) // which no event tells
		return t.render(x), nil
	}, nil
}

// update applies all of the change or nothing. What is being charged or has been cannot be changed, only what is written about it.
func (w *world) update(t *intent, change terms, methodName, customer string) *apiError {
	touchesMoney := methodName != "" || customer != "" || change.amount != 0 || change.currency != ""
	if touchesMoney {
		switch t.status {
		case requiresPaymentMethod, requiresConfirmation, requiresAction:
		default:
			return t.unexpected("updated")
		}
		if t.half != nil {
			return lockTimeout()
		}
	}
	amount, currency := orDefault(change.amount, t.amount), orDefault(change.currency, t.currency)
	if err := checkAmount(amount, currency); err != nil {
		return err
	}
	if err := w.knows(customer); err != nil {
		return err
	}
	if methodName != "" {
		m, err := w.resolve(methodName, orDefault(customer, t.customer))
		if err != nil {
			return err
		}
		t.attach(m)
	}
	t.amount, t.currency = amount, currency
	t.customer = orDefault(customer, t.customer)
	t.description = orDefault(change.description, t.description)
	t.descriptor = orDefault(change.descriptor, t.descriptor)
	t.suffix = orDefault(change.suffix, t.suffix)
	t.receiptEmail = orDefault(change.receiptEmail, t.receiptEmail)
	t.futureUse = orDefault(change.futureUse, t.futureUse)
	t.transferGroup = orDefault(change.transferGroup, t.transferGroup)
	if change.changes != nil {
		t.metadata = mergeMetadata(t.metadata, change.changes)
	}
	return nil
}
