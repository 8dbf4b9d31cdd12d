package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/domain"
)

// Prompter reads what the provider asks of the customer.
type Prompter interface {
	// Action reads what the customer of an intent has to do at this moment. It makes one try and no second one, since
	// somebody is waiting. It returns ErrNoAction if the intent waits for nobody, and any other error if nothing was learned.
	Action(ctx context.Context, intentID string) (NextAction, error)
}

// NextAction is what the customer has to do before the provider takes the money. Whoever holds the client secret can
// confirm the intent: it goes to the customer who owns the booking, is never stored, and is asked for anew each time.
type NextAction struct {
	Type         ActionType
	URL          domain.Secret // of the bank's page; only for ActionRedirect
	ClientSecret domain.Secret
}

// ActionType is how the customer gets to the bank's check.
type ActionType string

// The types of actions.
const (
	ActionRedirect ActionType = "redirect_to_url" // open the URL; the bank sends the customer back to the return URL
	ActionSDK      ActionType = "use_stripe_sdk"  // hand the client secret to the provider's own library
)

// ErrNoAction says that the intent waits for nobody: the customer has acted, or the intent is canceled.
var ErrNoAction = errors.New("the intent waits for no action of the customer")

// ErrActionUnknown says that the provider could not be asked in time what the customer has to do. Asking again later may
// help.
var ErrActionUnknown = errors.New("what the customer has to do could not be learned in time")

const (
	actionWithin  = 2500 * time.Millisecond // for one question to the provider, the wait for a turn included
	actionsAtOnce = 16                      // questions at a time: those who look must not use up what those who charge need
)

// Actions asks the provider, for the owner of a booking, what there is to do.
type Actions struct {
	prompter Prompter
	turns    chan struct{}
}

// NewActions makes it. The key that the prompter holds needs to read intents, and nothing else.
func NewActions(prompter Prompter) *Actions {
	return &Actions{prompter: prompter, turns: make(chan struct{}, actionsAtOnce)}
}

// Next returns what the customer of this booking has to do, as the provider says at this moment. It is ErrNoAction for
// every booking but one that is held and whose payment requires an action, and the provider is then not asked. Within a
// few seconds it has an answer or is ErrActionUnknown.
func (a *Actions) Next(ctx context.Context, v View) (NextAction, error) {
	if v.Booking.Status != domain.BookingHeld || v.Payment.Status != domain.PaymentRequiresAction || v.Payment.intent == "" {
		return NextAction{}, ErrNoAction
	}
	ctx, cancel := context.WithTimeout(ctx, actionWithin)
	defer cancel()
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return NextAction{}, fmt.Errorf("%w: too many ask at once", ErrActionUnknown)
	}
	next, err := a.prompter.Action(ctx, v.Payment.intent)
	if err != nil && !errors.Is(err, ErrNoAction) {
		return NextAction{}, fmt.Errorf("%w: %w", ErrActionUnknown, err)
	}
	return next, err
}
