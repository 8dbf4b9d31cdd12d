package payments

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// ResolveIn adopts what a reading has shown, for one unfinished charge, cancel or refund, under the booking's lock and in the
// caller's transaction: through the same door as everybody else. It says what that means, in the present tense.
//
// A *outbox.RefusedError says that the question stays open, what the provider shows and what comes next; then nothing was written,
// and the transaction may go on. What was sent or settled since the reading began makes all of it stale but what is final.
func (p *Payments) ResolveIn(ctx context.Context, tx pgx.Tx, e outbox.Effect, r Reading) (said string, err error) {
	var b pgx.Batch
	silent := p.silent()
	switch e.Kind {
	case domain.EffectCharge, domain.EffectCancel:
		d, err := lock(ctx, tx, e.BookingID, e.ID)
		if err == nil {
			said, err = silent.adoptPayment(&b, d, r)
		}
		if err != nil {
			return "", err
		}
	case domain.EffectRefund:
		d, err := lockMoney(ctx, tx, e.BookingID, e.ID)
		if err == nil {
			said, err = silent.adoptRefunds(&b, &d, r)
		}
		if err != nil {
			return "", err
		}
	case domain.EffectPublish, domain.EffectRefresh:
		return "", refuse(outbox.RefusedInapplicable, "a %s moves no money: the provider can say nothing of it", e.Kind)
	default:
		return "", refuse(outbox.RefusedInapplicable, "a %s means nothing to this version", e.Kind)
	}
	return said, postgres.Send(ctx, tx, &b)
}

// silent is the same engine without its log: what an operator does may be rolled back, and they are told in person.
func (p *Payments) silent() *Payments {
	return New(p.pool, p.gateway, p.waker, p.config, slog.New(slog.DiscardHandler))
}

