package history

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Transaction is one movement of the account's balance.
type Transaction struct {
	ID            string `json:"id"`
	Category      string `json:"c"`
	Source        string `json:"s"`
	Intent        string `json:"i,omitempty"`
	Amount        int64  `json:"a"`
	Fee           int64  `json:"f,omitempty"`
	Net           int64  `json:"n"`
	Currency      string `json:"u"`
	Shown         int64  `json:"sa,omitempty"`
	ShownCurrency string `json:"su,omitempty"`
	Rate          string `json:"r,omitempty"`
	Created       int64  `json:"t"`
	Payment       string `json:"p,omitempty"`
	Booking       string `json:"b,omitempty"`
	Refund        string `json:"re,omitempty"`

	order int64
}

// Payout is money that went to the bank.
type Payout struct {
	ID       string `json:"id"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Created  int64  `json:"created"`
	Status   string `json:"status"`
	Offset   int64  `json:"offset"` // of its rows
	Rows     int    `json:"rows"`
}

// width is that of a record of theirs, so that any of them can be read alone.
const width = 420

// files are all that is written.
type files struct {
	open                                          []*os.File
	buffers                                       []*bufio.Writer
	records, rows                                 *bufio.Writer // theirs, and what went out with payouts
	payouts                                       []Payout
	rowsAt                                        int64
	bookings, payments, refunds, disputes, outbox *csv.Writer
	activity, payoutRows, payoutList              *csv.Writer
	dir                                           string
	err                                           error
}

func create(dir string) (*files, error) {
	f := &files{dir: dir}
	for _, d := range []string{"ours", "theirs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	f.records, f.rows = f.file("theirs/transactions.rec"), f.file("theirs/payout_rows.rec")
	for name, into := range map[string]**csv.Writer{
		"ours/bookings.csv": &f.bookings, "ours/payments.csv": &f.payments, "ours/refunds.csv": &f.refunds, "ours/disputes.csv": &f.disputes,
		"ours/outbox.csv": &f.outbox, "theirs/activity.csv": &f.activity, "theirs/payout_reconciliation.csv": &f.payoutRows, "theirs/payouts.csv": &f.payoutList,
	} {
		*into = csv.NewWriter(f.file(name))
	}
	columns := []string{
		"balance_transaction_id", "created_utc", "available_on_utc", "currency", "gross", "fee", "net", "reporting_category", "source_id", "description",
		"customer_facing_amount", "customer_facing_currency", "automatic_payout_id", "payment_intent_id", "payment_metadata[payment_id]",
		"payment_metadata[booking_id]", "refund_metadata[refund_id]",
	}
	f.put(f.activity, columns...)
	f.put(f.payoutRows, append(columns, "trace_id")...)
	f.put(f.payoutList, "payout_id", "effective_at_utc", "currency", "gross", "fee", "net", "balance_transaction_id", "payout_status")
	return f, f.err
}

func (f *files) file(name string) *bufio.Writer {
	file, err := os.Create(filepath.Join(f.dir, filepath.FromSlash(name)))
	f.err = errors.Join(f.err, err)
	b := bufio.NewWriterSize(file, 1<<16)
	f.open, f.buffers = append(f.open, file), append(f.buffers, b)
	return b
}

func (f *files) close() error {
	for _, w := range []*csv.Writer{f.bookings, f.payments, f.refunds, f.disputes, f.outbox, f.activity, f.payoutRows, f.payoutList} {
		w.Flush()
		f.err = errors.Join(f.err, w.Error())
	}
	for i, b := range f.buffers {
		f.err = errors.Join(f.err, b.Flush(), f.open[i].Close())
	}
	return errors.Join(f.err, writeJSON(filepath.Join(f.dir, "theirs", "payouts.json"), f.payouts))
}

func (f *files) put(w *csv.Writer, cells ...string) {
	if err := w.Write(cells); err != nil && f.err == nil {
		f.err = err
	}
}

func (f *files) record(w *bufio.Writer, t Transaction) {
	raw, err := json.Marshal(t)
	if err == nil && len(raw) >= width {
		err = fmt.Errorf("a record of %d bytes", len(raw))
	}
	if err == nil {
		_, err = w.WriteString(string(raw) + strings.Repeat(" ", width-1-len(raw)) + "\n")
	}
	if err != nil && f.err == nil {
		f.err = err
	}
}

func (f *files) transaction(t Transaction) {
	f.record(f.records, t)
	switch t.Category {
	case "payout": // the payout's own line says it
	case "payout_reversal":
		f.payoutLine(t.Source, t.ID, t.Created, -t.Amount, t.Currency, "failed")
	default:
		f.put(f.activity, t.cells("")...)
	}
}

func (f *files) payout(p Payout, rows []Transaction) {
	p.Offset, p.Rows = f.rowsAt, len(rows)
	f.rowsAt += int64(len(rows))
	f.payouts = append(f.payouts, p)
	for _, t := range rows {
		t.Net = t.Amount - t.Fee
		f.record(f.rows, t)
		f.put(f.payoutRows, append(t.cells(p.ID), "")...)
	}
	f.payoutLine(p.ID, "txn_"+p.ID, p.Created, p.Amount, p.Currency, p.Status)
}

func (f *files) payoutLine(payout, transaction string, created, amount int64, currency, status string) {
	gross := major(amount, places(currency))
	f.put(f.payoutList, payout, moment(created), strings.ToLower(currency), gross, major(0, places(currency)), gross, transaction, status)
}

// cells are a transaction as a report has it.
func (t Transaction) cells(payout string) []string {
	n := places(t.Currency)
	shown := ""
	if t.ShownCurrency != "" {
		shown = major(t.Shown, places(t.ShownCurrency))
	}
	return []string{
		t.ID, moment(t.Created), moment(t.Created + 2*86400), strings.ToLower(t.Currency), major(t.Amount, n), major(t.Fee, n), major(t.Net, n),
		t.Category, t.Source, "made up", shown, strings.ToLower(t.ShownCurrency), payout, t.Intent, t.Payment, t.Booking, t.Refund,
	}
}

func moment(at int64) string { return time.Unix(at, 0).UTC().Format(time.DateTime) }

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (f *files) booking(b booked, silent, told bool) {
	booking, amount := id("booking", b.k), strconv.FormatInt(b.amount, 10)
	made, known := stamp(b.at.Add(-5*time.Second)), stamp(b.at.Add(2*time.Second))
	f.put(f.bookings, booking, booking, booking, "[2040-01-01 10:00Z,2040-01-01 11:00Z)", "1", amount, b.purse.shown, "Ada", "ada@example.org", "confirmed",
		known, made, known)
	f.put(f.payments, id("payment", b.k), booking, amount, b.purse.shown, amount, "pm", b.intent(), "succeeded", made, known)
	switch {
	case silent:
		f.put(f.outbox, id("event", b.k), booking, "publish", "confirmed", "2", "pending", known, "", "", known, "")
	case told:
		f.put(f.outbox, id("event", b.k), booking, "publish", "confirmed", "2", "done", known, "BOOKINGS", strconv.Itoa(b.k+1), known, known)
	}
}

func (f *files) refund(b booked, amount int64, source, reason, status string, at time.Time) {
	made, known, effect := stamp(at.Add(-time.Second)), stamp(at.Add(time.Second)), ""
	settled := known
	if status == "failed" {
		settled = stamp(at.Add(24*time.Hour + time.Second))
	}
	if reason != "dashboard" {
		effect = id("effect", b.k)
		f.put(f.outbox, effect, id("booking", b.k), "refund", "", "", "done", made, "", "", made, known)
	}
	f.put(f.refunds, id("refund", b.k), id("payment", b.k), effect, strconv.FormatInt(amount, 10), b.purse.shown, reason, "ada", "asked", status, source,
		settled, made, settled)
}

func (f *files) dispute(b booked, at time.Time, won bool) {
	status, opened := "lost", stamp(at)
	moved := opened
	if won {
		status, moved = "won", stamp(at.Add(24*time.Hour))
	}
	f.put(f.disputes, fmt.Sprintf("dp_%09d", b.k), id("payment", b.k), strconv.FormatInt(b.amount, 10), b.purse.shown, "fraudulent", status,
		strconv.FormatBool(!won), opened, opened, moved)
}
