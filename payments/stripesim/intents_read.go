package stripesim

func prepareRetrieve(c *call) (execution, *apiError) {
	r := c.params.read()
	r.text("client_secret")
	x := c.expansions(r, "latest_charge", "latest_charge.balance_transaction", "payment_method")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		t, err := w.find(c.id)
		if err != nil {
			return nil, err
		}
		return t.render(x), nil
	}, nil
}

func prepareIntentList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	customer := r.text("customer")
	x := c.expansions(r, "data.latest_charge", "data.latest_charge.balance_transaction", "data.payment_method")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		return list(c, page, w.intents,
			func(t *intent) bool { return customer == "" || t.customer == customer },
			func(t *intent) object { return t.render(x.inside("data")) })
	}, nil
}
