package stripesim

func prepareCancel(c *call) (execution, *apiError) {
	r := c.params.read()
	reason := r.choice("cancellation_reason", "abandoned", "duplicate", "fraudulent", "requested_by_customer")
	x := c.expansions(r, "latest_charge", "latest_charge.balance_transaction", "payment_method")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		t, err := w.find(c.id)
		if err != nil {
			return nil, err
		}
		switch t.status {
		case succeeded, canceled, processing:
			return nil, t.unexpected("canceled")
		case requiresCapture:
			t.latest.release()
		}
		t.status, t.cancellationReason, t.canceledAt = canceled, reason, w.now().Unix()
		t.nextAction, t.capturable = nil, 0
		w.emit(c, "payment_intent.canceled", t.render(expansions{}))
		return t.render(x), nil
	}, nil
}

func prepareCapture(c *call) (execution, *apiError) {
	r := c.params.read()
	amount := r.integer("amount_to_capture")
	given := r.present("amount_to_capture")
	metadata := r.object("metadata")
	r.unmodelled("application_fee_amount", "final_capture", "statement_descriptor", "statement_descriptor_suffix", "transfer_data")
	x := c.expansions(r, "latest_charge", "latest_charge.balance_transaction", "payment_method")
	if given && amount < 1 {
		r.refuse(invalid("parameter_invalid_integer", "amount_to_capture", "The amount must be at least 1."))
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		t, err := w.find(c.id)
		if err != nil {
			return nil, err
		}
		if t.status != requiresCapture {
			return nil, t.unexpected("captured")
		}
		amount := orDefault(amount, t.capturable)
		if amount > t.capturable {
			return nil, invalid("amount_too_large", "amount_to_capture", "Only %d can be captured.", t.capturable)
		}
		t.latest.capture(amount)
		w.earn(t.latest)
		t.status, t.received, t.capturable = succeeded, amount, 0
		if metadata != nil {
			t.metadata = mergeMetadata(t.metadata, metadata)
		}
		w.emit(c, "charge.captured", t.latest.render(expansions{}))
		w.aftermath(t.latest)
		w.emit(c, "payment_intent.succeeded", t.render(expansions{}))
		return t.render(x), nil
	}, nil
}
