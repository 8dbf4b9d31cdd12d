package outbox

import (
	"strings"

	"holdfast/domain"
)

// Refusal is why an act was refused, as a word that stays the same.
type Refusal string

// The refusals.
const (
	RefusedIncomplete   Refusal = "act_incomplete"             // nobody, or no reason, stands behind it
	RefusedUnconfirmed  Refusal = "act_unconfirmed"            // whoever was to confirm it did not
	RefusedFinished     Refusal = "effect_finished"            // there is nothing left to do
	RefusedChanged      Refusal = "effect_changed"             // it is not as it was shown: somebody was first, or it moved by itself
	RefusedInapplicable Refusal = "act_not_applicable"         // the effect's kind or state does not allow it
	RefusedUnproved     Refusal = "no_money_proof"             // it could still take money
	RefusedNothingSeen  Refusal = "nothing_to_adopt"           // the provider shows nothing that would settle it
	RefusedUnavailable  Refusal = "not_configured"             // this process has no provider, or no broker
	RefusedSamePerson   Refusal = "second_person_needed_other" // whoever asked does not approve
	RefusedSecondPerson Refusal = "second_person_needed"       // it lets so much move that somebody else has to approve it
	RefusedDecided      Refusal = "request_decided"
	RefusedExpired      Refusal = "request_expired"
	RefusedOtherRun     Refusal = "run_differs" // the id is another run's
	RefusedRefund       Refusal = "refund_refused"
	RefusedUnpausable   Refusal = "kind_not_pausable"
)

// RefusedError says why an operator's act was refused. Nothing was changed and nothing was recorded.
type RefusedError struct {
	Reason string  // in plain words: what, why, and what to do instead
	Code   Refusal // may be empty
	By     Actor   // who was first, where somebody was
	At     *domain.Instant
}

func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Demand refuses an act that nobody, or no reason, stands behind.
func Demand(actor Actor, reason string) error {
	if strings.TrimSpace(string(actor)) == "" {
		return &RefusedError{Code: RefusedIncomplete, Reason: "it must be known who does this"}
	}
	if strings.TrimSpace(reason) == "" {
		return &RefusedError{Code: RefusedIncomplete, Reason: "a reason is needed; it is kept with what was done"}
	}
	return nil
}
