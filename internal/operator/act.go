package operator

import (
	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
)

// Act is something that a person can do; each is a permission of its own (clients.Scope "operator:" and its name).
type Act string

// The acts.
const (
	Replay    Act = "replay"    // an effect: let it happen now, under its own keys
	Republish Act = "republish" // an event that is done: send it to the stream once more, under its own id
	Resolve   Act = "resolve"   // a charge, cancel or refund: read the provider and settle what it shows
	Refund    Act = "refund"    // a booking: give money back
	Discard   Act = "discard"   // a parked effect: it will never happen
)

// Target is what an act is done to: an effect, or, of Refund, a booking.
type Target struct {
	Effect  domain.EffectID
	Booking domain.BookingID
}

// Preview is what an act would do now.
type Preview struct {
	Act          Act                    `json:"act"`
	Effect       *Row                   `json:"effect,omitempty"`
	Seen         string                 `json:"seen"`               // for Order.Seen: the act is refused if something has moved since
	Provider     *payments.ProviderSide `json:"provider,omitempty"` // what the provider shows now; nil: the act concerns no money
	Unread       string                 `json:"unread,omitempty"`   // why the provider could not be read
	Allowed      bool                   `json:"allowed"`
	Refusal      string                 `json:"refusal,omitempty"` // why not, and what to do instead
	Would        string                 `json:"would,omitempty"`   // in plain words: what would happen, and what it means for the money
	Money        *domain.Money          `json:"money,omitempty"`   // that the act lets move
	SecondPerson bool                   `json:"second_person"`     // somebody else has to approve it
}

// Order is an act as a person wants it done.
type Order struct {
	Act    Act
	On     Target
	By     outbox.Actor
	Reason string
	Seen   string // of the preview; empty: as the effect stands when the order is read, and of a booking whatever is left then
	Amount int64  // of Refund, minor units; 0: all that is left

	Category string // of Refund: the provider's word for it (payments.RefundRequest); may be empty
}

// Result is an accepted act.
type Result struct {
	ActionID  uuid.UUID         `json:"action_id"` // its row in operator_actions
	Act       Act               `json:"act"`
	EffectID  *domain.EffectID  `json:"effect_id,omitempty"`
	BookingID domain.BookingID  `json:"booking_id"`
	Kind      domain.EffectKind `json:"kind,omitempty"`
	Said      string            `json:"said"` // in plain words: what has happened and what comes next
	Before    outbox.Snapshot   `json:"before"`
	After     outbox.Snapshot   `json:"after"`
	Request   *Request          `json:"request,omitempty"` // it waits for a second person; nothing else has happened
	Ack       *Ack              `json:"ack,omitempty"`     // of Republish

	Refund *payments.RefundDecision `json:"-"` // of Refund, when it was refused, too
}

// Ack is what the stream said to a republished event.
type Ack struct {
	Stream   string `json:"stream"`
	Sequence uint64 `json:"sequence"`
	Kept     bool   `json:"kept"` // stored anew; false: the stream had it, and dropped the repeat
}
