package finance

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a report comes to.
const (
	VerdictClean      = "clean"      // the period is over, was read whole, and every transaction is explained
	VerdictExceptions = "exceptions" // something is left to explain
	VerdictUnfinished = "unfinished" // all that was listed is explained, and the period is not over
	VerdictIncomplete = "incomplete" // nobody can tell
)

// Verdict is clean only where everything was read, the period is over, and nothing is left to explain.
func (r Report) Verdict() string {
	switch {
	case !r.Complete:
		return VerdictIncomplete
	case r.Open()+r.Broken() > 0:
		return VerdictExceptions
	case len(r.Incomplete) > 0:
		return VerdictUnfinished
	default:
		return VerdictClean
	}
}

// Says is the verdict in a sentence.
func (r Report) Says() string {
	switch r.Verdict() {
	case VerdictIncomplete:
		if r.early() {
			return "INCOMPLETE: there is nothing to tell yet."
		}
		if r.PayoutsUnread {
			said := "every other transaction is explained"
			if r.Open()+r.Broken() > 0 {
				said = r.left()
			}
			return "INCOMPLETE: payouts were not in what was read, so that neither they nor the balances could be checked. All else was compared: " + said + "."
		}
		return "INCOMPLETE: not all of the provider's books were read. What is below is not all there is; nothing new was compared, and nobody is accused of anything."
	case VerdictExceptions:
		return "OPEN: " + r.left() + "."
	case VerdictUnfinished:
		return "SO FAR CLEAN: every transaction up to then is explained."
	default:
		return "CLEAN: every transaction of the period is explained."
	}
}

// left is what is left to explain.
func (r Report) left() string {
	said := countOf(r.Open(), "exception is", "exceptions are") + " open"
	if r.Broken() > 0 {
		said += ", and " + countOf(r.Broken(), "check does not hold", "checks do not hold")
	}
	return said
}

// payoutsUnread is why a report is incomplete of which all but the payouts was read.
func payoutsUnread(gaps []Window) string {
	return "the payouts of " + spoken(gaps) + " were not read, and the report of all activity has none"
}

// notBegun is why a report of what is to come is incomplete: no reading and no file helps.
const notBegun = "the period has not begun, or not long enough ago to be read"

func (r Report) early() bool { return slices.Contains(r.Incomplete, notBegun) }

// Next is what a person does about the verdict.
func (r Report) Next() string {
	p := r.Period
	of := fmt.Sprintf("--from %s --to %s --zone %s", p.From, p.To, p.Zone)
	switch r.Verdict() {
	case VerdictIncomplete:
		if r.early() {
			return "Nothing yet. Run this once the period has begun."
		}
		if r.PayoutsUnread {
			return "Import the provider's report payouts.itemized of the same days: reconciler import FILE " + of
		}
		return "Run this again: the provider's books are read on from where the reading stopped (reconciler run does so by itself). Or import the provider's report of the period: reconciler import FILE " + of
	case VerdictExceptions:
		return "Have each exception explained, or sign it off with a reason, on its page or by: reconciler exceptions sign-off NO --reason TEXT"
	case VerdictUnfinished:
		return "Run this again once the period is over."
	}
	switch {
	case r.Signed():
		return "Nothing: it is signed off."
	case len(r.SignedOff) > 0:
		return "Sign the rest off: " + r.Unsigned() + ". On its page, or by: reconciler sign-off --from DAY --to DAY --zone " + p.Zone + " --reason TEXT"
	}
	return "Sign the period off, on its page or by: reconciler sign-off " + of + " --reason TEXT"
}

// unit says how the amounts below are to be read.
const unit = "Amounts are in the currency named, such as 12.50 EUR. The account's are as the provider has settled them: what was charged in another currency, it has converted."

// Name is a month's, or both of the days that are included.
func (p Period) Name() string {
	if from := day(p.From); from.Day() == 1 && from.AddDate(0, 1, 0).Equal(day(p.To)) {
		return from.Format("January 2006")
	}
	return p.From + " to " + p.lastDay()
}

// lastDay is the period's last day.
func (p Period) lastDay() string { return day(p.To).AddDate(0, 0, -1).Format(time.DateOnly) }

// spoken are windows for people: at most three of them.
func spoken(windows []Window) string {
	var parts []string
	for i, w := range windows {
		if i == 3 {
			parts = append(parts, countOf(len(windows)-3, "other stretch", "other stretches"))
			break
		}
		parts = append(parts, minuteOf(w.From)+" to "+minuteOf(w.To))
	}
	return strings.Join(parts, ", ")
}

func minuteOf(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
