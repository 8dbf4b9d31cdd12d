package stripesim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Ledger is where the money is, whatever any client was told.
type Ledger struct {
	Charges             []LedgerCharge      `json:"charges"`
	Refunds             []LedgerRefund      `json:"refunds"`
	Disputes            []LedgerDispute     `json:"disputes"`
	BalanceTransactions []LedgerTransaction `json:"balance_transactions"`
	Payouts             []LedgerPayout      `json:"payouts"`
	// Balance is what the account has, by currency, available or not.
	Balance map[string]int64 `json:"balance"`
	// Executions are the writes that ran, and how long a key protects one.
	Executions     []Execution `json:"executions"`
	KeyRetentionMS int64       `json:"key_retention_ms"`
}

// LedgerCharge is one charge, failed and pending ones included, oldest first.
type LedgerCharge struct {
	ID             string            `json:"id"`
	PaymentIntent  string            `json:"payment_intent"`
	IntentStatus   string            `json:"payment_intent_status"`
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	Status         string            `json:"status"` // succeeded, pending, failed
	Captured       bool              `json:"captured"`
	AmountCaptured int64             `json:"amount_captured"`
	AmountRefunded int64             `json:"amount_refunded"`
	Disputed       bool              `json:"disputed"`
	Metadata       map[string]string `json:"metadata"`
	FailureCode    string            `json:"failure_code"`
	IdempotencyKey string            `json:"idempotency_key"` // of the request that made it; "" if the customer did
	Created        int64             `json:"created"`
}

// LedgerRefund is one refund, oldest first.
type LedgerRefund struct {
	ID             string            `json:"id"`
	PaymentIntent  string            `json:"payment_intent"`
	Charge         string            `json:"charge"`
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	Status         string            `json:"status"` // pending, succeeded, failed, canceled
	FailureReason  string            `json:"failure_reason"`
	Reason         string            `json:"reason"`
	Metadata       map[string]string `json:"metadata"`
	IdempotencyKey string            `json:"idempotency_key"` // of the request that made it; "" if it was made at the dashboard
	Created        int64             `json:"created"`
}

// LedgerDispute is one dispute or inquiry, oldest first.
type LedgerDispute struct {
	ID            string `json:"id"`
	PaymentIntent string `json:"payment_intent"`
	Charge        string `json:"charge"`
	Amount        int64  `json:"amount"`
	Currency      string `json:"currency"`
	Status        string `json:"status"`
	Reason        string `json:"reason"`
	Created       int64  `json:"created"`
}

// Execution is one write that ran.
type Execution struct {
	Operation string    `json:"operation"`
	Object    string    `json:"object"`
	Key       string    `json:"idempotency_key"`
	RequestID string    `json:"request_id"`
	KeySince  time.Time `json:"key_since"` // virtual: when its key was taken
}

// Ledger returns the present state of the money.
func (s *Simulator) Ledger() Ledger {
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass()
	l := Ledger{
		Charges: []LedgerCharge{}, Refunds: []LedgerRefund{}, Disputes: []LedgerDispute{}, BalanceTransactions: []LedgerTransaction{},
		Payouts: []LedgerPayout{}, Balance: maps.Clone(w.balance), Executions: append([]Execution{}, w.executions...), KeyRetentionMS: w.cfg.KeyRetention.Milliseconds(),
	}
	for _, ch := range w.charges {
		entry := LedgerCharge{
			ID: ch.id, PaymentIntent: ch.intent.id, IntentStatus: ch.intent.status, Amount: ch.amount, Currency: ch.currency,
			Status: ch.status, Captured: ch.captured, AmountCaptured: ch.amountCaptured, AmountRefunded: ch.amountRefunded,
			Disputed: ch.disputed, Metadata: maps.Clone(ch.metadata), IdempotencyKey: ch.key, Created: ch.created,
		}
		if ch.decline != nil {
			entry.FailureCode = ch.decline.code
		}
		l.Charges = append(l.Charges, entry)
	}
	for _, f := range w.refunds {
		l.Refunds = append(l.Refunds, LedgerRefund{
			ID: f.id, PaymentIntent: f.charge.intent.id, Charge: f.charge.id, Amount: f.amount, Currency: f.charge.currency,
			Status: f.status, FailureReason: f.failure, Reason: f.reason, Metadata: maps.Clone(f.metadata), IdempotencyKey: f.key,
			Created: f.created,
		})
	}
	for _, b := range w.transactions {
		l.BalanceTransactions = append(l.BalanceTransactions, b.ledger())
	}
	for _, p := range w.payouts {
		l.Payouts = append(l.Payouts, p.ledger())
	}
	for _, d := range w.disputes {
		l.Disputes = append(l.Disputes, LedgerDispute{
			ID: d.id, PaymentIntent: d.charge.intent.id, Charge: d.charge.id, Amount: d.amount, Currency: d.charge.currency,
			Status: d.status, Reason: d.reason, Created: d.created,
		})
	}
	return l
}

