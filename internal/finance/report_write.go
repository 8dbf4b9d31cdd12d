package finance

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/cli"
)

// CSVHeader are the columns of the report as CSV. Amounts are in major units with a point; times are RFC 3339 in UTC. What a column
// means depends on record: see docs/finance.md.
func CSVHeader() []string {
	return []string{
		"record", "period_from", "period_to", "zone", "as_of", "complete", "day", "kind", "id", "booking_id", "currency", "count", "amount", "fee", "net",
		"status", "age_hours", "owner", "occurred_at", "why", "note",
	}
}

// WriteCSV writes the report, one line for each figure.
func (r Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	line := func(cells map[string]string) error {
		cells["period_from"], cells["period_to"], cells["zone"] = r.Period.From, r.Period.To, r.Period.Zone
		cells["as_of"], cells["complete"] = r.AsOf.Format(time.RFC3339), strconv.FormatBool(r.Complete)
		row := make([]string, len(CSVHeader()))
		for i, name := range CSVHeader() {
			row[i] = Cell(cells[name])
		}
		return out.Write(row)
	}
	if err := out.Write(CSVHeader()); err != nil {
		return err
	}
	for _, cells := range r.lines() {
		if err := line(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Cell keeps a spreadsheet from taking what somebody has written for a formula: such a cell begins with an apostrophe. A number stays one.
func Cell(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}

// lines are all records of the report.
func (r Report) lines() []map[string]string {
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	var all []map[string]string
	add := func(cells map[string]string) { all = append(all, cells) }
	for _, why := range r.Incomplete {
		add(map[string]string{"record": "incomplete", "why": why})
	}
	for _, b := range r.Balances {
		for _, part := range []struct {
			kind   string
			amount int64
		}{{"opening", b.Opening}, {"activity", b.Activity}, {"payouts", b.Payouts}, {"closing", b.Closing}} {
			add(map[string]string{"record": "balance", "kind": part.kind, "currency": b.Currency, "net": Major(part.amount, b.Currency)})
		}
	}
	for _, c := range r.Categories {
		add(map[string]string{
			"record": "total", "kind": c.Category, "currency": c.Currency, "count": count(c.Count), "amount": Major(c.Amount, c.Currency),
			"fee": Major(c.Fee, c.Currency), "net": Major(c.Net, c.Currency),
		})
	}
	for _, d := range r.Days {
		add(map[string]string{
			"record": "day", "day": d.Day, "kind": d.Category, "currency": d.Currency, "count": count(d.Count),
			"amount": Major(d.Amount, d.Currency), "fee": Major(d.Fee, d.Currency), "net": Major(d.Net, d.Currency),
		})
	}
	for _, s := range r.Sides {
		add(map[string]string{"record": "ours", "kind": s.Family, "currency": s.Currency, "amount": Major(s.Ours, s.Currency)})
		add(map[string]string{"record": "theirs", "kind": s.Family, "currency": s.Currency, "amount": Major(s.Theirs, s.Currency)})
	}
	for _, p := range r.Payouts {
		add(map[string]string{
			"record": "payout", "id": p.ID, "currency": p.Currency, "count": count(p.Rows), "amount": Major(p.Amount, p.Currency),
			"net": Major(p.RowsNet, p.Currency), "status": p.Status, "occurred_at": p.Created.UTC().Format(time.RFC3339),
		})
	}
	for _, i := range r.Identities {
		status := "holds"
		if !i.Holds {
			status = "broken"
		}
		add(map[string]string{
			"record": "identity", "kind": i.Name, "currency": i.Currency, "amount": Major(i.Left, i.Currency),
			"net": Major(i.Right, i.Currency), "status": status,
		})
	}
	for _, p := range r.Pending {
		add(map[string]string{
			"record": "pending", "kind": p.Kind, "id": p.About, "currency": p.Currency, "amount": Major(p.Amount, p.Currency),
			"occurred_at": p.OccurredAt.UTC().Format(time.RFC3339), "why": p.Why,
		})
	}
	for _, i := range r.Exceptions {
		cells := map[string]string{
			"record": "exception", "kind": i.Kind, "id": i.About, "status": i.Status, "age_hours": count(i.AgeHours), "owner": i.Owner,
			"occurred_at": i.OccurredAt.UTC().Format(time.RFC3339), "why": i.Why, "note": i.Note,
		}
		if i.BookingID != nil {
			cells["booking_id"] = i.BookingID.String()
		}
		cells["currency"], cells["amount"] = i.money()
		add(cells)
	}
	for _, u := range r.Unchecked {
		add(map[string]string{"record": "not_checked", "why": u})
	}
	return all
}

// money is an item's currency and amount in major units, or nothing.
func (i Item) money() (currency, amount string) {
	if i.Amount == nil || i.Currency == nil {
		return "", ""
	}
	return *i.Currency, Major(*i.Amount, *i.Currency)
}

// WriteTable writes the report for people at a terminal.
func (r Report) WriteTable(w io.Writer) error {
	t := &table{w: w}
	t.line("Reconciliation of %s to %s (the last day excluded), days of %s", r.Period.From, r.Period.To, r.Period.Zone)
	t.line("%s to %s; as of %s; amounts in major units", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), r.AsOf.Format(time.RFC3339))
	switch {
	case !r.Complete:
		t.line("INCOMPLETE: the figures below are not all there is, and nothing was matched")
	case r.Open()+r.Broken() > 0:
		t.line("%d exceptions are open, %d identities are broken", r.Open(), r.Broken())
	default:
		t.line("Clean: every transaction is explained")
	}
	for _, why := range r.Incomplete {
		t.line("  %s", why)
	}
	for _, p := range r.SignedOff {
		t.line("  signed off by %s at %s: %s", p.SignedOffBy, p.SignedOffAt.UTC().Format(time.RFC3339), p.Reason)
	}
	balances := make([][]string, 0, len(r.Balances))
	for _, b := range r.Balances {
		balances = append(balances, []string{b.Currency, Major(b.Opening, b.Currency), Major(b.Activity, b.Currency), Major(b.Payouts, b.Currency), Major(b.Closing, b.Currency)})
	}
	t.rows("Balance at the provider", []string{"CURRENCY", "OPENING", "ACTIVITY", "PAYOUTS", "CLOSING"}, balances)
	totals := make([][]string, 0, len(r.Categories))
	for _, c := range r.Categories {
		totals = append(totals, []string{c.Currency, c.Category, strconv.FormatInt(c.Count, 10), Major(c.Amount, c.Currency), Major(c.Fee, c.Currency), Major(c.Net, c.Currency)})
	}
	t.rows("The provider's transactions, in the currency of their settlement", []string{"CURRENCY", "CATEGORY", "COUNT", "GROSS", "FEE", "NET"}, totals)
	sides := make([][]string, 0, len(r.Sides))
	for _, s := range r.Sides {
		sides = append(sides, []string{s.Currency, s.Family, Major(s.Ours, s.Currency), Major(s.Theirs, s.Currency), Major(s.Difference, s.Currency)})
	}
	t.rows("Ours and theirs, in the currency that customers were shown", []string{"CURRENCY", "WHAT", "OURS", "THEIRS", "DIFFERENCE"}, sides)
	var broken [][]string
	for _, i := range r.Identities {
		if !i.Holds {
			broken = append(broken, []string{i.Currency, i.Name, Major(i.Left, i.Currency), Major(i.Right, i.Currency)})
		}
	}
	t.line("\n%d of %d identities hold", len(r.Identities)-len(broken), len(r.Identities))
	t.rows("Broken identities", []string{"CURRENCY", "IDENTITY", "LEFT", "RIGHT"}, broken)
	pending := make([][]string, 0, len(r.Pending))
	for _, p := range r.Pending {
		pending = append(pending, []string{p.Kind, p.About, Major(p.Amount, p.Currency), p.Currency, p.OccurredAt.UTC().Format(time.RFC3339), p.Why})
	}
	t.rows("Pending: not judged yet", []string{"WHAT", "ID", "AMOUNT", "CURRENCY", "SINCE", "WHY"}, pending)
	t.rows("Exceptions", ItemHeader(), ItemRows(r.Exceptions))
	for _, u := range r.Unchecked {
		t.line("not checked: %s", u)
	}
	return t.err
}

// ItemHeader and ItemRows are exceptions as a table.
func ItemHeader() []string {
	return []string{"NO", "KIND", "ABOUT", "AMOUNT", "CURRENCY", "AGE", "STATUS", "OWNER", "WHY", "NOTE"}
}

// ItemRows are the lines under ItemHeader.
func ItemRows(items []Item) [][]string {
	rows := make([][]string, 0, len(items))
	for _, i := range items {
		currency, amount := i.money()
		rows = append(rows, []string{
			strconv.FormatInt(i.ID, 10), i.Kind, i.About, amount, currency, fmt.Sprintf("%dh", i.AgeHours), i.Status, i.Owner, i.Why,
			orElse(i.Note, i.SignOffReason),
		})
	}
	return rows
}

// table writes lines until one fails.
type table struct {
	w   io.Writer
	err error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format+"\n", args...)
	}
}

// rows writes a table under its title, or nothing if it has no row.
func (t *table) rows(title string, header []string, rows [][]string) {
	if len(rows) == 0 || t.err != nil {
		return
	}
	t.line("\n%s", title)
	if t.err == nil {
		t.err = cli.PrintTable(t.w, header, rows)
	}
}
