package domain

import "slices"

// EffectKind is what an outbox row makes happen.
type EffectKind string

// The kinds of effects; each is its own River queue.
const (
	EffectCharge  EffectKind = "charge"
	EffectCancel  EffectKind = "cancel"
	EffectRefund  EffectKind = "refund"
	EffectRefresh EffectKind = "refresh"
	EffectPublish EffectKind = "publish"
)

// EffectStatus is where an effect stands.
type EffectStatus string

// The states of an effect.
const (
	EffectPending   EffectStatus = "pending"
	EffectDone      EffectStatus = "done"
	EffectNotNeeded EffectStatus = "not_needed"
	EffectInDoubt   EffectStatus = "in_doubt"  // the reconciler's
	EffectParked    EffectStatus = "parked"    // needs a person
	EffectDiscarded EffectStatus = "discarded" // a person's decision, with a reason
)

// Finished tells whether nothing more will happen for the effect.
func (s EffectStatus) Finished() bool {
	return slices.Contains([]EffectStatus{EffectDone, EffectNotNeeded, EffectDiscarded}, s)
}

// Job arguments hold an id only: whatever else matters is read from the rows when the job runs. River stores them as
// JSON; golden tests guard the shape, since rows written by an older build must still be understood.
type (
	// ChargeArgs carries a charge effect.
	ChargeArgs struct {
		EffectID EffectID `json:"effect_id"`
	}
	// CancelArgs carries a cancel effect, the fence.
	CancelArgs struct {
		EffectID EffectID `json:"effect_id"`
	}
	// RefundArgs carries a refund effect.
	RefundArgs struct {
		EffectID EffectID `json:"effect_id"`
	}
	// PublishArgs carries an event.
	PublishArgs struct {
		EffectID EffectID `json:"effect_id"`
	}
)

// Kind names the job for River.
func (ChargeArgs) Kind() string { return string(EffectCharge) }

// Kind names the job for River.
func (CancelArgs) Kind() string { return string(EffectCancel) }

// Kind names the job for River.
func (RefundArgs) Kind() string { return string(EffectRefund) }

// Kind names the job for River.
func (PublishArgs) Kind() string { return string(EffectPublish) }
