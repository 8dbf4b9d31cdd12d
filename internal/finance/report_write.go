package finance

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/cli"
)

// WriteTable writes the report for people at a terminal.
func (r Report) WriteTable(w io.Writer) error {
	t := &table{w: w}
	t.line("Our books and the provider's, %s to %s, both days included; days of %s", r.Period.From, r.Period.lastDay(), r.Period.Zone)
	t.line("From %s to before %s, as of %s", cli.When(r.From), cli.When(r.To), cli.When(r.AsOf))
	t.text(unit)
	t.line("")
	t.text(r.Says())
	for _, why := range r.Incomplete {
		t.text("  " + why)
	}
	for _, p := range r.SignedOff {
		t.text(fmt.Sprintf("Signed off: %s, by %s at %s: %s", p.Days(), p.SignedOffBy, cli.When(p.SignedOffAt), p.Reason))
	}
	t.text("What to do: " + r.Next())
	r.writeFigures(t)
	r.writePayouts(t)
	var broken [][]string
	for _, i := range r.Identities {
		if !i.Holds {
			broken = append(broken, []string{i.Currency, i.Name, Major(i.Left, i.Currency), Major(i.Right, i.Currency)})
		}
	}
	if len(r.Identities) > 0 {
		t.line("\nChecks, to the unit: %d of %d hold", len(r.Identities)-len(broken), len(r.Identities))
	}
	t.rows("Checks that do not hold", []string{"CURRENCY", "THIS = THAT", "THIS", "THAT"}, broken)
	r.writePending(t)
	if len(r.Exceptions) > 0 {
		t.line("\nExceptions: what does not match")
		if t.err == nil {
			t.err = WriteItems(w, r.Exceptions)
		}
	}
	if len(r.Unchecked) > 0 {
		t.line("")
	}
	for _, u := range r.Unchecked {
		t.text("Not checked: " + u)
	}
	return t.err
}

// writeFigures are the sums.
func (r Report) writeFigures(t *table) {
	currencies, statement := r.Statement()
	var rows [][]string
	for _, l := range statement {
		row := []string{l.Name}
		for i, code := range currencies {
			row = append(row, Major(l.Amounts[i], code))
		}
		rows = append(rows, append(row, l.Means))
	}
	if len(currencies) > 0 {
		t.rows("The account at the provider: a minus takes from its balance", append(append([]string{"LINE"}, currencies...), ""), rows)
	}
	rows = nil
	for _, c := range r.Categories {
		rows = append(rows, []string{c.Currency, people(c.Category), strconv.FormatInt(c.Count, 10), Major(c.Amount, c.Currency), Major(c.Fee, c.Currency), Major(c.Net, c.Currency)})
	}
	t.rows("The same by the provider's categories: net is gross less fee", []string{"CURRENCY", "CATEGORY", "COUNT", "GROSS", "FEE", "NET"}, rows)
	rows = nil
	for _, s := range r.Sides {
		rows = append(rows, []string{s.Currency, s.Family, Major(s.Ours, s.Currency), Major(s.Theirs, s.Currency), Major(s.Difference, s.Currency)})
	}
	t.rows("Our books and the provider's, in the currencies that customers were shown", []string{"CURRENCY", "WHAT", "OURS", "PROVIDER'S", "DIFFERENCE"}, rows)
	if len(rows) > 0 {
		t.text("What differs is explained by the exceptions and by what is pending, or the other side has it in another period.")
	}
}

func (r Report) writePayouts(t *table) {
	var rows [][]string
	for _, p := range r.Payouts {
		rows = append(rows, []string{
			p.ID, p.Currency, Major(p.Amount, p.Currency), Major(p.RowsNet, p.Currency), strconv.FormatInt(p.Rows, 10), people(p.Status),
			p.Created.UTC().Format(time.DateOnly), p.Arrival.UTC().Format(time.DateOnly),
		})
	}
	t.rows("Payouts to the bank, and what went out with each", []string{"PAYOUT", "CURRENCY", "AMOUNT", "SUM OF ITS ROWS", "ROWS", "STATE", "SENT", "ARRIVES"}, rows)
}

func (r Report) writePending(t *table) {
	var rows []cli.Row
	for i, p := range r.Pending {
		until, why := "once more is read", p.Why
		if p.Until != nil {
			until = minuteOf(*p.Until)
		}
		if i > 0 && why == r.Pending[i-1].Why {
			why = "why: as above"
		}
		rows = append(rows, cli.Row{
			Cells: cells(people(p.Kind), Major(p.Amount, p.Currency), p.Currency, minuteOf(p.OccurredAt), until),
			Below: cells(why, about(p.Kind, p.About, idText(p.BookingID))),
		})
	}
	if len(rows) > 0 && t.err == nil {
		t.line("\nPending: nobody can judge these yet. They are no exceptions; they settle, or become some")
		if t.err == nil {
			t.err = cli.IO{Out: t.w}.Table([]string{"WHAT", "AMOUNT", "CURRENCY", "SINCE", "UNTIL"}, rows)
		}
	}
}

// WriteItems writes exceptions as a table, and what their kinds mean.
func WriteItems(w io.Writer, items []Item) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "none")
		return err
	}
	var kinds []string
	rows := make([]cli.Row, 0, len(items))
	for _, i := range items {
		currency, amount := i.money()
		row := cli.Row{
			Cells: cells(strconv.FormatInt(i.ID, 10), people(i.Kind), amount, currency, Age(i.Age), minuteOf(i.OccurredAt), i.Owner, people(i.Status)),
			Below: cells(i.Why, about(i.Kind, i.About, idText(i.BookingID))),
		}
		if i.Note != "" {
			row.Below = append(row.Below, cli.Cell{Text: "note: " + i.Note})
		}
		if i.SignOffReason != "" {
			row.Below = append(row.Below, cli.Cell{Text: "signed off by " + i.SignedOffBy + ": " + i.SignOffReason})
		}
		rows = append(rows, row)
		if i.Status == "open" && !slices.Contains(kinds, i.Kind) {
			kinds = append(kinds, i.Kind)
		}
	}
	t := &table{w: w, err: cli.IO{Out: w}.Table([]string{"NO", "KIND", "AMOUNT", "CURRENCY", "AGE", "HAPPENED", "OWNER", "STATE"}, rows)}
	if len(kinds) > 0 {
		t.line("\nWhat they mean, and what to do")
	}
	for _, k := range Kinds() {
		if slices.Contains(kinds, k.Name) {
			t.line("%s", k.Words())
			t.text("    " + k.Means)
			t.text("    " + k.Next)
		}
	}
	return t.err
}

func about(kind, id, booking string) string {
	text := AboutWhat(kind, id) + " " + id
	if booking != "" {
		text += ", booking " + booking
	}
	return text
}

func cells(texts ...string) []cli.Cell {
	all := make([]cli.Cell, len(texts))
	for i, text := range texts {
		all[i] = cli.Cell{Text: text}
	}
	return all
}

// people is a word of ours or of the provider's for people: in_transit is in transit.
func people(word string) string { return strings.ReplaceAll(word, "_", " ") }

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

// text writes a sentence, broken where a line is full; what it is indented by, all of its lines are.
func (t *table) text(s string) {
	indent := s[:len(s)-len(strings.TrimLeft(s, " "))]
	for _, line := range cli.Wrap(cli.Printable(s), cli.LineWidth-len(indent)) {
		t.line("%s%s", indent, line)
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
