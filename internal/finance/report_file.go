package finance

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/payments"
)

// The reports of the provider's that are understood. Their columns are those of https://docs.stripe.com/reports/report-types/balance and
// …/payout-reconciliation: amounts in major units, times in UTC where the name says so. Of payouts.itemized they say that effective_at is
// when the money is taken from the balance (its transaction is up to some days older), and of no report which sign a payout has there: its
// transaction has a minus, and that report none, as those have found who read real ones. A payout that brings money in has the reverse.
const (
	FileActivity = "activity"              // balance_change_from_activity.itemized: everything but payouts
	FilePayouts  = "payout-reconciliation" // payout_reconciliation.itemized: what went out with each payout
	FilePayout   = "payouts"               // payouts.itemized: the payouts themselves
)

// FileError says what is wrong with a file, and where.
type FileError struct {
	Line   int // from 1; the header is the first
	Reason string
}

func (e *FileError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// fileRow is one line: a transaction, and the payout that it went out with or that it is.
type fileRow struct {
	payments.Transaction

	Payout  string
	Status  string    // of a payout itself
	Arrival time.Time // likewise: at the bank
}

// reportFile reads a report line by line.
type reportFile struct {
	kind   string
	csv    *csv.Reader
	column map[string]int
	cells  []string
	line   int
}

// openReport reads the header, and says which report it is unless told.
func openReport(r io.Reader, kind string) (*reportFile, error) {
	f := &reportFile{kind: kind, csv: csv.NewReader(r), column: map[string]int{}, line: 1}
	f.csv.ReuseRecord = true
	header, err := f.csv.Read()
	if err != nil {
		return nil, f.broken(err)
	}
	for i, name := range header {
		name = strings.TrimPrefix(name, "\uFEFF") // as spreadsheets write it
		if _, twice := f.column[name]; twice {
			return nil, &FileError{1, fmt.Sprintf("the column %q is there twice", printable(name))}
		}
		f.column[name] = i
	}
	if f.kind == "" {
		f.kind = FileActivity
		switch {
		case f.has("payout_id"):
			f.kind = FilePayout
		case f.has("trace_id"), f.has("trace_id_status"):
			f.kind = FilePayouts
		}
	}
	need := []string{
		"balance_transaction_id", "created_utc", "currency", "gross", "fee", "net", "reporting_category", "source_id", "available_on_utc",
		"customer_facing_amount", "customer_facing_currency", "payment_intent_id",
	}
	switch f.kind {
	case FilePayouts:
		need = append(need, "automatic_payout_id")
	case FilePayout:
		need = []string{"payout_id", "balance_transaction_id", "effective_at_utc", "currency", "gross", "fee", "net"}
	}
	var missing []string
	for _, name := range need {
		if !f.has(name) {
			missing = append(missing, name)
		}
	}
	if len(header) == 1 && strings.ContainsAny(header[0], ";\t") {
		return nil, &FileError{1, "the columns are separated by semicolons or tabs, not by commas: import the file as the provider has written it"}
	}
	if len(missing) > 0 {
		return nil, &FileError{1, fmt.Sprintf("this is no %s report with all that is needed; ask for these columns, too: %s", f.kind, strings.Join(missing, ", "))}
	}
	return f, nil
}

func (f *reportFile) has(name string) bool {
	_, ok := f.column[name]
	return ok
}

func (f *reportFile) cell(name string) string {
	if i, ok := f.column[name]; ok {
		return f.cells[i]
	}
	return ""
}

// longestCell is more than the provider's ids and our own come to, and less than what an index bears.
const longestCell = 1000 // bytes

// next reads a line; io.EOF is the end. Any other error is a *FileError.
func (f *reportFile) next() (fileRow, error) {
	cells, err := f.csv.Read()
	if errors.Is(err, io.EOF) {
		return fileRow{}, io.EOF
	}
	if err != nil {
		return fileRow{}, f.broken(err)
	}
	f.cells = cells
	f.line, _ = f.csv.FieldPos(0)
	for name, i := range f.column {
		if !utf8.ValidString(cells[i]) || strings.ContainsRune(cells[i], 0) || len(cells[i]) > longestCell {
			return fileRow{}, &FileError{f.line, fmt.Sprintf("%s: want UTF-8 text of at most %d bytes, as the provider writes it", printable(name), longestCell)}
		}
	}
	row, err := f.row()
	if err != nil {
		return fileRow{}, &FileError{f.line, err.Error()}
	}
	return row, nil
}

func (f *reportFile) broken(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		return &FileError{parse.Line, "this is no CSV: " + parse.Err.Error()}
	case errors.Is(err, io.EOF):
		return &FileError{1, "the file is empty"}
	}
	return fmt.Errorf("read the file: %w", err)
}

