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
	Tone             string // how the verdict is shown
}

// tone is how a verdict looks: something is wrong only where nobody can tell.
func tone(verdict string) string {
	switch verdict {
	case finance.VerdictIncomplete:
		return "problem"
	case finance.VerdictClean:
		return "said"
	}
	return "notice"
}

// statementLine is one line of the statement, with a figure for each currency.
type statementLine struct {
	Name, Means string
	Sum         bool
	Cells       []string
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
		OpenCount: r.Open(), BrokenCount: r.Broken(), Blank: len(r.Categories) == 0, Over: !r.To.After(r.AsOf), Tone: tone(r.Verdict()),
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
	currencies, all := r.Statement()
	for _, l := range all {
		line := statementLine{Name: l.Name, Means: l.Means, Sum: l.Sum}
		for i, amount := range l.Amounts {
			line.Cells = append(line.Cells, figure(amount, currencies[i]))
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
