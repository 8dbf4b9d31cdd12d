package stripesim

import (
	"slices"
	"strings"
)

func prepareCreate(c *call) (execution, *apiError) {
	r := c.params.read()
	t := intent{id: newID("pi_3", 23), terms: readTerms(r)}
	t.secret = t.id + newID("_secret_", 25)
	r.required("amount")
	t.currency = strings.ToLower(r.required("currency"))
	t.captureMethod = orDefault(r.choice("capture_method", captureAutomatic, captureAutomaticAsync, captureManual), captureAutomatic)
	t.confirmation = orDefault(r.choice("confirmation_method", "automatic", "manual"), "automatic")
	t.customer = r.text("customer")
	t.readMethodTypes(r)
	methodName := r.text("payment_method")
	confirm := r.boolean("confirm")
	how := readConfirmation(r)
	r.unmodelled("application_fee_amount", "confirmation_token", "mandate", "mandate_data", "on_behalf_of",
		"payment_method_configuration", "payment_method_data", "payment_method_options", "radar_options", "shipping", "transfer_data",
		"error_on_requires_action")
	x := c.expansions(r, "latest_charge", "latest_charge.balance_transaction", "payment_method")
	t.checkCreate(r, confirm, methodName)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		t := &t
		t.status = requiresPaymentMethod
		if err := w.knows(t.customer); err != nil {
			return nil, err
		}
		if methodName != "" {
			m, err := w.resolve(methodName, t.customer)
			if err != nil {
				return nil, err
			}
			t.attach(m)
		}
		t.order, t.created = w.birth()
		w.intents = append(w.intents, t)
		w.byID[t.id] = t
		c.entry.Object = t.id
		w.emit(c, "payment_intent.created", t.render(expansions{}))
		if confirm {
			if err := w.confirm(c, t, how); err != nil {
				return nil, t.withIntent(err)
			}
		}
		return t.render(x), nil
	}, nil
}

func (t *intent) checkCreate(r *reader, confirm bool, methodName string) {
	if t.currency != "" && !validCurrency(t.currency) {
		r.refuse(invalid("", "currency", "%q is not a currency.", t.currency))
	}
	if err := checkAmount(t.amount, t.currency); err != nil {
		r.refuse(err)
	}
	if !confirm {
		for _, name := range []string{"off_session", "return_url", "use_stripe_sdk"} {
			if r.present(name) {
				r.refuse(invalid("", name, "%s has a meaning only with confirm=true.", name))
			}
		}
		return
	}
	if methodName == "" {
		r.refuse(invalid("parameter_missing", "payment_method", "confirm=true needs a payment_method."))
	}
}

// readTerms reads what both create and update may say.
func readTerms(r *reader) terms {
	t := terms{
		amount:        r.integer("amount"),
		description:   r.text("description"),
		descriptor:    r.text("statement_descriptor"),
		suffix:        r.text("statement_descriptor_suffix"),
		receiptEmail:  r.text("receipt_email"),
		futureUse:     r.choice("setup_future_usage", "off_session", "on_session"),
		transferGroup: r.text("transfer_group"),
	}
	t.changes = r.object("metadata")
	t.metadata = mergeMetadata(nil, t.changes)
	checkMetadata(r, t.changes)
	checkDescriptor(r, t.suffix)
	return t
}

func checkMetadata(r *reader, metadata map[string]string) {
	if len(metadata) > 50 {
		r.refuse(invalid("", "metadata", "Metadata has at most 50 keys."))
	}
	for key, value := range metadata {
		if len(key) > 40 || len(value) > 500 {
			r.refuse(invalid("", "metadata", "Metadata keys have at most 40 characters, values at most 500."))
		}
	}
}

func checkDescriptor(r *reader, suffix string) {
	if suffix == "" {
		return
	}
	letter := strings.ContainsFunc(suffix, func(c rune) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' })
	if len(suffix) > 22 || !letter || strings.ContainsAny(suffix, `<>\'"*`) {
		r.refuse(invalid("", "statement_descriptor_suffix",
			`A descriptor has at most 22 characters, at least one letter and none of < > \ ' " *.`))
	}
}

// readMethodTypes follows the rule of this API version: without payment_method_types, methods are chosen automatically, and
// confirming then wants a return_url because one of them might redirect.
func (t *intent) readMethodTypes(r *reader) {
	t.types = r.list("payment_method_types")
	r.known["automatic_payment_methods"] = true
	choice, given := r.params["automatic_payment_methods"].(params)
	enabled := choice["enabled"] == "true"
	switch {
	case given && len(t.types) > 0 && enabled:
		r.refuse(invalid("", "payment_method_types", "payment_method_types and automatic_payment_methods exclude each other."))
	case len(t.types) > 0:
		if !slices.Equal(t.types, []string{"card"}) {
			r.refuse(invalid("", "payment_method_types", "This simulator models the type card alone."))
		}
		return
	case given && !enabled:
		t.types = []string{"card"}
		return
	}
	t.types = []string{"card"}
	allow := "always"
	if choice["allow_redirects"] == "never" {
		allow = "never"
	}
	t.automatic = object{"enabled": true, "allow_redirects": allow}
	t.redirects = allow == "always"
}
