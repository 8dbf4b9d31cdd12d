package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/bojanz/currency"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// formatting is how values are shown to people.
func formatting() template.FuncMap {
	return template.FuncMap{
		"root": func() string { return Root }, "money": money, "when": when, "ago": ago, "age": age, "pretty": pretty, "short": short,
		"effectName": effectName, "statusName": statusName, "actName": actName, "changes": changes, "thousands": thousands, "sentence": sentence,
		"instant": func(i domain.Instant) time.Time { return time.Time(i) },
		"moment": func(i *domain.Instant) *time.Time {
			if i == nil {
				return nil
			}
			t := time.Time(*i)
			return &t
		},
		"figure": figure, "booked": booked, "since": finance.Age, "aboutWhat": finance.AboutWhat,
		"labelled": label,
		"dry": func(l labelled) labelled {
			l.Dry = true
			return l
		},
		"words": func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "_", " ") },
	}
}

// labelled is a part of a page with its name for screen readers.
type labelled struct {
	Label   string
	Rows    []operator.Row
	Actions []outbox.Action
	Items   []operator.RunItem
	Dry     bool // nothing was done to the items yet
}

func label(name string, of any) labelled {
	l := labelled{Label: name}
	switch of := of.(type) {
	case []operator.Row:
		l.Rows = of
	case []outbox.Action:
		l.Actions = of
	case []operator.RunItem:
		l.Items = of
	}
	return l
}

// money shows an amount with its currency's digits.
func money(v any) string {
	var m domain.Money
	switch v := v.(type) {
	case domain.Money:
		m = v
	case *domain.Money:
		if v == nil {
			return "–"
		}
		m = *v
	default:
		return "–"
	}
	amount, err := currency.NewAmountFromInt64(m.Amount, m.Currency)
	if err != nil {
		return m.String() + " (minor units)"
	}
	whole, fraction, _ := strings.Cut(amount.Number(), ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "−", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + " " + whole[i:] // a thin space that does not break
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole + " " + m.Currency
}

// minor reads an amount as a person writes it, in the currency's major unit.
func minor(text, code string) (int64, error) {
	amount, err := currency.NewAmount(strings.ReplaceAll(text, ",", "."), code)
	if err != nil {
		return 0, err
	}
	digits, _ := currency.GetDigits(code)
	if !amount.RoundTo(digits, currency.RoundDown).Equal(amount) {
		return 0, fmt.Errorf("%s has %d digits after the point at most", code, digits)
	}
	return amount.Int64()
}

// when shows a moment in UTC, to the second.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// ago tells how far a moment is from now, by this process's clock.
func ago(t time.Time) string {
	d := time.Since(t)
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// age shows seconds as a person says them.
func age(seconds float64) string { return span(time.Duration(seconds * float64(time.Second))) }

func span(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{48 * time.Hour, "d"}, {2 * time.Hour, "h"}, {2 * time.Minute, "min"}} {
		if d >= unit.of {
			one := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "min": time.Minute}[unit.name]
			return fmt.Sprintf("%d %s", d/one, unit.name)
		}
	}
	return fmt.Sprintf("%d s", max(0, int(d/time.Second)))
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// short is the end of an id, which tells ids of one moment apart; the whole one is beside it.
func short(id fmt.Stringer) string {
	s := id.String()
	return "…\u2060" + s[max(0, len(s)-8):] // a joiner: not broken after the dots
}

func pretty(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	text, _ := json.MarshalIndent(v, "", "  ") // cannot fail: it was JSON
	return string(text)
}

func effectName(k domain.EffectKind) string {
	switch k {
	case domain.EffectCharge:
		return "Charge"
	case domain.EffectCancel:
		return "Cancel"
	case domain.EffectRefund:
		return "Refund"
	case domain.EffectRefresh:
		return "Refresh"
	case domain.EffectPublish:
		return "Event"
	default:
		return string(k)
	}
}

func statusName(s domain.EffectStatus) string { return strings.ReplaceAll(string(s), "_", " ") }

func actName(a operator.Act) string {
	s := string(a)
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// change is one member of an audit row that is not the same before and after.
type change struct{ Name, Before, After string }

// changes tells what an act has changed.
func changes(before, after json.RawMessage) []change {
	var b, a map[string]json.RawMessage
	if json.Unmarshal(before, &b) != nil || json.Unmarshal(after, &a) != nil {
		return nil
	}
	names := map[string]bool{}
	for name := range b {
		names[name] = true
	}
	for name := range a {
		names[name] = true
	}
	var all []change
	for _, name := range sorted(names) {
		was, is := plain(b[name]), plain(a[name])
		if was != is {
			all = append(all, change{strings.ReplaceAll(name, "_", " "), was, is})
		}
	}
	return all
}

func plain(raw json.RawMessage) string {
	var s string
	var m domain.Money
	switch {
	case json.Unmarshal(raw, &m) == nil && m.Currency != "":
		return money(m)
	case len(raw) == 0 || string(raw) == "null":
		return "–"
	case json.Unmarshal(raw, &s) == nil:
		return s
	default:
		return string(raw)
	}
}
