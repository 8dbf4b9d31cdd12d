package payments

import (
	"context"
	"errors"

	"holdfast/domain"
)

// ErrUnread says that the provider could not be read, so that nothing was learned.
var ErrUnread = errors.New("the provider could not be read")

// ProviderSide is what the provider shows of a booking's money now, in words fit for people and logs.
type ProviderSide struct {
	AsOf     domain.Instant `json:"as_of"` // when the reading began
	IntentID string         `json:"intent_id,omitempty"`
	Intent   string         `json:"intent,omitempty"` // its status, the provider's word; empty: there is none, or none that is ours
	Charges  []ProviderFact `json:"charges"`
	Refunds  []ProviderFact `json:"refunds"`
	Says     string         `json:"says"` // in plain words: what that means
}

// ProviderFact is a charge or refund of the provider's.
type ProviderFact struct {
	ID     string       `json:"id"`
	Status string       `json:"status"`
	Amount domain.Money `json:"amount"`
	Ours   bool         `json:"ours"` // it carries an id of ours; else it was made by hand
}

// Inspect reads the provider's side of a booking's money. It settles nothing. ErrUnread (wrapped) means that nothing was learned.
func (p *Payments) Inspect(ctx context.Context, id domain.BookingID) (ProviderSide, error) {
	return ProviderSide{}, errors.New("not built")
}
