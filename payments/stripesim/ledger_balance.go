package stripesim

import (
	"fmt"
	"maps"
	"slices"
)

// LedgerTransaction is one movement of the balance, oldest first. Amount, Fee and Net are in the settlement's currency.
type LedgerTransaction struct {
	ID                string  `json:"id"`
	Type              string  `json:"type"`
	ReportingCategory string  `json:"reporting_category"`
	Source            string  `json:"source"`
	PaymentIntent     string  `json:"payment_intent"` // "" of a payout
	Amount            int64   `json:"amount"`
	Fee               int64   `json:"fee"`
	Net               int64   `json:"net"`
	Currency          string  `json:"currency"`
	ExchangeRate      float64 `json:"exchange_rate"` // 0: nothing was exchanged
	Status            string  `json:"status"`        // pending, available
	AvailableOn       int64   `json:"available_on"`
	Payout            string  `json:"payout"` // that it went out with
	Created           int64   `json:"created"`
}

// LedgerPayout is one payout, oldest first.
type LedgerPayout struct {
	ID          string `json:"id"`
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
	Status      string `json:"status"` // in_transit, paid, failed
	ArrivalDate int64  `json:"arrival_date"`
	Created     int64  `json:"created"`
}

func (b *transaction) ledger() LedgerTransaction {
	entry := LedgerTransaction{
		ID: b.id, Type: b.kind, ReportingCategory: b.category, Source: b.source.ident(), Amount: b.amount, Fee: b.fee, Net: b.net(),
		Currency: b.currency, ExchangeRate: b.rate, Status: b.status(), AvailableOn: b.available, Created: b.created,
	}
	if ch := b.charge(); ch != nil {
		entry.PaymentIntent = ch.intent.id
	}
	if b.payout != nil {
		entry.Payout = b.payout.id
	}
	return entry
}

// charge is the one whose money moved; nil for a payout.
func (b *transaction) charge() *charge {
	switch source := b.source.(type) {
	case *charge:
		return source
	case *refund:
		return source.charge
	case *dispute:
		return source.charge
	}
	return nil
}

func (p *payout) ledger() LedgerPayout {
	return LedgerPayout{ID: p.id, Amount: p.amount, Currency: p.currency, Status: p.status, ArrivalDate: p.arrival, Created: p.created}
}

// checkBalance holds the balance against its movements, and the movements against what they are of.
func (l Ledger) checkBalance() []error {
	var problems []error
	sums, paidOut := map[string]int64{}, map[string]int64{}
	of := map[string][]LedgerTransaction{}
	for _, b := range l.BalanceTransactions {
		if b.Net != b.Amount-b.Fee {
			problems = append(problems, fmt.Errorf("balance transaction %s: %d less a fee of %d is not %d", b.ID, b.Amount, b.Fee, b.Net))
		}
		sums[b.Currency] += b.Net
		of[b.Source] = append(of[b.Source], b)
		if b.Payout != "" && b.Payout != b.Source {
			paidOut[b.Payout] += b.Net
		}
	}
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		if l.Balance[currency] != sums[currency] {
			problems = append(problems, fmt.Errorf("balance in %s: %d, and its movements come to %d", currency, l.Balance[currency], sums[currency]))
		}
	}
	for _, p := range l.Payouts {
		if paidOut[p.ID] != p.Amount {
			problems = append(problems, fmt.Errorf("payout %s: %d, and what went out comes to %d", p.ID, p.Amount, paidOut[p.ID]))
		}
	}
	for _, ch := range l.Charges {
		if n := len(of[ch.ID]); n > 1 {
			problems = append(problems, fmt.Errorf("charge %s: %d balance transactions", ch.ID, n))
		}
	}
	for _, f := range l.Refunds {
		var sum int64
		for _, b := range of[f.ID] {
			sum += b.Amount
		}
		if gone := f.Status == refundSucceeded; gone != (sum < 0) && f.Status != refundPending {
			problems = append(problems, fmt.Errorf("refund %s is %s, and its balance transactions come to %d", f.ID, f.Status, sum))
		}
	}
	return problems
}
