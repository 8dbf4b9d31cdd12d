package operator

import (
	"errors"
	"fmt"

	"holdfast/domain"
	"holdfast/outbox"
)

// Acts lists every act.
func Acts() []Act { return []Act{Replay, Republish, Resolve, Refund, Discard} }

// choices tells of every act whether an effect's kind and state allow it.
func choices(e outbox.Effect) []Choice {
	all := make([]Choice, 0, len(Acts()))
	for _, act := range Acts() {
		choice := Choice{Act: act}
		var refused *outbox.RefusedError
		if errors.As(allowed(act, e), &refused) {
			choice.Why = refused.Reason
		}
		choice.Allowed = refused == nil
		all = append(all, choice)
	}
	return all
}

// allowed returns nil, or a *outbox.RefusedError that says why an effect's kind and state forbid an act, and what to do instead. The
// table of it is published in docs/operators.md.
func allowed(act Act, e outbox.Effect) error {
	no := func(code outbox.Refusal, format string, args ...any) error {
		return &outbox.RefusedError{Code: code, Reason: fmt.Sprintf(format, args...)}
	}
	switch act {
	case Replay:
		_, err := outbox.Replayable(e)
		return err
	case Republish:
		return outbox.Republishable(e)
	case Resolve:
		switch {
		case !money(e.Kind):
			return no(outbox.RefusedInapplicable, "a %s concerns no money: there is nothing at the provider to adopt", e.Kind)
		case e.Status.Finished():
			return no(outbox.RefusedFinished, "the %s is %s: there is nothing left to settle", e.Kind, e.Status)
		}
		return nil
	case Refund:
		if e.Kind != domain.EffectCharge || e.Status != domain.EffectDone {
			return no(outbox.RefusedInapplicable, "money is given back of a booking whose charge is done, not of a %s that is %s", e.Kind, e.Status)
		}
		return nil
	case Discard:
		return outbox.Discardable(e)
	default:
		return &domain.ValidationError{Field: "act", Reason: fmt.Sprintf("there is no act %q", act)}
	}
}