// recordExecution notes that a write ran. The caller holds mu.
func (w *world) recordExecution(c *call, record *keyRecord) {
	since := w.now()
	if record != nil {
		since = record.since
	}
	w.executions = append(w.executions, Execution{
		Operation: c.operation(), Object: c.entry.Object, Key: c.key, RequestID: c.requestID, KeySince: since,
	})
}

// Succeeded returns the charges that moved money, of one booking (its metadata booking_id) or, for "", of all.
func (l Ledger) Succeeded(bookingID string) []LedgerCharge {
	var charges []LedgerCharge
	for _, ch := range l.Charges {
		if ch.Status == chargeSucceeded && (bookingID == "" || ch.Metadata["booking_id"] == bookingID) {
			charges = append(charges, ch)
		}
	}
	return charges
}

// Check reports everything that no sequence of faults may bring about:
//
//   - an intent with two successful charges (the simulator's own promise);
//   - a metadata booking_id with two successful charges (the client made two intents succeed for one booking);
//   - a balance that is not the sum of its movements, a movement that is not its amount less its fee, a payout that is not the sum
//     of what went out with it, a charge or refund that moved the balance otherwise than once (the simulator's own promises);
//   - refunds of a charge, those that failed aside, of more than it took (the simulator's own promise);
//   - a write that ran without an idempotency key (the client left it out);
//   - a key that ran twice within its retention (the simulator's own promise).
func (l Ledger) Check() error {
	var problems []error
	perIntent, perBooking := map[string]int{}, map[string]int{}
	refunded := map[string]int64{}
	for _, f := range l.Refunds {
		if f.Status != refundFailed && f.Status != refundCanceled {
			refunded[f.Charge] += f.Amount
		}
	}
	for _, ch := range l.Succeeded("") {
		perIntent[ch.PaymentIntent]++
		if booking := ch.Metadata["booking_id"]; booking != "" {
			perBooking[booking]++
		}
		if given := refunded[ch.ID]; given > ch.AmountCaptured {
			problems = append(problems, fmt.Errorf("charge %s: refunds of %d, and it took %d", ch.ID, given, ch.AmountCaptured))
		}
		if ch.AmountRefunded > ch.Amount {
			problems = append(problems, fmt.Errorf("charge %s: %d refunded of %d", ch.ID, ch.AmountRefunded, ch.Amount))
		}
	}
	problems = append(problems, twice("payment intent", perIntent)...)
	problems = append(problems, twice("booking", perBooking)...)
	problems = append(problems, l.checkBalance()...)
	return errors.Join(append(problems, l.checkKeys()...)...)
}

func twice(what string, counts map[string]int) []error {
	var problems []error
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		if counts[id] > 1 {
			problems = append(problems, fmt.Errorf("%s %s: %d successful charges", what, id, counts[id]))
		}
	}
	return problems
}

func (l Ledger) checkKeys() []error {
	var problems []error
	retention := time.Duration(l.KeyRetentionMS) * time.Millisecond
	last := map[string]time.Time{}
	inOrder := slices.SortedStableFunc(slices.Values(l.Executions), func(a, b Execution) int {
		return cmp.Compare(a.KeySince.UnixNano(), b.KeySince.UnixNano())
	})
	for _, e := range inOrder {
		before, again := last[e.Key]
		switch {
		case e.Key == "":
			problems = append(problems, fmt.Errorf("%s %s: executed without an idempotency key", e.Operation, e.Object))
		case again && e.KeySince.Sub(before) < retention:
			problems = append(problems, fmt.Errorf("key %q: executed twice within its retention", e.Key))
		}
		last[e.Key] = e.KeySince
	}
	return problems
}
