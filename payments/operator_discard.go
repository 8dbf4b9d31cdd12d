package payments

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// codeDiscarded is why a refund has failed that a person has given up.
const codeDiscarded = "discarded"

// DiscardIn sees to what follows from never carrying out a parked charge, cancel or refund, under the booking's lock and in the caller's
// transaction; the effect itself is the caller's to close. It says what that means, in the present tense.
//
// A *outbox.RefusedError says that it is not proved that nothing can come of the effect any more, or that a booking would never end
// without it, and what to do instead; then nothing was written, and the transaction may go on.
func (p *Payments) DiscardIn(ctx context.Context, tx pgx.Tx, e outbox.Effect, r Reading) (said string, err error) {
	d, err := lockMoney(ctx, tx, e.BookingID, e.ID)
	if err != nil {
		return "", err
	}
	if d.effect.Status != domain.EffectParked {
		return "", refuse(outbox.RefusedInapplicable, "only what is parked can be discarded, and this %s is %s", d.effect.Kind, d.effect.Status)
	}
	var b pgx.Batch
	silent := p.silent()
	switch d.effect.Kind {
	case domain.EffectCharge:
		said, err = silent.discardCharge(&b, d, r)
	case domain.EffectCancel:
		said, err = discardCancel(d)
	case domain.EffectRefund:
		said, err = silent.discardRefund(&b, &d, r)
	case domain.EffectPublish, domain.EffectRefresh:
		err = refuse(outbox.RefusedInapplicable, "a %s moves no money", d.effect.Kind)
	default:
		err = refuse(outbox.RefusedInapplicable, "a %s means nothing to this version", d.effect.Kind)
	}
	if err != nil {
		return "", err
	}
	return said, postgres.Send(ctx, tx, &b)
}

// discardCharge gives up a charge that can take no money: of a payment that is closed, or of one for which no intent was ever taken up.
// Then nothing was confirmed and nothing will be, and the booking ends.
func (p *Payments) discardCharge(b *pgx.Batch, d dossier, r Reading) (string, error) {
	alive := slices.ContainsFunc(r.found, func(i Intent) bool {
		return !slices.Contains([]IntentStatus{IntentRequiresPaymentMethod, IntentRequiresConfirmation, IntentCanceled}, i.Status)
	})
	switch {
	case d.payment.Status.Closed():
		return "The payment is " + string(d.payment.Status) + ": nothing is left that could take money.", nil
	case d.payment.ProviderIntentID != "":
		return "", refuse(outbox.RefusedUnproved, "the provider's payment intent %s can still take money. %s Resolve the charge to settle what the provider shows, replay it, or let the "+
			"booking end: its fence proves that no money can be taken", d.payment.ProviderIntentID, r.Side.Says)
	case d.payment.Version != r.before.payment.Version:
		return "", errStale()
	case d.last(domain.OpConfirm) != nil || alive:
		return "", refuse(outbox.RefusedUnproved, "the provider shows a payment intent of this booking that somebody has confirmed. %s Look at it in the provider's dashboard", r.Side.Says)
	}
	m := domain.End(d.state(), domain.EndRefuse)
	if !m.Changed {
		return "", refuse(outbox.RefusedUnproved, "the booking is %s, its payment %s: replay the charge", d.booking.Status, d.payment.Status)
	}
	m.Charge = "" // the caller's
	if err := p.apply(b, d, m, nil); err != nil {
		return "", err
	}
	return "No payment of this booking was ever confirmed, and none will be: no money can be taken. The booking ends as " + string(m.Booking) + ", and its slot is free.", nil
}

// discardCancel gives up a fence that nobody waits for. Of a booking that is ending nobody else proves what became of the money, and its
// slot would stay taken for ever.
func discardCancel(d dossier) (string, error) {
	if d.booking.Status == domain.BookingEnding {
		return "", refuse(outbox.RefusedUnproved, "the booking is ending, and only its fence proves that no money can be taken: without it the slot would stay taken for ever. Replay it, or resolve it")
	}
	return "The booking is " + string(d.booking.Status) + ", its payment " + string(d.payment.Status) + ": there is nothing to fence.", nil
}

