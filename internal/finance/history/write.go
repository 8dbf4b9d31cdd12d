package history

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Sum is what the provider's transactions of one category come to, in minor units of their settlement.
type Sum struct {
	Count  int64 `json:"count"`
	Amount int64 `json:"amount"`
	Fee    int64 `json:"fee"`
	Net    int64 `json:"net"`
}

// Totals are the provider's sums: by "currency category", and of all nets by currency.
type Totals struct {
	Count   int              `json:"count"`
	By      map[string]Sum   `json:"by"`
	Balance map[string]int64 `json:"balance"`
}

// Write makes all files in dir, those of what is to be found first.
func Write(dir string, c Config) (err error) {
	p := c.plan()
	if err := writeJSON(filepath.Join(dir, "expected.json"), p.list); err != nil {
		return err
	}
	f, err := create(dir)
	if err != nil {
		return err
	}
	w := &writer{Config: c, plan: p, files: f, totals: Totals{By: map[string]Sum{}, Balance: map[string]int64{}}, unpaid: map[string][]Transaction{}}
	for k := range c.bookings() {
		w.until(c.charged(k))
		w.booking(k)
	}
	w.until(c.End().Add(-time.Second))
	if err := f.close(); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "totals.json"), w.totals)
}

// writer goes through the history from its beginning to its end.
type writer struct {
	Config

	plan    plan
	files   *files
	coming  queue // transactions whose time has not come
	day     int   // whose payouts have been made
	unpaid  map[string][]Transaction
	totals  Totals
	ordinal int64
}

// until lets happen what is due before a moment.
func (w *writer) until(at time.Time) {
	for {
		midnight := w.From.AddDate(0, 0, w.day+1)
		due := len(w.coming) > 0 && w.coming[0].Created <= at.Unix()
		switch {
		case due && w.coming[0].Created < midnight.Unix():
			next, _ := heap.Pop(&w.coming).(Transaction)
			w.emit(next)
		case !midnight.After(at):
			w.day++
			w.payOut(midnight)
		default:
			return
		}
	}
}

func (w *writer) emit(t Transaction) {
	t.Net = t.Amount - t.Fee
	w.files.transaction(t)
	key := t.Currency + " " + t.Category
	s := w.totals.By[key]
	w.totals.By[key] = Sum{s.Count + 1, s.Amount + t.Amount, s.Fee + t.Fee, s.Net + t.Net}
	w.totals.Balance[t.Currency] += t.Net
	w.totals.Count++
	w.unpaid[t.Currency] = append(w.unpaid[t.Currency], t)
}

// later queues a transaction, unless the history is over by then.
func (w *writer) later(t Transaction) {
	w.ordinal++
	t.order = w.ordinal
	heap.Push(&w.coming, t)
}

// payOut sends off what two days have passed since, in each currency.
func (w *writer) payOut(at time.Time) {
	for _, currency := range []string{"USD", "JPY", "KWD"} {
		var sum int64
		rows, n := w.unpaid[currency], 0
		for n < len(rows) && rows[n].Created < at.AddDate(0, 0, -2).Unix() {
			sum += rows[n].Net
			n++
		}
		if sum <= 0 {
			continue
		}
		id := payoutID(w.day, currency)
		p, failed := Payout{ID: id, Amount: sum, Currency: currency, Created: at.Unix(), Status: "paid"}, fails(w.day, currency)
		if failed {
			p.Status = "failed"
		}
		if w.plan.payouts[id] && !failed {
			p.Amount--
		}
		w.files.payout(p, rows[:n])
		w.unpaid[currency] = append([]Transaction(nil), rows[n:]...)
		w.emit(Transaction{ID: "txn_" + id, Category: "payout", Source: id, Amount: -p.Amount, Currency: currency, Created: at.Unix()})
		last := len(w.unpaid[currency]) - 1
		w.unpaid[currency] = w.unpaid[currency][:last] // it does not go out with itself
		if failed {
			back := Transaction{ID: backID(id), Category: "payout_reversal", Source: id, Amount: p.Amount, Currency: currency, Created: at.Add(26 * time.Hour).Unix()}
			if w.plan.payouts[id] {
				back.Amount--
			}
			w.later(back) // and goes out with another
		}
	}
}

// booking makes one booking, and all that comes of it.
func (w *writer) booking(k int) {
	defect := w.plan.defects[k]
	p := purses()[w.roll(k, 1, int64(len(purses())))]
	b := booked{k: k, purse: p, at: w.charged(k), amount: p.price + w.roll(k, 2, 500)*p.step}
	w.files.booking(b, defect == EventUnpublished, w.roll(k, 3, 100) == 0)
	b.charge(w, defect)
	left := w.End().Sub(b.at)
	switch fate := w.roll(k, 4, 1000); {
	case defect == RefundWithoutCause:
		w.later(b.back("refund", fmt.Sprintf("re_x%09d", k), "", b.amount/2/p.step*p.step, b.at.Add(time.Hour)))
		if k%2 == 0 { // somebody has made it by hand, and we have seen it
			w.files.refund(b, b.amount/2/p.step*p.step, fmt.Sprintf("re_x%09d", k), "dashboard", "succeeded", b.at.Add(time.Hour))
		}
	case defect == RefundMissing:
		w.files.refund(b, b.amount, fmt.Sprintf("re_%09d", k), "requested", "succeeded", b.at.Add(time.Hour))
	case defect == DisputeUnknown:
		w.later(b.dispute(b.at.Add(time.Hour)))
	case defect != "":
	case fate < 60 && left > 30*time.Hour:
		b.refund(w, fate)
	case fate < 66 && left > 60*time.Hour:
		opened := b.at.Add(24 * time.Hour)
		w.later(b.dispute(opened))
		won := fate < 63
		if won {
			back := b.dispute(opened.Add(24 * time.Hour))
			back.ID, back.Category, back.Amount, back.Shown, back.Fee = "txn_w"+back.ID[5:], "dispute_reversal", -back.Amount, -back.Shown, 0
			w.later(back)
		}
		w.files.dispute(b, opened, won)
	}
}

func writeJSON(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// queue is a heap of transactions by their time.
type queue []Transaction

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].Created, q[j].Created), cmp.Compare(q[i].order, q[j].order)) < 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is the heap's.
func (q *queue) Push(x any) {
	if t, ok := x.(Transaction); ok {
		*q = append(*q, t)
	}
}

// Pop is the heap's.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
