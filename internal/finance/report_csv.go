package finance

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// CSVHeader are the columns of the report as CSV. Amounts are in major units with a point; times are RFC 3339 in UTC. What a column
// means depends on record: see docs/finance.md.
func CSVHeader() []string {
	return []string{
		"record", "period_from", "period_to", "zone", "as_of", "complete", "day", "kind", "id", "booking_id", "currency", "count", "amount", "fee", "net",
		"status", "age_hours", "owner", "occurred_at", "until", "why", "note", "what_to_do",
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
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	var all []map[string]string
	add := func(cells map[string]string) { all = append(all, cells) }
	add(map[string]string{"record": "about", "why": unit + " net is what moved the balance: amount less fee. A day is one of the zone; other times are UTC. period_to is the first day after the period."})
	verdict := map[string]string{"record": "verdict", "status": r.Verdict(), "count": strconv.Itoa(r.Open()), "why": r.Says(), "what_to_do": r.Next()}
	if r.ComparedAt != nil {
		verdict["occurred_at"] = at(*r.ComparedAt)
	}
	add(verdict)
	for _, why := range r.Incomplete {
		record := "incomplete"
		if r.Complete {
			record = "unfinished"
		}
		add(map[string]string{"record": record, "why": why})
	}
	for _, s := range r.SignedOff {
		add(map[string]string{"record": "signed_off", "kind": s.Days(), "owner": s.SignedOffBy, "occurred_at": at(s.SignedOffAt), "why": s.Reason})
	}
	currencies, statement := r.Statement()
	for i, code := range currencies {
		for _, l := range statement {
			add(map[string]string{"record": "balance", "kind": l.Kind, "currency": code, "net": Major(l.Amounts[i], code), "why": l.Means})
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
			"net": Major(p.RowsNet, p.Currency), "status": p.Status, "occurred_at": at(p.Created), "until": at(p.Arrival),
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
		cells := map[string]string{
			"record": "pending", "kind": p.Kind, "id": p.About, "booking_id": idText(p.BookingID), "currency": p.Currency, "amount": Major(p.Amount, p.Currency),
			"occurred_at": at(p.OccurredAt), "why": p.Why,
		}
		if p.Until != nil {
			cells["until"] = at(*p.Until)
		}
		add(cells)
	}
	for _, i := range r.Exceptions {
		cells := map[string]string{
			"record": "exception", "kind": i.Kind, "id": i.About, "booking_id": idText(i.BookingID), "status": i.Status, "age_hours": count(i.AgeHours),
			"owner": i.Owner, "occurred_at": at(i.OccurredAt), "why": i.Why, "note": orElse(i.Note, i.SignOffReason),
		}
		if i.Status == "open" {
			cells["what_to_do"] = KindOf(i.Kind).Next
		}
		cells["currency"], cells["amount"] = i.money()
		add(cells)
	}
	for _, u := range r.Unchecked {
		add(map[string]string{"record": "not_checked", "why": u})
	}
	return all
}

func idText(id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return id.String()
}

// money is an item's currency and amount in major units, or nothing.
func (i Item) money() (currency, amount string) {
	if i.Amount == nil || i.Currency == nil {
		return "", ""
	}
	return *i.Currency, Major(*i.Amount, *i.Currency)
}