// discardRefund gives up a refund no send of which can be carried out any more: its amount is left again.
func (p *Payments) discardRefund(b *pgx.Batch, d *dossier, r Reading) (string, error) {
	f := d.refundOf(d.effect.ID)
	switch {
	case f == nil:
		return "", refuse(outbox.RefusedUnproved, "the effect is of no refund that is known here")
	case f.Status == refundSucceeded:
		return "", refuse(outbox.RefusedUnproved, "the refund has been made: resolve it")
	case d.payment.Version != r.before.payment.Version:
		return "", errStale()
	}
	if err := p.undead(*d, *f, r); err != nil {
		return "", err
	}
	amount := ForPeople(f.total())
	if f.Status == refundFailed {
		return "The refund of " + amount + " has failed and is given up: the sum is left, and can be asked for again.", nil
	}
	f.Status, f.FailureCode = refundFailed, codeDiscarded
	postgres.ExecAnd(b, "give a refund up", oneRow, `
		UPDATE refunds
		   SET status = 'failed', failure_code = $2, settled_at = clock_timestamp(), updated_at = clock_timestamp(), watch_at = NULL
		 WHERE id = $1 AND status = 'pending'`, f.ID, codeDiscarded)
	ledger.Bring(b, d.payment.ID)
	for i := range d.calls {
		if d.calls[i].RefundID == f.ID {
			concludeCall(b, &d.calls[i], Rejected)
		}
	}
	if _, err := p.tellOfRefund(b, d, *f, domain.EventRefundFailed); err != nil {
		return "", err
	}
	if _, err := p.settleListed(b, d, r.refunds); err != nil { // what goes by its id and is none of ours is written down as made by hand
		return "", err
	}
	return "The refund of " + amount + " is given up and told as failed: nothing goes back, the sum is left, and can be asked for again.", nil
}

// undead refuses to give up a refund of which a send may still be carried out, or has been: the sum would go back twice.
func (p *Payments) undead(d dossier, f refund, r Reading) error {
	ofOurs := func(c *call, x ProviderRefund) bool {
		return x.RefundID == f.ID.String() && (c == nil || x.Ordinal == strconv.Itoa(c.Ordinal))
	}
	if i := slices.IndexFunc(r.refunds, func(x ProviderRefund) bool { return ofOurs(nil, x) && x.alive() && x.Amount == f.total() }); i >= 0 {
		return refuse(outbox.RefusedUnproved, "the provider shows this refund (%s, %s): resolve it", r.refunds[i].ID, word(r.refunds[i].Status, RefundSucceeded, "pending", "requires_action"))
	}
	for i := range d.calls {
		c := &d.calls[i]
		if c.RefundID != f.ID {
			continue
		}
		switch c.Outcome {
		case Rejected.String(), Declined.String(), KnownState.String():
			continue // the provider has refused it
		case Executed.String():
			if slices.ContainsFunc(r.refunds, func(x ProviderRefund) bool { return ofOurs(c, x) }) {
				continue // made, and failed; or not what was sent
			}
			return refuse(outbox.RefusedUnproved, "the provider has accepted this refund and does not list it: look at it in the provider's dashboard")
		}
		// By when the listing began, not by now: it must have been made after the key's end.
		if left := p.config.KeyRetention - r.before.now.Sub(c.LastSentAt); left > 0 {
			return refuse(outbox.RefusedUnproved, "no answer has come to the send of this refund at %s, and the provider may still carry it out until %s: discard it after that, or replay it",
				c.LastSentAt.UTC().Format(time.RFC3339), d.now.Add(left).UTC().Format(time.RFC3339))
		}
	}
	return nil
}
