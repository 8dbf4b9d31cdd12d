package console

import (
	"fmt"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/internal/finance"
)

// dayPlot is the days of a period in one currency: gross above the line, what is taken from it below, net as a curve.
type dayPlot struct {
	Currency      string
	Says          string
	Width, Height int
	Left, Zero    int
	Bars          []dayBar
	Net           string // the curve's points
	Days, Marks   []caption
	Rows          []dayRow
}

type dayBar struct {
	What                string
	X, Y, Width, Height int
}

type dayRow struct {
	Day                                       string
	Gross, Fees, Refunds, Disputes, Rest, Net string
}

const (
	dayPlotLeft   = 74
	dayPlotHeight = 260
)

// drawDays draws the days of one currency.
func drawDays(r finance.Report, code string) dayPlot {
	p := dayPlot{
		Currency: code, Width: plotWidth, Height: dayPlotHeight, Left: dayPlotLeft,
		Says: "Chart of daily gross, fees, refunds and net in " + code + ". The table below it has the numbers.",
	}
	at := map[string]*finance.Flow{}
	for _, d := range r.Days {
		if d.Currency != code {
			continue
		}
		if at[d.Day] == nil {
			at[d.Day] = &finance.Flow{}
		}
		at[d.Day].Add(d.Category, d.Amount, d.Fee, d.Net)
	}
	from, _ := time.Parse(time.DateOnly, r.Period.From) // the report has checked both
	to, _ := time.Parse(time.DateOnly, r.Period.To)
	var days []time.Time
	var most, least int64
	for day := from; day.Before(to); day = day.AddDate(0, 0, 1) {
		days = append(days, day)
		if t := at[day.Format(time.DateOnly)]; t != nil {
			most, least = max(most, t.Gross, t.Net), min(least, t.Net, t.Fees+t.Refunds)
		}
	}
	room := float64(p.Height - plotTop - plotFoot)
	y := func(amount int64) int { return plotTop + int(room*float64(most-amount)/float64(max(most-least, 1))) }
	p.Zero = y(0)
	p.Marks = append(p.Marks, caption{Y: p.Zero, Text: "0"})
	for _, amount := range []int64{most, least} {
		if at := y(amount); at < p.Zero-14 || at > p.Zero+14 {
			p.Marks = append(p.Marks, caption{Y: at, Text: compact(amount, code)})
		}
	}
	step := float64(p.Width-p.Left) / float64(len(days))
	var curve []string
	for i, day := range days {
		x, width := p.Left+int(step*float64(i)), max(1, int(step*0.7))
		t := at[day.Format(time.DateOnly)]
		if t == nil {
			t = &finance.Flow{}
		} else {
			p.Rows = append(p.Rows, dayRow{
				day.Format(time.DateOnly), figure(t.Gross, code), figure(t.Fees, code), figure(t.Refunds, code), figure(t.Disputes, code),
				figure(t.Other, code), figure(t.Net, code),
			})
		}
		p.bar("gross", x, width, p.Zero, y(t.Gross))
		p.bar("fees", x, width, p.Zero, y(t.Fees))
		p.bar("refunds", x, width, y(t.Fees), y(t.Fees+t.Refunds))
		curve = append(curve, fmt.Sprintf("%d,%d", x+width/2, y(t.Net)))
		if i%max(1, (len(days)+4)/5) == 0 {
			p.Days = append(p.Days, caption{X: x, Y: p.Height - 6, Text: day.Format("2 Jan")})
		}
	}
	p.Net = strings.Join(curve, " ")
	return p
}

// bar adds what is between two heights, if anything.
func (p *dayPlot) bar(what string, x, width, one, other int) {
	if one != other {
		p.Bars = append(p.Bars, dayBar{what, x, min(one, other), width, max(one, other) - min(one, other)})
	}
}

// compact is an amount for the margin of a plot: 25k.
func compact(amount int64, code string) string {
	whole, _, _ := strings.Cut(finance.Major(amount, code), ".")
	digits := strings.TrimPrefix(whole, "-")
	sign := map[bool]string{true: "−"}[strings.HasPrefix(whole, "-")]
	switch n := len(digits); {
	case n > 6:
		return sign + digits[:n-6] + "." + digits[n-6:n-5] + "M"
	case n > 4:
		return sign + digits[:n-3] + "k"
	}
	return sign + digits
}

// booked is an exception's amount; nil: it is about no money.
func booked(i finance.Item) *domain.Money {
	if i.Amount == nil || i.Currency == nil {
		return nil
	}
	return &domain.Money{Amount: *i.Amount, Currency: *i.Currency}
}
