package stripesim

import (
	"maps"
	"strings"
)

// evidenceFields are what a dispute can be answered with.
func evidenceFields() []string {
	return []string{
		"access_activity_log", "billing_address", "cancellation_policy", "cancellation_policy_disclosure", "cancellation_rebuttal",
		"customer_communication", "customer_email_address", "customer_name", "customer_purchase_ip", "customer_signature",
		"duplicate_charge_documentation", "duplicate_charge_explanation", "duplicate_charge_id", "product_description", "receipt",
		"refund_policy", "refund_policy_disclosure", "refund_refusal_explanation", "service_date", "service_documentation",
		"shipping_address", "shipping_carrier", "shipping_date", "shipping_documentation", "shipping_tracking_number",
		"uncategorized_file", "uncategorized_text",
	}
}

func (d *dispute) renderEvidence() object {
	o := object{}
	for _, field := range evidenceFields() {
		o[field] = null(d.evidence[field])
	}
	return o
}

func prepareDisputeUpdate(c *call) (execution, *apiError) {
	r := c.params.read()
	evidence, metadata := r.object("evidence"), r.object("metadata")
	checkMetadata(r, metadata)
	known := map[string]bool{}
	for _, field := range evidenceFields() {
		known[field] = true
	}
	for field := range evidence {
		if !known[field] {
			r.refuse(invalid("parameter_unknown", "evidence["+field+"]", "There is no evidence %s.", field))
		}
	}
	stage := r.present("submit") && !r.boolean("submit")
	x := c.expansions(r, "charge", "payment_intent")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		d := w.disputeByID(c.id)
		if d == nil {
			return nil, missing("dispute", "dispute", c.id)
		}
		submits := evidence != nil && !stage
		if evidence != nil && d.status != needsResponse && d.status != warningNeedsResponse {
			return nil, invalid("", "", "This dispute takes no evidence: its status is %s.", d.status)
		}
		if metadata != nil {
			d.metadata = mergeMetadata(d.metadata, metadata)
		}
		if evidence != nil {
			maps.Copy(d.evidence, evidence)
			maps.DeleteFunc(d.evidence, func(_, value string) bool { return value == "" })
		}
		if submits {
			w.submit(c, d)
		} else {
			w.emit(c, "charge.dispute.updated", d.render(expansions{}))
		}
		return d.render(x), nil
	}, nil
}

// submit hands the evidence in. As in Stripe's test mode, some texts settle the dispute by themselves.
func (w *world) submit(c *call, d *dispute) {
	inquiry := d.inquiry()
	d.submissions++
	d.status = underReview
	if inquiry {
		d.status = warningUnderReview
	}
	w.emit(c, "charge.dispute.updated", d.render(expansions{}))
	says := func(text string) bool { return strings.Contains(d.evidence["uncategorized_text"], text) }
	switch {
	case inquiry && says("escalate_inquiry_evidence"):
		w.escalate(d)
	case inquiry && (says("winning_evidence") || says("losing_evidence")):
		w.decide(d, warningClosed)
	case says("winning_evidence"):
		w.decide(d, disputeWon)
	case says("losing_evidence"):
		w.decide(d, disputeLost)
	}
}

func prepareDisputeClose(c *call) (execution, *apiError) {
	r := c.params.read()
	x := c.expansions(r, "charge", "payment_intent")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		d := w.disputeByID(c.id)
		switch {
		case d == nil:
			return nil, missing("dispute", "dispute", c.id)
		case d.status != needsResponse:
			return nil, invalid("", "", "This dispute cannot be closed: its status is %s.", d.status)
		}
		w.decide(d, disputeLost)
		return d.render(x), nil
	}, nil
}

func prepareDisputeRetrieve(c *call) (execution, *apiError) {
	r := c.params.read()
	x := c.expansions(r, "charge", "payment_intent")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		if d := w.disputeByID(c.id); d != nil {
			return d.render(x), nil
		}
		return nil, missing("dispute", "dispute", c.id)
	}, nil
}

func prepareDisputeList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	intentID, chargeID := r.text("payment_intent"), r.text("charge")
	x := c.expansions(r, "data.charge", "data.payment_intent")
	if err := r.finish(); err != nil {
		return nil, err
	}
	wanted := func(d *dispute) bool {
		return (intentID == "" || d.charge.intent.id == intentID) && (chargeID == "" || d.charge.id == chargeID)
	}
	return func(w *world) (object, *apiError) {
		return list(c, page, w.disputes, wanted, func(d *dispute) object { return d.render(x.inside("data")) })
	}, nil
}
