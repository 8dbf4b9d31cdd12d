package payments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// sighting is what a look at the provider has shown.
type sighting struct {
	intent  Intent
	version int64 // the payment's, read before the look
	fact    domain.Fact
	move    domain.Move
	shown   bool // the intent holds the newest card, which nobody had seen before
}

// unread is what an operator is told of an ErrUnread: words of ours, fit to be stored. Every other error of a look is our own trouble.
func unread(err error) string {
	if errors.Is(err, ErrNoIntent) {
		return ErrNoIntent.Error()
	}
	return ErrUnread.Error()
}

// unresolved tells whether the look left the question open: the intent is as it was before the newest send took
// effect, or something moved while we looked.
func (s sighting) unresolved() bool { return s.fact == domain.FactNothing || s.move.Stale }

// look reads the intent and settles what it shows. ErrUnread means that the provider told nothing.
// within adds to the settling transaction, unless the question stayed open; it may be nil.
func (p *Payments) look(ctx context.Context, id domain.BookingID, within func(*pgx.Batch)) (sighting, error) {
	before, err := p.peek(ctx, id) // the version first, then the question
	if err != nil {
		return sighting{}, err
	}
	s := sighting{version: before.payment.Version}
	s.intent, err = p.gateway.Intent(ctx, before.payment.ProviderIntentID)
	if err != nil {
		return sighting{}, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	if s.fact, err = p.factOf(ctx, before, &s.intent, true); err != nil {
		return sighting{}, err
	}
	_, err = p.turn(ctx, id, domain.EffectID{}, func(b *pgx.Batch, d dossier) (decision, error) {
		var err error
		s.move, err = p.settle(b, d, domain.Observation{Fact: s.fact, Version: s.version}, &s.intent)
		s.shown = d.shows(s)
		if s.shown {
			showCard(b, d)
		}
		if err == nil && !s.unresolved() && within != nil {
			within(b)
		}
		return decision{move: s.move}, err
	})
	if err != nil {
		return sighting{}, err
	}
	return s, nil
}

// shows tells whether a look has shown the newest card on the intent for the first time. The method is the one that the
// provider's answer to the update named, and nothing was sent since the look began.
func (d dossier) shows(s sighting) bool {
	return d.payment.ShownCard < d.payment.Card && d.payment.Version == s.version && s.intent.Status == IntentRequiresConfirmation &&
		d.payment.ProviderMethodID != "" && s.intent.PaymentMethod == d.payment.ProviderMethodID
}

// showCard queues that the newest card was seen on the intent: from here on it may be confirmed, and what was seen before
// says nothing of it.
func showCard(b *pgx.Batch, d dossier) {
	postgres.ExecAnd(b, "note that the intent shows the card", oneRow,
		`UPDATE payments SET shown_card = card, version = version + 1 WHERE id = $1 AND version = $2`, d.payment.ID, d.payment.Version)
}

// factOf says what an intent proves about the payment in d. fresh is false for the provider's stored answer of an
// earlier send: such a snapshot proves only what is final. A success that only the listed charges show is added to i.
func (p *Payments) factOf(ctx context.Context, d dossier, i *Intent, fresh bool) (domain.Fact, error) {
	passing := func(f domain.Fact) (domain.Fact, error) { // a state that may be over by now
		if !fresh || d.payment.ShownCard < d.payment.Card { // or that speaks of the card before
			return domain.FactNothing, nil
		}
		return f, nil
	}
	switch i.Status {
	case IntentSucceeded:
		return domain.FactSucceeded, nil
	case IntentCanceled:
		return p.canceled(ctx, i)
	case IntentRequiresAction:
		return passing(domain.FactAction)
	case IntentProcessing:
		return passing(domain.FactProcessing)
	case IntentRequiresPaymentMethod:
		if declined(d, *i) {
			return passing(domain.FactDeclined)
		}
		return domain.FactNothing, nil
	case IntentRequiresConfirmation: // not executed so far; it may be in flight
		return domain.FactNothing, nil
	default: // a status nobody has heard of means nothing, and stays in doubt
		p.logger.ErrorContext(ctx, "the provider reports an intent status that is not known here",
			"payment_id", d.id(), "intent_status", string(i.Status))
		return domain.FactNothing, nil
	}
}

// canceled believes a canceled intent only together with its charges, listed after it was seen canceled: a stored 5xx
// may hide a charge that the provider is still rolling forward.
func (p *Payments) canceled(ctx context.Context, i *Intent) (domain.Fact, error) {
	charges, err := p.gateway.Charges(ctx, i.ID)
	if err != nil {
		return domain.FactNothing, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	pending := false
	for _, c := range charges {
		if c.Status == ChargeSucceeded {
			i.AmountReceived = c.Amount.Amount
			return domain.FactSucceeded, nil
		}
		pending = pending || c.Status == ChargePending
	}
	if pending {
		return domain.FactNothing, nil // wait, and list again
	}
	return domain.FactCanceled, nil
}

// declined tells whether requires_payment_method means that the newest card was declined. The state alone does not say
// so: the confirm may not have run yet. It is proved if an answer has shown that the confirm ran, or if the intent's
// error names the very method that it was to charge.
func declined(d dossier, i Intent) bool {
	if i.LastError == nil {
		return false
	}
	confirm := d.find(domain.OpConfirm, d.payment.Card)
	if confirm != nil && !confirm.open() {
		return true
	}
	return d.payment.ProviderMethodID != "" && i.LastError.PaymentMethod == d.payment.ProviderMethodID
}

// findIntents looks for intents of a payment whose id was lost: it lists what was created around the payment's creates
// and matches our own id in the metadata. None found means that a complete listing lacks them.
func (p *Payments) findIntents(ctx context.Context, d dossier) ([]Intent, error) {
	var first, last time.Time
	for _, c := range d.calls {
		if c.Operation != domain.OpCreate {
			continue
		}
		if first.IsZero() || c.FirstSentAt.Before(first) {
			first = c.FirstSentAt
		}
		if c.LastSentAt.After(last) {
			last = c.LastSentAt
		}
	}
	if first.IsZero() {
		return nil, nil // never sent
	}
	listed, err := p.gateway.IntentsCreated(ctx, first.Add(-clockSkew), last.Add(clockSkew))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	return slices.DeleteFunc(listed, func(i Intent) bool { return i.PaymentID != d.id().String() }), nil
}

// adopt queues the commit of an intent's id: from here on it is the one intent that may ever be confirmed for this
// booking. It returns the dossier as it will be, and false if the intent is not the booking's: one that turns up when the
// booking is no longer held, the payment is closed or another was adopted can only be canceled.
func adopt(b *pgx.Batch, d dossier, i Intent) (dossier, bool) {
	if d.booking.Status != domain.BookingHeld || d.payment.Status.Closed() {
		return d, false
	}
	if d.payment.ProviderIntentID != "" {
		return d, d.payment.ProviderIntentID == i.ID
	}
	postgres.ExecAnd(b, "commit the intent of a payment", oneRow, `
		UPDATE payments
		   SET provider_intent_id = $3, provider_method_id = nullif($4, ''), shown_card = card, livemode = $5, version = version + 1,
		       updated_at = clock_timestamp()
		 WHERE id = $1 AND version = $2 AND provider_intent_id IS NULL`,
		d.payment.ID, d.payment.Version, i.ID, i.PaymentMethod, i.Livemode)
	d.payment.ProviderIntentID, d.payment.ProviderMethodID, d.payment.ShownCard = i.ID, i.PaymentMethod, d.payment.Card
	d.payment.Version++
	return d, true
}

// oneRow makes sure that a compare-and-set found what was locked.
func oneRow(tag pgconn.CommandTag) error {
	if tag.RowsAffected() != 1 {
		return errMoved
	}
	return nil
}

var errMoved = errors.New("the payment's version moved under the booking's lock")

// errForeignIntent says that what the provider made is not what was asked for.
var errForeignIntent = errors.New("the provider's intent differs from what was sent: mode, amount, currency or our ids")

// verify compares an intent with the payment it is to serve.
func (p *Payments) verify(d dossier, i Intent) error {
	if i.Livemode != p.gateway.Livemode() || i.Amount != d.charge().Total || i.PaymentID != d.id().String() || i.BookingID != d.charge().BookingID.String() {
		return errForeignIntent
	}
	return nil
}

// known tells whether the protocol understands a status.
func known(s IntentStatus) bool {
	return slices.Contains([]IntentStatus{
		IntentRequiresPaymentMethod, IntentRequiresConfirmation, IntentRequiresAction, IntentProcessing, IntentSucceeded, IntentCanceled,
	}, s)
}