func (f *reportFile) row() (row fileRow, err error) {
	digits, currency, err := currencyOf(f.cell("currency"))
	if err != nil {
		return row, fmt.Errorf("currency: %w", err)
	}
	read := func(column string) (n int64) {
		if err == nil {
			if n, err = minor(f.cell(column), digits); err != nil {
				err = fmt.Errorf("%s: %w", column, err)
			}
		}
		return n
	}
	at := func(column string) (t time.Time) {
		if err == nil {
			if t, err = time.ParseInLocation(time.DateTime, f.cell(column), time.UTC); err != nil {
				err = fmt.Errorf("%s: %q is no time such as 2027-03-01 10:00:00", column, printable(f.cell(column)))
			}
		}
		return t
	}
	t := &row.Transaction
	t.ID, t.Amount, t.Fee, t.Net = f.cell("balance_transaction_id"), domain.Money{Amount: read("gross"), Currency: currency}, read("fee"), read("net")
	if f.kind == FilePayout {
		row.Payout, row.Status = f.cell("payout_id"), strings.ToLower(f.cell("payout_status"))
		t.Type, t.Category, t.SourceID = "payout", "payout", row.Payout
		t.Amount.Amount, t.Net = -t.Amount.Amount, -t.Net // the report says what arrived
		if category := f.cell("reporting_category"); category == "payout_reversal" || category == "" && t.Net > 0 {
			t.Type, t.Category = "payout_failure", "payout_reversal" // it has failed, and this is what came back
		}
		t.Created = at("effective_at_utc")
		t.Available = t.Created
		if row.Arrival = t.Created; f.cell("payout_expected_arrival_date") != "" && err == nil {
			if row.Arrival, err = time.Parse(time.DateOnly, strings.TrimSuffix(f.cell("payout_expected_arrival_date"), " 00:00:00")); err != nil {
				err = fmt.Errorf("payout_expected_arrival_date: %q is no day such as 2027-03-01", printable(f.cell("payout_expected_arrival_date")))
			}
		}
	} else {
		t.Type, t.Category, t.SourceID = f.cell("reporting_category"), f.cell("reporting_category"), f.cell("source_id")
		t.IntentID, row.Payout = f.cell("payment_intent_id"), f.cell("automatic_payout_id")
		t.Created, t.Available = at("created_utc"), at("available_on_utc")
		t.PaymentRef, t.BookingRef = ref(f.cell("payment_metadata[payment_id]")), ref(f.cell("payment_metadata[booking_id]"))
		t.RefundRef = ref(f.cell("refund_metadata[refund_id]"))
		if err == nil {
			err = f.shown(t)
		}
	}
	switch {
	case err != nil:
		return row, err
	case t.ID == "" || t.Category == "" || f.kind != FileActivity && row.Payout == "":
		return row, errors.New("an id or the category is missing")
	case t.Net != t.Amount.Amount-t.Fee:
		return row, errors.New("net is not gross less fee")
	}
	return row, nil
}

// shown reads what the customer was shown; its sign is the movement's.
func (f *reportFile) shown(t *payments.Transaction) error {
	if f.cell("customer_facing_amount") == "" || !slices.Contains(
		[]string{"charge", "refund", "refund_failure", "dispute", "dispute_reversal", "partial_capture_reversal"}, t.Category) {
		return nil
	}
	digits, currency, err := currencyOf(f.cell("customer_facing_currency"))
	if err != nil {
		return fmt.Errorf("customer_facing_currency: %w", err)
	}
	amount, err := minor(f.cell("customer_facing_amount"), digits)
	if err != nil {
		return fmt.Errorf("customer_facing_amount: %w", err)
	}
	if (amount < 0) != (t.Amount.Amount < 0) {
		amount = -amount
	}
	t.Presented = &domain.Money{Amount: amount, Currency: currency}
	return nil
}

func ref(s string) uuid.UUID {
	id, err := uuid.Parse(s)
	if err != nil {
		return uuid.Nil
	}
	return id
}
