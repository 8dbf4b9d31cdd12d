package domain

import (
	"fmt"
	"strings"
	"time"
)

// RefundPolicy says how much of its money a customer who cancels gets back: the earlier, the more. Each step holds until
// so many hours before the booking's start, that very moment included; the first that still holds counts. After the last
// one, and with no step at all, nothing goes back. Hours are elapsed time: no clock change and no time zone moves a step.
type RefundPolicy []RefundStep

// RefundStep gives Percent back until HoursBefore the start.
type RefundStep struct {
	HoursBefore int `json:"hours_before"`
	Percent     int `json:"percent"`
}

// The bounds of a policy.
const (
	MaxRefundSteps       = 10
	MaxRefundHoursBefore = 24 * 366
)

// DefaultRefundPolicy is that of a resource for which nobody has said anything: everything until the start. Whoever
// forgets to say it keeps nobody's money.
func DefaultRefundPolicy() RefundPolicy { return RefundPolicy{{HoursBefore: 0, Percent: 100}} }

// Validate tells what is wrong with a policy, as a *ValidationError; nil: nothing.
func (p RefundPolicy) Validate() error {
	invalid := func(reason string) error { return &ValidationError{Field: "refund_policy", Reason: reason} }
	if len(p) > MaxRefundSteps {
		return invalid(fmt.Sprintf("at most %d steps", MaxRefundSteps))
	}
	for i, s := range p {
		switch {
		case s.HoursBefore < 0 || s.HoursBefore > MaxRefundHoursBefore:
			return invalid(fmt.Sprintf("hours before the start: 0 to %d", MaxRefundHoursBefore))
		case s.Percent < 0 || s.Percent > 100:
			return invalid("percent: 0 to 100")
		case i > 0 && (s.HoursBefore >= p[i-1].HoursBefore || s.Percent >= p[i-1].Percent):
			return invalid("the earliest step first: each has fewer hours and gives back less than the one before it")
		}
	}
	return nil
}

// String shows a policy as it is set, such as "48h=100 24h=50"; "none" if nothing is ever given back.
func (p RefundPolicy) String() string {
	steps := make([]string, 0, len(p))
	for _, s := range p {
		steps = append(steps, fmt.Sprintf("%dh=%d", s.HoursBefore, s.Percent))
	}
	if len(steps) == 0 {
		return "none"
	}
	return strings.Join(steps, " ")
}

// RefundTerm is what a policy gives back from one moment to another.
type RefundTerm struct {
	Percent int
	Until   time.Time // the last moment at which it holds; zero: for good
}

// Terms lists what the policy gives back for a booking that starts at start: the first holds now, each of the others follows
// on the one before it, and the last, which gives nothing, holds for good.
func (p RefundPolicy) Terms(start, now time.Time) []RefundTerm {
	var terms []RefundTerm
	for _, s := range p {
		until := start.Add(-time.Duration(s.HoursBefore) * time.Hour)
		if !now.After(until) && s.Percent > 0 {
			terms = append(terms, RefundTerm{Percent: s.Percent, Until: until})
		}
	}
	return append(terms, RefundTerm{})
}

// Of is the term's part of what was paid, a multiple of step: the least that the currency counts, in minor units. What does
// not come out even is rounded in the customer's favour, and never to more than was paid.
func (t RefundTerm) Of(paid Money, step int64) Money {
	whole := 100 * step
	part := (paid.Amount*int64(t.Percent) + whole - 1) / whole * step
	return Money{Amount: min(part, paid.Amount), Currency: paid.Currency}
}
