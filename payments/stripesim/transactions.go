package stripesim

import (
	"slices"
	"time"
)

// transaction is a balance transaction: one movement of the balance. It never changes but for being paid out. Guarded by world.mu.
type transaction struct {
	id        string
	order     int64
	created   int64
	kind      string // "type" on the wire
	category  string
	amount    int64
	fee       int64
	currency  string
	rate      float64 // 0: nothing was exchanged
	available int64
	source    source
	payout    *payout // that it went out with
	world     *world
}

// source is what moved the balance.
type source interface {
	ident() string
	render(x expansions) object
}

// What moves the balance, as finance should classify it.
const (
	categoryCharge          = "charge"
	categoryRefund          = "refund"
	categoryRefundFailure   = "refund_failure"
	categoryDispute         = "dispute"
	categoryDisputeReversal = "dispute_reversal"
	categoryPayout          = "payout"
	categoryPayoutReversal  = "payout_reversal"
)

func (b *transaction) ident() string { return b.id }
func (b *transaction) place() int64  { return b.order }
func (b *transaction) born() int64   { return b.created }
func (b *transaction) net() int64    { return b.amount - b.fee }

func (b *transaction) status() string {
	if b.available > b.world.now().Unix() {
		return "pending"
	}
	return "available"
}

// book moves the balance. The money is available at once unless b says otherwise. The caller holds mu.
func (w *world) book(b transaction) *transaction {
	b.id, b.world = newID("txn_3", 23), w
	b.order, b.created = w.birth()
	b.available = orDefault(b.available, b.created)
	w.transactions = append(w.transactions, &b)
	w.balance[b.currency] += b.net()
	return &b
}

// back is the movement that undoes another, but for its fee.
func (w *world) back(b *transaction, kind, category string) *transaction {
	return w.book(transaction{kind: kind, category: category, amount: -b.amount, currency: b.currency, rate: b.rate, source: b.source})
}

// earn books what a charge has taken: at once, or later where balance transactions are late.
func (w *world) earn(ch *charge) {
	if w.settlement.LateMS == 0 {
		w.bookCharge(ch)
		return
	}
	w.after(time.Duration(w.settlement.LateMS)*time.Millisecond, func() {
		w.bookCharge(ch)
		w.emit(nil, "charge.updated", ch.render(expansions{}))
	})
}

func (w *world) bookCharge(ch *charge) {
	amount, currency, rate := w.settlement.settled(ch.amountCaptured, ch.currency)
	b := transaction{
		kind: "charge", category: categoryCharge, amount: amount, fee: w.settlement.fee(amount, currency), currency: currency, rate: rate, source: ch,
	}
	if ch.method.later != "bypassPending" {
		b.available = w.settlement.available(w.now()).Unix()
	}
	ch.transaction = w.book(b)
}

// bookRefund books what a refund gives back; the charge's fee stays where it is.
func (w *world) bookRefund(f *refund) {
	amount, currency, rate := w.settlement.settled(f.amount, f.charge.currency)
	f.transaction = w.book(transaction{kind: "refund", category: categoryRefund, amount: -amount, currency: currency, rate: rate, source: f})
}

// bookDispute books what a dispute takes.
func (w *world) bookDispute(d *dispute) {
	amount, currency, rate := w.settlement.settled(d.amount, d.charge.currency)
	d.transactions = append(d.transactions, w.book(transaction{
		kind: "adjustment", category: categoryDispute, amount: -amount, fee: w.settlement.DisputeFee, currency: currency, rate: rate, source: d,
	}))
}

// funds are what is available and what is not yet, in one currency. The caller holds mu.
func (w *world) funds(currency string) (available, pending int64) {
	for _, b := range w.transactions {
		switch {
		case b.currency != currency:
		case b.status() == "available":
			available += b.net()
		default:
			pending += b.net()
		}
	}
	return available, pending
}

func (b *transaction) render(x expansions) object {
	o := object{
		"id": b.id, "object": "balance_transaction", "created": b.created, "type": b.kind, "reporting_category": b.category,
		"amount": b.amount, "fee": b.fee, "net": b.net(), "currency": b.currency, "exchange_rate": nil, "available_on": b.available,
		"status": b.status(), "source": b.source.ident(), "description": nil, "fee_details": []object{},
	}
	if b.rate != 0 {
		o["exchange_rate"] = b.rate
	}
	if b.fee != 0 {
		description := "Stripe processing fees"
		if b.category == categoryDispute {
			description = "Dispute fee"
		}
		o["fee_details"] = []object{{
			"amount": b.fee, "currency": b.currency, "type": "stripe_fee", "description": description, "application": nil,
		}}
	}
	if x["source"] {
		o["source"] = b.source.render(expansions{})
	}
	return o
}

// renderTransaction is a field that names a balance transaction, or none yet.
func renderTransaction(b *transaction, x expansions, field string) any {
	switch {
	case b == nil:
		return nil
	case x[field]:
		return b.render(expansions{})
	}
	return b.id
}

func prepareTransactionRetrieve(c *call) (execution, *apiError) {
	r := c.params.read()
	x := c.expansions(r, "source")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		for _, b := range w.transactions {
			if b.id == c.id {
				return b.render(x), nil
			}
		}
		return nil, missing("balance transaction", "id", c.id)
	}, nil
}

func prepareTransactionList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	payoutID, sourceID, kind, currency := r.text("payout"), r.text("source"), r.text("type"), r.text("currency")
	x := c.expansions(r, "data.source")
	if err := r.finish(); err != nil {
		return nil, err
	}
	wanted := func(b *transaction) bool {
		return (payoutID == "" || b.payout != nil && b.payout.id == payoutID) &&
			(kind == "" || b.kind == kind) && (currency == "" || b.currency == currency) &&
			(sourceID == "" || b.listedBySource() && b.source.ident() == sourceID)
	}
	return func(w *world) (object, *apiError) {
		if payoutID != "" && w.payoutByID(payoutID) == nil {
			return nil, missing("payout", "payout", payoutID)
		}
		return list(c, page, w.transactions, wanted, func(b *transaction) object { return b.render(x.inside("data")) })
	}, nil
}

// listedBySource is false for disputes: Stripe lists nothing for one.
func (b *transaction) listedBySource() bool {
	return b.category != categoryDispute && b.category != categoryDisputeReversal
}

func prepareBalance(c *call) (execution, *apiError) {
	if err := c.params.read().finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		available, pending := []object{}, []object{}
		for _, currency := range w.currencies() {
			now, later := w.funds(currency)
			available = append(available, object{"amount": now, "currency": currency, "source_types": object{"card": now}})
			pending = append(pending, object{"amount": later, "currency": currency, "source_types": object{"card": later}})
		}
		return object{"object": "balance", "livemode": false, "available": available, "pending": pending}, nil
	}, nil
}

// currencies are those that the account has or had money in, its own first.
func (w *world) currencies() []string {
	all := []string{w.settlement.Currency}
	for _, b := range w.transactions {
		if !slices.Contains(all, b.currency) {
			all = append(all, b.currency)
		}
	}
	return all
}
