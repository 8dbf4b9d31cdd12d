package console

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"time"

	"holdfast/domain"
	"holdfast/internal/finance"
)

// monthPage is a period as finance reads it.
type monthPage struct {
	finance.Report

	Query            template.URL // the period, for links
	Earlier, Later   template.URL // the months before and after
	Currencies       []string
	Lines            []statementLine
	Plots            []dayPlot
	OpenCount, Other int // exceptions that are open, and that are signed off
	BrokenCount      int
	Blank            bool // nothing is stored of it
	Over             bool
	Signed           bool
}

// statementLine is one line of the statement, with a figure for each currency.
type statementLine struct {
	Name, Means string
	Sum         bool
	Cells       []string
}

// totals are the lines of one currency; parts of net are signed as they move the balance.
type totals struct{ opening, gross, fees, refunds, disputes, other, net, payouts, closing int64 }

func (t *totals) add(category string, amount, fee, net int64) {
	switch category {
	case "payout", "payout_reversal", "payout_failure":
		t.payouts += net
		return
	case "charge":
		t.gross += amount
	case "refund", "refund_failure":
		t.refunds += amount
	case "dispute", "dispute_reversal":
		t.disputes += amount
	default:
		t.other += amount
	}
	t.fees -= fee
	t.net += net
}

// month shows a period; without one, the last month that is over.
func (c *Console) month(v *visit) error {
	q := v.r.URL.Query()
	if !q.Has("from") && !q.Has("to") {
		return v.see("/finance?" + periodQuery(monthOf(time.Now().UTC(), -1, "UTC")))
	}
	r, err := c.config.Books.Report(v.r.Context(), period(q))
	if err != nil {
		return err
	}
	first, _ := time.Parse(time.DateOnly, r.Period.From) // the report has checked it
	page := monthPage{
		Report: r, Query: template.URL(periodQuery(r.Period)), //nolint:gosec // encoded, as the next two
		Earlier: template.URL(periodQuery(monthOf(first, -1, r.Period.Zone))), Later: template.URL(periodQuery(monthOf(first, 1, r.Period.Zone))), //nolint:gosec // likewise
		OpenCount: r.Open(), BrokenCount: r.Broken(), Blank: len(r.Categories) == 0, Over: !r.To.After(r.AsOf), Signed: len(r.SignedOff) > 0,
	}
	page.Other = len(r.Exceptions) - page.OpenCount
	page.Currencies, page.Lines = statement(r)
	for _, code := range page.Currencies {
		page.Plots = append(page.Plots, drawDays(r, code))
	}
	v.render(http.StatusOK, "month", "Month", page)
	return nil
}

// statement is the table of a period: a line for each figure, a column for each currency.
func statement(r finance.Report) (currencies []string, lines []statementLine) {
	var all []*totals
	at := map[string]*totals{}
	of := func(code string) *totals {
		if at[code] == nil {
			at[code] = &totals{}
			all, currencies = append(all, at[code]), append(currencies, code)
		}
		return at[code]
	}
	for _, b := range r.Balances {
		t := of(b.Currency)
		t.opening, t.closing = b.Opening, b.Closing
	}
	for _, c := range r.Categories {
		of(c.Currency).add(c.Category, c.Amount, c.Fee, c.Net)
	}
	for _, l := range []struct {
		name, means string
		sum         bool
		of          func(t *totals) int64
	}{
		{"Opening balance", "at the provider, when the period begins", true, func(t *totals) int64 { return t.opening }},
		{"Gross", "all charges, before fees", false, func(t *totals) int64 { return t.gross }},
		{"Fees", "what the provider has kept", false, func(t *totals) int64 { return t.fees }},
		{"Refunds", "given back to customers, less those that failed", false, func(t *totals) int64 { return t.refunds }},
		{"Disputes", "withdrawn by customers' banks, less those that were won", false, func(t *totals) int64 { return t.disputes }},
		{"Other", "anything else that moved the balance", false, func(t *totals) int64 { return t.other }},
		{"Net", "the sum of the five lines above", true, func(t *totals) int64 { return t.net }},
		{"Payouts", "sent to the bank, less those that came back", false, func(t *totals) int64 { return t.payouts }},
		{"Closing balance", "opening balance, net and payouts together", true, func(t *totals) int64 { return t.closing }},
	} {
		line := statementLine{Name: l.name, Means: l.means, Sum: l.sum}
		for i, t := range all {
			line.Cells = append(line.Cells, figure(l.of(t), currencies[i]))
		}
		lines = append(lines, line)
	}
	return currencies, lines
}

// monthCSV is the same period for a spreadsheet.
func (c *Console) monthCSV(v *visit) error {
	r, err := c.config.Books.Report(v.r.Context(), period(v.r.URL.Query()))
	if err != nil {
		return err
	}
	var out bytes.Buffer // half a file must not look whole
	if err := r.WriteCSV(&out); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	v.w.Header().Set("Content-Disposition", `attachment; filename="holdfast-`+r.Period.From+"-"+r.Period.To+`.csv"`)
	_, _ = out.WriteTo(v.w)
	return nil
}

// signOffMonth locks a period.
func (c *Console) signOffMonth(v *visit) error {
	p := period(v.r.PostForm)
	back := link{"/finance?" + periodQuery(p), "The period"}
	if err := reasoned(v.form("reason")); err != nil {
		return err.with(back)
	}
	_, err := c.config.Books.SignOffPeriod(v.r.Context(), p, v.actor(), v.form("reason"))
	var comparing *finance.ComparingError
	if errors.As(err, &comparing) {
		v.say("The books are compared once more. The period is then signed off, if nothing stands against it.")
		return v.see(back.Path)
	}
	if err != nil {
		return v.explain(explainBooks(err)).with(back)
	}
	v.say("The period is signed off. What differs from it later is listed as an exception.")
	return v.see(back.Path)
}

// figure is an amount without its currency, which stands at the head of its column.
func figure(amount int64, code string) string {
	text := money(domain.Money{Amount: amount, Currency: code})
	if len(text) > len(code)+1 && text[len(text)-len(code)-1:] == " "+code {
		return text[:len(text)-len(code)-1]
	}
	return text
}
