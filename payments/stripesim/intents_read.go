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
			func(t *intent) object { return t.render(x.data()) })
	}, nil
}

// prepareSearch refuses. Stripe's search answers from an index that is late by a minute or an hour and filters on stale states; one
// that is always right would teach a client to rely on it.
func prepareSearch(*call) (execution, *apiError) {
	return nil, invalid("", "query", "Search is not modelled by this simulator: list with a created window instead.")
}