func refuse(code outbox.Refusal, format string, args ...any) error {
	return &outbox.RefusedError{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// errStale is the refusal of what was read before something else happened.
func errStale() error {
	return refuse(outbox.RefusedChanged, "something was sent or settled while the provider was read, and what it showed may be out of date: look again")
}

// adoptPayment settles what the intent, or a listing without one, shows.
func (p *Payments) adoptPayment(b *pgx.Batch, d dossier, r Reading) (string, error) {
	if d.effect.Status.Finished() {
		return "", refuse(outbox.RefusedFinished, "the %s is finished already: %s", d.effect.Kind, d.effect.Status)
	}
	version := r.before.payment.Version
	var m domain.Move
	if d.payment.ProviderIntentID != "" && d.payment.ProviderIntentID == r.intent.ID {
		var err error
		if m, err = p.settle(b, d, domain.Observation{Fact: r.fact, Version: version}, &r.intent); err != nil {
			return "", err
		}
	}
	switch {
	case m.Changed, closes(m, d.effect.Kind):
		return saysMove(d, m, r), nil
	case unneeded(d):
		if err := outbox.Finish(b, d.booking.ID, d.effect.Kind, domain.EffectNotNeeded); err != nil {
			return "", err
		}
		return fmt.Sprintf("The %s is not needed any more: the booking is %s, its payment %s.", d.effect.Kind, d.booking.Status, d.payment.Status), nil
	case m.Stale, d.payment.Version != version:
		return "", errStale()
	case d.payment.ProviderIntentID == "":
		return p.adoptFound(b, d, r)
	default:
		return "", refuse(outbox.RefusedNothingSeen, "%s Nothing is settled by that. %s", r.Side.Says, next(d.effect))
	}
}

// closes tells whether a move ends the effect of a kind: of what was seen before only the open effect is closed.
func closes(m domain.Move, kind domain.EffectKind) bool {
	return kind == domain.EffectCharge && m.Charge.Finished() || kind == domain.EffectCancel && m.Cancel.Finished()
}

// unneeded tells whether nothing may be sent for the effect any more.
func unneeded(d dossier) bool {
	wants := domain.BookingHeld
	if d.effect.Kind == domain.EffectCancel {
		wants = domain.BookingEnding
	}
	return d.booking.Status != wants || d.payment.Status.Closed()
}

// adoptFound takes up the intent that a complete listing has shown to be ours, or the provider's refusal to make one. Nothing was
// confirmed so far, and what is taken up is confirmed by whoever carries the effect on.
func (p *Payments) adoptFound(b *pgx.Batch, d dossier, r Reading) (string, error) {
	if !d.now.Before(d.booking.HoldExpiresAt) {
		return "", refuse(outbox.RefusedNothingSeen, "the hold is over: the booking ends by itself within seconds, and no money can be taken for it")
	}
	foreign := ""
	for _, i := range r.found {
		switch {
		case i.Status == IntentCanceled:
			continue
		case p.verify(d, i) != nil:
			foreign = i.ID
			continue
		}
		adopt(b, d, i)
		if d.effect.Status == domain.EffectInDoubt {
			outbox.Note(b, d.effect.ID, "", 0)
		} else if err := outbox.Finish(b, d.booking.ID, domain.EffectCharge, domain.EffectInDoubt); err != nil {
			return "", err
		}
		return fmt.Sprintf("The provider's payment intent %s is this booking's, in amount, currency and ids, and is taken up: the reconciler goes on with it now. "+
			"No money was taken so far.", i.ID), nil
	}
	if foreign != "" {
		return "", refuse(outbox.RefusedNothingSeen, "the provider's payment intent %s carries this payment's id and differs in mode, amount, currency or booking from what was asked for: "+
			"it is not taken up. Look at it in the provider's dashboard. %s", foreign, next(d.effect))
	}
	if c := d.last(domain.OpCreate); c != nil && c.open() && !c.StoredError && (c.HTTPStatus == http.StatusBadRequest || c.HTTPStatus == http.StatusNotFound) {
		seen := &Intent{LastError: &LastError{Code: c.ErrorCode}}
		m, err := p.settle(b, d, domain.Observation{Fact: domain.FactRefused, Version: r.before.payment.Version}, seen)
		if err != nil || m.Changed {
			return saysMove(d, m, r), err
		}
	}
	return "", refuse(outbox.RefusedNothingSeen, "%s Nothing is settled by that. %s", r.Side.Says, next(d.effect))
}

// next says what comes next of an effect that stays as it is.
func next(e outbox.Effect) string {
	switch e.Status {
	case domain.EffectInDoubt:
		return "The reconciler asks the provider again at " + e.DueAt.UTC().Format(time.RFC3339) + "; a replay lets it ask now."
	case domain.EffectPending:
		return "A worker goes on with it by itself; a replay lets it go on now."
	case domain.EffectParked:
		return "It stays parked until it is replayed, or its hold is over."
	case domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded:
		return "It is finished."
	default:
		return ""
	}
}

// saysMove says what a move does to the money and its booking.
func saysMove(d dossier, m domain.Move, r Reading) string {
	switch m.Payment {
	case domain.PaymentSucceeded:
		switch {
		case !m.Changed:
			return "The payment was settled as taken before; only the effect is closed."
		case m.Refund == domain.RefundLateSuccess:
			return r.Side.Says + " It is settled as taken although the booking has ended: all of it goes back by itself."
		case m.Refund == domain.RefundCancellation:
			return r.Side.Says + " It is settled as taken; the booking is cancelled, and what its policy gives back goes back by itself."
		default:
			return r.Side.Says + " It is settled as taken; the booking is " + string(m.Booking) + "."
		}
	case domain.PaymentCanceled, domain.PaymentRefused:
		return fmt.Sprintf("It is settled as never taken: the booking is %s, and its slot is free.", m.Booking)
	case domain.PaymentDeclined:
		return "The card is settled as declined: the booking stays held for another card until " + d.booking.HoldExpiresAt.UTC().Format(time.RFC3339) + "."
	case domain.PaymentRequiresAction:
		return "The payment is settled as waiting for the customer to authenticate it, while the hold lives."
	case domain.PaymentProcessing:
		return "The payment is settled as being processed: the reconciler asks the provider until that is decided."
	case domain.PaymentPending, domain.PaymentInDoubt:
		if m.Booking == domain.BookingEnding {
			return "The booking ends: its fence proves that no money can be taken."
		}
	}
	return fmt.Sprintf("The payment is %s, the booking %s.", m.Payment, m.Booking)
}

// adoptRefunds settles what a complete listing shows of all refunds of the payment, if it decides this effect's.
func (p *Payments) adoptRefunds(b *pgx.Batch, d *dossier, r Reading) (string, error) {
	f := d.refundOf(d.effect.ID)
	switch {
	case d.effect.Status.Finished():
		return "", refuse(outbox.RefusedFinished, "the refund is finished already: %s", d.effect.Status)
	case f == nil:
		return "", refuse(outbox.RefusedNothingSeen, "the effect is of no refund that is known here")
	case d.payment.Version != r.before.payment.Version:
		return "", errStale()
	}
	id, status := f.ID, f.Status
	if _, err := p.settleListed(b, d, r.refunds); err != nil {
		return "", err
	}
	for i := range d.refunds { // the rows may have moved
		if d.refunds[i].ID == id {
			f = &d.refunds[i]
		}
	}
	amount := ForPeople(f.total())
	switch {
	case f.Status == status:
		return "", refuse(outbox.RefusedNothingSeen, "the provider lists nothing that decides this refund of %s. %s %s", amount, r.saysRefunds(), next(d.effect))
	case f.Status == refundSucceeded:
		return amount + " went back: the refund is settled.", nil
	case f.Status == refundFailed && f.Open:
		return "The provider shows that the refund of " + amount + " failed: it is left again. It is parked, since it is owed: a replay takes the next key.", nil
	case f.Status == refundFailed:
		return "The provider shows that the refund of " + amount + " failed: it is left again.", nil
	default:
		return "The provider has accepted the refund of " + amount + " and not made it yet: it is looked at until it is decided.", nil
	}
}
