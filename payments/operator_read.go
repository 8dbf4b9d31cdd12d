package payments

import (
	"context"
	"fmt"
	"slices"

	"holdfast/domain"
	"holdfast/outbox"
)

// Reading is what the provider showed of a booking's money, and how that money stood here before it was asked. What is done
// on the strength of it is decided later, under the booking's lock: if anything was sent or settled meanwhile, it proves
// nothing but what is final.
type Reading struct {
	Side ProviderSide

	before dossier
	fact   domain.Fact // what the intent proves; nothing where none is committed
	intent Intent      // likewise
	found  []Intent    // where no intent is committed: all that a complete listing has of this payment
	// Both are complete listings.
	charges []ProviderCharge
	refunds []ProviderRefund
}

// Read reads the provider's side of the money that an effect is about. It changes nothing. ErrUnread (wrapped) means that nothing
// was learned: half a reading proves nothing about the other half.
func (p *Payments) Read(ctx context.Context, e outbox.Effect) (Reading, error) {
	return p.read(ctx, e.BookingID)
}

func (p *Payments) read(ctx context.Context, id domain.BookingID) (Reading, error) {
	before, err := p.peek(ctx, id) // the version first, then the questions
	if err != nil {
		return Reading{}, err
	}
	r := Reading{before: before}
	if before.payment.ProviderIntentID == "" {
		r.found, err = p.findIntents(ctx, before)
	} else {
		err = p.readIntent(ctx, &r)
	}
	if err != nil {
		return Reading{}, err
	}
	r.Side = r.side()
	return r, nil
}

func (p *Payments) readIntent(ctx context.Context, r *Reading) (err error) {
	id := r.before.payment.ProviderIntentID
	if r.intent, err = p.gateway.Intent(ctx, id); err != nil {
		return fmt.Errorf("%w: %w", ErrUnread, err)
	}
	// The charges are listed after the intent was seen: only so does canceled without a charge prove anything.
	if r.charges, err = p.gateway.Charges(ctx, id); err != nil {
		return fmt.Errorf("%w: %w", ErrUnread, err)
	}
	if r.fact, err = p.factOf(ctx, r.before, &r.intent, true); err != nil {
		return err
	}
	if r.refunds, err = p.gateway.Refunds(ctx, id); err != nil {
		return fmt.Errorf("%w: %w", ErrUnread, err)
	}
	return nil
}

// taken are the charges that have taken money.
func (r Reading) taken() []ProviderCharge {
	return slices.DeleteFunc(slices.Clone(r.charges), func(c ProviderCharge) bool { return c.Status != ChargeSucceeded })
}
