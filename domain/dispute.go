package domain

import (
	"slices"
	"strings"
)

// DisputeStatus is the provider's word for where a dispute stands. Others than these may come: such a dispute is open, and
// counts as one that takes money.
type DisputeStatus string

// The statuses that are known here. An inquiry (warning) takes no money; it may escalate to a dispute that does.
const (
	DisputeWarningNeedsResponse DisputeStatus = "warning_needs_response"
	DisputeWarningUnderReview   DisputeStatus = "warning_under_review"
	DisputeWarningClosed        DisputeStatus = "warning_closed"
	DisputeNeedsResponse        DisputeStatus = "needs_response"
	DisputeUnderReview          DisputeStatus = "under_review"
	DisputeWon                  DisputeStatus = "won"  // the money comes back
	DisputeLost                 DisputeStatus = "lost" // it does not
)

// DisputeStatuses lists every status that is known here.
func DisputeStatuses() []DisputeStatus {
	return []DisputeStatus{
		DisputeWarningNeedsResponse, DisputeWarningUnderReview, DisputeWarningClosed,
		DisputeNeedsResponse, DisputeUnderReview, DisputeWon, DisputeLost,
	}
}

// Known tells whether the status is understood here.
func (s DisputeStatus) Known() bool { return slices.Contains(DisputeStatuses(), s) }

// Final tells whether the dispute is over. It never moves again.
func (s DisputeStatus) Final() bool {
	return s == DisputeWon || s == DisputeLost || s == DisputeWarningClosed
}

// Inquiry tells whether the bank only asks.
func (s DisputeStatus) Inquiry() bool { return strings.HasPrefix(string(s), "warning_") }

// Contests tells whether the dispute keeps its charge from being refunded: it is open, and no mere inquiry.
func (s DisputeStatus) Contests() bool { return !s.Final() && !s.Inquiry() }

// Dispute is where one dispute stands.
type Dispute struct {
	ID        string // the provider's
	Status    DisputeStatus
	Amount    Money
	Reason    string // the provider's word
	Withdrawn bool   // the provider has taken the money from us and not given it back
}

// DisputeMove is what a sight of a dispute changes.
type DisputeMove struct {
	Changed bool // the row is written
	Tell    bool // the status is new
	Denied  bool // the provider takes back what was final: nothing changes, and a person has to look
}

// SettleDispute decides what a sight of the provider's own object changes. known is nil where the dispute is new. The sight
// must not be older than known: what was final then is final, and everything else is as it was seen last.
func SettleDispute(known *Dispute, seen Dispute) DisputeMove {
	switch {
	case known == nil:
		return DisputeMove{Changed: true, Tell: true}
	case known.Status.Final() && seen.Status != known.Status:
		return DisputeMove{Denied: true}
	}
	return DisputeMove{Changed: seen != *known, Tell: seen.Status != known.Status}
}
