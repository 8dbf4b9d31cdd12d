package stripesim

import "maps"

// customer is somebody whose payment methods are kept. Guarded by world.mu.
type customer struct {
	id      string
	order   int64
	created int64
	profile
}

// profile is what a client says of a customer. Nothing in it moves money: a default payment method is refused by name, since a
// confirm could fall back to it.
type profile struct {
	email, name, phone, description string
	metadata                        map[string]string
}

func (u *customer) ident() string { return u.id }
func (u *customer) place() int64  { return u.order }
func (u *customer) born() int64   { return u.created }

// customerByID answers nil if there is none.
func (w *world) customerByID(id string) *customer {
	for _, u := range w.customers {
		if u.id == id {
			return u
		}
	}
	return nil
}

// knows refuses a customer that is not there; "" names none.
func (w *world) knows(id string) *apiError {
	if id == "" || w.customerByID(id) != nil {
		return nil
	}
	return invalid("resource_missing", "customer", "There is no customer with the id %q in this account.", id)
}

// readProfile reads what create and update have in common; given tells which of it was named.
func readProfile(c *call) (p profile, given map[string]bool, err *apiError) {
	r := c.params.read()
	given = map[string]bool{}
	for name, field := range map[string]*string{"email": &p.email, "name": &p.name, "phone": &p.phone, "description": &p.description} {
		*field, given[name] = r.text(name), r.present(name)
	}
	p.metadata = r.object("metadata")
	checkMetadata(r, p.metadata)
	r.unmodelled("address", "balance", "bank_account", "card", "cash_balance", "coupon", "default_alipay_account", "default_bank_account",
		"default_card", "default_source", "invoice_prefix", "invoice_settings", "next_invoice_sequence", "payment_method",
		"preferred_locales", "promotion_code", "shipping", "source", "tax", "tax_exempt", "tax_id_data", "test_clock")
	c.expansions(r)
	return p, given, r.finish()
}

func prepareCustomerCreate(c *call) (execution, *apiError) {
	p, _, err := readProfile(c)
	if err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		p.metadata = mergeMetadata(nil, p.metadata)
		u := &customer{id: newID("cus_", 14), profile: p}
		u.order, u.created = w.birth()
		w.customers = append(w.customers, u)
		c.entry.Object = u.id
		w.emit(c, "customer.created", u.render())
		return u.render(), nil
	}, nil
}

func prepareCustomerUpdate(c *call) (execution, *apiError) {
	p, given, err := readProfile(c)
	if err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		u := w.customerByID(c.id)
		if u == nil {
			return nil, missing("customer", "id", c.id)
		}
		for name, change := range map[string]struct {
			to    *string
			value string
		}{
			"email": {&u.email, p.email}, "name": {&u.name, p.name}, "phone": {&u.phone, p.phone},
			"description": {&u.description, p.description},
		} {
			if given[name] {
				*change.to = change.value
			}
		}
		if p.metadata != nil {
			u.metadata = mergeMetadata(u.metadata, p.metadata)
		}
		w.emit(c, "customer.updated", u.render())
		return u.render(), nil
	}, nil
}

func prepareCustomerRetrieve(c *call) (execution, *apiError) {
	if err := c.params.read().finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		if u := w.customerByID(c.id); u != nil {
			return u.render(), nil
		}
		return nil, missing("customer", "id", c.id)
	}, nil
}

func prepareCustomerList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	email := r.text("email")
	r.unmodelled("test_clock")
	if err := r.finish(); err != nil {
		return nil, err
	}
	wanted := func(u *customer) bool { return email == "" || u.email == email }
	return func(w *world) (object, *apiError) { return list(c, page, w.customers, wanted, (*customer).render) }, nil
}

func (u *customer) render() object {
	return object{
		"id": u.id, "object": "customer", "livemode": false, "created": u.created, "email": null(u.email), "name": null(u.name),
		"phone": null(u.phone), "description": null(u.description), "metadata": maps.Clone(u.metadata), "address": nil, "balance": 0,
		"currency": nil, "default_source": nil, "delinquent": false, "discount": nil, "invoice_prefix": u.id[len("cus_"):],
		"invoice_settings": object{
			"custom_fields": nil, "default_payment_method": nil, "footer": nil, "rendering_options": nil,
		},
		"next_invoice_sequence": 1, "preferred_locales": []string{}, "shipping": nil, "tax_exempt": "none", "test_clock": nil,
	}
}

// prepareAttach keeps a payment method for a customer.
func prepareAttach(c *call) (execution, *apiError) {
	r := c.params.read()
	customerID := r.required("customer")
	c.expansions(r)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		if err := w.knows(customerID); err != nil {
			return nil, err
		}
		if m := w.methods[c.id]; m != nil && m.customer != "" && m.customer != customerID {
			return nil, invalid("", "payment_method", "This payment method is another customer's.")
		}
		m, err := w.resolve(c.id, customerID)
		if err != nil {
			return nil, err
		}
		m.customer = customerID
		c.entry.Object = m.id
		w.emit(c, "payment_method.attached", m.render())
		return m.render(), nil
	}, nil
}
