package stripesim

import (
	"errors"
	"fmt"
	"time"
)

const payoutInTransit, payoutPaid, payoutFailed = "in_transit", "paid", "failed"

// payoutTakes is how long a payout is under way to the bank.
const payoutTakes = 24 * time.Hour

// payout sends what is available to the account's bank. Guarded by world.mu.
type payout struct {
	id          string
	order       int64
	created     int64
	amount      int64
	currency    string
	arrival     int64
	status      string
	failure     string
	transaction *transaction
	returned    *transaction
}

func (p *payout) ident() string { return p.id }
func (p *payout) place() int64  { return p.order }
func (p *payout) born() int64   { return p.created }

// payoutByID answers nil if there is none.
func (w *world) payoutByID(id string) *payout {
	for _, p := range w.payouts {
		if p.id == id {
			return p
		}
	}
	return nil
}

// actCreatePayout is the account's payout schedule: all that is available in a currency and has not gone out goes.
func (w *world) actCreatePayout(_ *intent, a Action) (id, status string, err error) {
	currency := orDefault(a.Currency, w.settlement.Currency)
	var rows []*transaction
	var sum int64
	for _, b := range w.transactions {
		if b.currency == currency && b.payout == nil && b.status() == "available" {
			rows = append(rows, b)
			sum += b.net()
		}
	}
	if sum <= 0 {
		return "", "", fmt.Errorf("%d %s is available, which is nothing to pay out: advance the clock until what was charged is", sum, currency)
	}
	p := &payout{
		id: newID("po_1", 23), amount: sum, currency: currency, arrival: w.now().Add(payoutTakes).Unix(), status: payoutInTransit,
	}
	p.order, p.created = w.birth()
	p.transaction = w.book(transaction{kind: "payout", category: categoryPayout, amount: -sum, currency: currency, source: p})
	for _, b := range append(rows, p.transaction) {
		b.payout = p
	}
	w.payouts = append(w.payouts, p)
	w.emit(nil, "payout.created", p.render(expansions{}))
	w.after(payoutTakes, func() {
		if p.status == payoutInTransit {
			p.status = payoutPaid
			w.emit(nil, "payout.paid", p.render(expansions{}))
		}
	})
	return p.id, p.status, nil
}

// actFailPayout brings the money of a payout back, also of one that says paid. The next payout takes it.
func (w *world) actFailPayout(_ *intent, a Action) (id, status string, err error) {
	p := w.payoutByID(a.Payout)
	switch {
	case a.Payout == "":
		return "", "", errors.New("action fail_payout needs a payout")
	case p == nil:
		return "", "", fmt.Errorf("there is no payout %q", a.Payout)
	case p.status == payoutFailed:
		return "", "", fmt.Errorf("payout %s has failed", p.id)
	}
	p.status, p.failure = payoutFailed, orDefault(a.Reason, "account_closed")
	p.returned = w.back(p.transaction, "payout_failure", categoryPayoutReversal)
	w.emit(nil, "payout.failed", p.render(expansions{}))
	return p.id, p.status, nil
}

func (p *payout) render(x expansions) object {
	o := object{
		"id": p.id, "object": "payout", "livemode": false, "created": p.created, "status": p.status, "amount": p.amount,
		"currency": p.currency, "arrival_date": p.arrival, "automatic": true, "reconciliation_status": "completed",
		"balance_transaction":         renderTransaction(p.transaction, x, "balance_transaction"),
		"failure_balance_transaction": renderTransaction(p.returned, x, "failure_balance_transaction"),
		"failure_code":                null(p.failure), "failure_message": nil, "description": nil, "destination": nil,
		"metadata": object{}, "method": "standard", "original_payout": nil, "reversed_by": nil, "source_type": "card",
		"statement_descriptor": nil, "type": "bank_account",
	}
	if p.failure != "" {
		o["failure_message"] = "The bank returned the payout."
	}
	return o
}

func preparePayoutRetrieve(c *call) (execution, *apiError) {
	r := c.params.read()
	x := c.expansions(r, "balance_transaction", "failure_balance_transaction")
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		if p := w.payoutByID(c.id); p != nil {
			return p.render(x), nil
		}
		return nil, missing("payout", "payout", c.id)
	}, nil
}

func preparePayoutList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	arrival := readWindow(r, "arrival_date")
	status := r.choice("status", "pending", payoutInTransit, payoutPaid, payoutFailed, "canceled")
	r.unmodelled("destination")
	x := c.expansions(r, "data.balance_transaction", "data.failure_balance_transaction")
	if err := r.finish(); err != nil {
		return nil, err
	}
	wanted := func(p *payout) bool { return (status == "" || p.status == status) && arrival.covers(p.arrival) }
	return func(w *world) (object, *apiError) {
		return list(c, page, w.payouts, wanted, func(p *payout) object { return p.render(x.inside("data")) })
	}, nil
}
