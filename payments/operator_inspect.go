package payments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bojanz/currency"

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
	r, err := p.read(ctx, id)
	return r.Side, err
}

func (r Reading) side() ProviderSide {
	s := ProviderSide{AsOf: domain.Instant(r.before.now), Charges: []ProviderFact{}, Refunds: []ProviderFact{}}
	if r.before.payment.ProviderIntentID == "" {
		s.Says = r.saysFound()
		return s
	}
	s.IntentID, s.Intent = r.intent.ID, shown(r.intent.Status)
	for _, c := range r.charges { // the intent's own: one that is not ours is not its charge
		s.Charges = append(s.Charges, ProviderFact{ID: c.ID, Status: word(c.Status, "succeeded", "pending", "failed"), Amount: c.Amount, Ours: true})
	}
	for _, x := range r.refunds {
		s.Refunds = append(s.Refunds, ProviderFact{
			ID: x.ID, Status: word(x.Status, "succeeded", "pending", "requires_action", "failed", "canceled"), Amount: x.Amount, Ours: x.RefundID != "",
		})
	}
	s.Says = strings.Join(slices.DeleteFunc([]string{r.saysIntent(), r.saysDisagree(), r.saysRefunds()}, func(s string) bool { return s == "" }), " ")
	return s
}

// word passes a word of the provider's on if it is known; another may be anything.
func word(w string, known ...string) string {
	if slices.Contains(known, w) {
		return w
	}
	return "a status that is not known here"
}

// saysFound says what a listing means where no intent is committed.
func (r Reading) saysFound() string {
	closed := r.before.payment.Status.Closed()
	alive := slices.DeleteFunc(slices.Clone(r.found), func(i Intent) bool { return i.Status == IntentCanceled })
	switch {
	case r.before.last(domain.OpCreate) == nil:
		return "Nothing was ever sent to the provider for this booking: no money was taken."
	case len(alive) == 0 && closed:
		return "The provider lists nothing that could take money for this booking: none was taken, and none will be."
	case len(alive) == 0:
		return "The provider lists nothing that could take money for this booking: none was taken so far. A replay goes on under the same key."
	case closed:
		return fmt.Sprintf("The provider lists a payment intent for this booking that is not confirmed and never will be (%s): no money was taken. It is canceled by itself.", alive[0].ID)
	default:
		return fmt.Sprintf("The provider lists a payment intent for this booking that is not taken up here (%s, %s). Nothing is taken before it is taken up and confirmed.",
			alive[0].ID, shown(alive[0].Status))
	}
}

// saysIntent says what the intent and its charges mean.
func (r Reading) saysIntent() string {
	taken := r.taken()
	switch {
	case len(taken) > 1:
		return fmt.Sprintf("The provider shows %d succeeded charges of one intent: that must not be. Look at it in the provider's dashboard.", len(taken))
	case len(taken) == 1:
		return fmt.Sprintf("The provider shows the charge succeeded: %s taken once.", ForPeople(taken[0].Amount))
	case slices.ContainsFunc(r.charges, func(c ProviderCharge) bool { return c.Status == ChargePending }):
		return "The provider shows a charge that is still pending: whether it takes the money is not decided."
	}
	switch r.intent.Status {
	case IntentSucceeded:
		return fmt.Sprintf("The provider shows the payment succeeded: %s taken once.", ForPeople(domain.Money{Amount: r.intent.AmountReceived, Currency: r.intent.Amount.Currency}))
	case IntentCanceled:
		return "The provider shows the payment canceled, and no charge of it: no money was taken, and none can be."
	case IntentProcessing:
		return "The provider is still processing the payment: whether it takes the money is not decided."
	case IntentRequiresAction:
		return "The provider waits for the customer to authenticate the payment: no money was taken so far."
	case IntentRequiresConfirmation:
		return "The provider shows the payment not confirmed: no money was taken so far. A confirm may still be on its way."
	case IntentRequiresPaymentMethod:
		if declined(r.before, r.intent) {
			return "The provider shows the card declined: no money was taken."
		}
		return "The provider shows the payment without a card: no money was taken so far. A confirm may still be on its way."
	default:
		return "The provider shows the payment in a state that is not known here: whether money was taken is open."
	}
}

// saysDisagree says what is still to be settled of what the provider shows.
func (r Reading) saysDisagree() string {
	ours := r.before.payment.Status
	total := r.before.charge().Total
	taken := r.taken()
	switch {
	case len(taken) == 1 && taken[0].Amount != total:
		return fmt.Sprintf("That is another sum than was asked for (%s): look at it in the provider's dashboard.", ForPeople(total))
	case r.fact == domain.FactSucceeded && ours != domain.PaymentSucceeded:
		return "Here that is not settled yet: a replay or a resolve finds it and settles it; no money moves."
	case r.fact == domain.FactCanceled && !ours.Closed():
		return "Here that is not settled yet: a resolve settles it; no money moves."
	case r.fact != domain.FactSucceeded && ours == domain.PaymentSucceeded:
		return "Here it is written down as taken: that must not be. Look at it in the provider's dashboard."
	default:
		return ""
	}
}

// saysRefunds adds up what went back.
func (r Reading) saysRefunds() string {
	var back, pending domain.Money
	failed := 0
	for _, x := range r.refunds {
		switch {
		case !x.alive():
			failed++
		case x.Status == RefundSucceeded:
			back = domain.Money{Amount: back.Amount + x.Amount.Amount, Currency: x.Amount.Currency}
		default:
			pending = domain.Money{Amount: pending.Amount + x.Amount.Amount, Currency: x.Amount.Currency}
		}
	}
	var parts []string
	if back.Amount > 0 {
		parts = append(parts, ForPeople(back)+" went back")
	}
	if pending.Amount > 0 {
		parts = append(parts, ForPeople(pending)+" is on its way back")
	}
	switch {
	case failed == 1:
		parts = append(parts, "one refund failed")
	case failed > 1:
		parts = append(parts, fmt.Sprintf("%d refunds failed", failed))
	}
	switch {
	case len(parts) > 0:
		return "Of its refunds: " + strings.Join(parts, ", ") + "."
	case r.fact == domain.FactSucceeded:
		return "It lists no refund."
	default:
		return ""
	}
}

// ForPeople writes an amount as people do: 25.00 EUR.
func ForPeople(m domain.Money) string {
	a, err := currency.NewAmountFromInt64(m.Amount, m.Currency)
	if err != nil {
		return m.String() + " (minor units)"
	}
	return a.Number() + " " + m.Currency
}
