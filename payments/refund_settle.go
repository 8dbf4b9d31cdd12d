package payments

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// lookForRefund lists the intent's refunds and settles what they show. Only a complete listing that lacks ours lets the
// refund be sent again.
func (p *Payments) lookForRefund(ctx context.Context, e outbox.Effect, r role) (progress, error) {
	before, err := p.peek(ctx, e.BookingID) // the version first, then the question
	if err != nil {
		return progress{}, err
	}
	found, unread := p.gateway.Refunds(ctx, before.payment.ProviderIntentID)
	made, err := p.refundTurn(ctx, e, r, nil, func(t refundCase) (decision, error) {
		switch {
		case unread != nil:
			return p.doubtRefund(t, "the provider's refunds could not be listed", 0)
		case t.d.payment.Version != before.payment.Version:
			return decision{at: progress{again: true}}, nil
		}
		return p.refundListed(t, found)
	})
	if err != nil {
		return progress{}, err
	}
	return p.sendRefund(ctx, e, r, made)
}

// refundListed settles what a complete listing of the intent's refunds shows, of this refund and of all others.
func (p *Payments) refundListed(t refundCase, found []ProviderRefund) (decision, error) {
	before := t.f.Status
	m, err := p.settleListed(t.b, t.d, found)
	if err != nil {
		return decision{}, err
	}
	t.f = t.d.refundOf(t.d.effect.ID) // the rows may have moved
	named := func(x ProviderRefund) bool { return x.RefundID == t.f.ID.String() && x.alive() }
	var made decision
	switch {
	case t.f.Status == refundPending && t.f.ProviderRefundID == "" && slices.ContainsFunc(found, named):
		made, err = p.parkRefund(t, "the provider's refund differs from what was sent: amount, currency or our ids")
	case t.f.ProviderRefundID != "" && (t.f.Status != refundFailed || before != refundFailed):
		made, err = p.refundSeen(t)
	default:
		made, err = p.refundAbsent(t, found)
	}
	if made.move.Event == "" {
		made.move = m
	}
	return made, err
}

// refundShown settles what the provider's answer to our send says of the refund.
func (p *Payments) refundShown(t refundCase, x ProviderRefund) (decision, error) {
	m, err := p.settleRow(t.b, t.d, t.f, x)
	if err != nil {
		return decision{}, err
	}
	made, err := p.refundSeen(t)
	made.move = m
	return made, err
}

// refundSeen ends the job of a refund that is settled, and waits for one that the provider has accepted and not decided.
func (p *Payments) refundSeen(t refundCase) (decision, error) {
	if t.f.Status == refundPending {
		return p.doubtRefund(t, "the provider has accepted the refund and not made it yet", p.patience(t))
	}
	t.r.done(t.b)
	return decision{}, nil
}

// patience is how long a refund that the provider has accepted is left alone: the longer the older it is, since it may take days.
func (p *Payments) patience(t refundCase) time.Duration {
	var age time.Duration
	if last := t.last(); last != nil {
		age = t.d.now.Sub(last.FirstSentAt)
	}
	return min(max(p.config.Poll, age/8), max(p.config.Poll, time.Hour))
}

// refundAbsent decides what follows from a complete listing without our refund.
func (p *Payments) refundAbsent(t refundCase, found []ProviderRefund) (decision, error) {
	last := t.last()
	if last == nil || t.f.Status == refundFailed {
		return p.nextRefund(t)
	}
	forgotten := p.config.KeyRetention - t.d.now.Sub(last.LastSentAt)
	switch {
	case last.refused() && last.ErrorCode == codeAlreadyRefunded && sum(found) < t.d.balance.Captured && t.d.now.Sub(last.LastSentAt) < time.Hour:
		return p.doubtRefund(t, "the provider says that the money went back, and lists no refund of it", p.config.Poll)
	case last.refused():
		return p.refuseRefund(t, last.ErrorCode)
	case last.Outcome == Executed.String():
		return p.doubtRefund(t, "the provider has accepted the refund and does not list it yet", p.config.Poll)
	case !last.dead(t.d.now, p.config.Horizon):
		if rest := p.backoff(t.d.effect.Attempts) - t.d.now.Sub(last.LastSentAt); rest > 0 {
			return p.doubtRefund(t, "no answer to the refund so far; its key is sent again", rest)
		}
		return p.recordRefund(t, last.Ordinal), nil
	case forgotten > 0:
		return p.doubtRefund(t, "the refund's key can be sent no more, and may still bring it; the next key follows", min(forgotten, time.Hour))
	default: // it is not there, and nothing that was sent can bring it any more
		concludeCall(t.b, last, Rejected)
		return p.beginKey(t, last.Ordinal+1)
	}
}

// refused tells whether the provider has refused the call for good: in the answer to its only send, or in the one that it has
// stored under the key. The refusal of a later send says nothing of one before it, which may still be on its way.
func (c *call) refused() bool {
	switch c.Outcome {
	case Rejected.String(), Declined.String(), KnownState.String():
		return true
	case KeyMismatch.String():
		return false
	}
	refusal := c.HTTPStatus == http.StatusBadRequest || c.HTTPStatus == http.StatusNotFound || c.HTTPStatus == http.StatusPaymentRequired
	return refusal && c.Replayed && !c.StoredError
}

// codeAlreadyRefunded is the provider's refusal of a refund of what was refunded in full.
const codeAlreadyRefunded = "charge_already_refunded"

// sum is what the refunds that have not failed give back.
func sum(of []ProviderRefund) (n int64) {
	for _, x := range of {
		if x.alive() {
			n += x.Amount.Amount
		}
	}
	return n
}

// refuseRefund settles a refund that was refused for good. Where somebody has given back a part of what the customer is owed, the
// rest goes back under the next key, unless a dispute forbids that, too. One that had failed before, and that a person has
// replayed in vain, is told no second time.
func (p *Payments) refuseRefund(t refundCase, code string) (decision, error) {
	last := t.last()
	left, contested := t.d.left(t.f.ID), t.d.balance.Returns() || code == CodeDisputed
	switch {
	case last != nil && t.f.owed() && !contested && left > 0 && left < t.f.Amount:
		concludeCall(t.b, last, Rejected)
		return p.beginKey(t, last.Ordinal+1)
	case t.f.Status == refundFailed && (contested || left >= t.f.Amount || left > 0 && t.f.owed()):
		return p.parkRefund(t, "the refund cannot be made: "+code)
	case t.f.Status == refundFailed:
		outbox.Note(t.b, t.d.effect.ID, "too little is left to go back", 0)
		outbox.Done(t.b, t.d.effect.ID)
		t.r.done(t.b)
		return decision{}, nil
	}
	m, err := p.failRow(t.b, t.d, t.f, "", code)
	t.r.done(t.b)
	return decision{move: m}, err
}

// alive tells whether the refund has given money back, or may still do so.
func (x ProviderRefund) alive() bool { return x.Status != RefundFailed && x.Status != RefundCanceled }

// of tells whether it is what a call has sent for a row.
func (x ProviderRefund) of(f refund, c *call) bool {
	return c != nil && x.RefundID == f.ID.String() && x.Ordinal == strconv.Itoa(c.Ordinal) && x.Amount == f.total()
}

// settleListed settles what a complete listing of the intent's refunds, newest first, shows of every row, and writes down those
// that have none: somebody has made them at the provider. The move that it returns has an event if any was told.
func (p *Payments) settleListed(b *pgx.Batch, d *dossier, found []ProviderRefund) (domain.Move, error) {
	var told domain.Move
	settle := func(x ProviderRefund, f *refund) error {
		m, err := p.settleRow(b, d, f, x)
		if m.Event != "" {
			told = m
		}
		return err
	}
	var rest []ProviderRefund
	for _, x := range slices.Backward(found) {
		f := d.rowOf(x)
		if f == nil {
			rest = append(rest, x)
			continue
		}
		if err := settle(x, f); err != nil {
			return told, err
		}
	}
	for _, x := range rest {
		f := d.namedBy(x)
		switch {
		case f != nil && !x.alive():
			continue // an earlier key's
		case f != nil && f.ProviderRefundID == "" && x.Amount == f.total(): // of an earlier key, thought dead
			if err := settle(x, f); err != nil {
				return told, err
			}
			continue
		case f != nil:
			p.logger.Error("the provider shows a refund under an id of ours that is not what we sent, or is one too many",
				"booking_id", d.booking.ID, "refund_id", f.ID, "provider_refund_id", x.ID)
			if f.ProviderRefundID == "" && f.Status == refundPending {
				continue // whoever owns it leaves it to a person
			}
		}
		if err := settle(x, writeDown(b, d, x)); err != nil {
			return told, err
		}
	}
	return told, nil
}

// rowOf is the row that a refund of the provider's belongs to without doubt, or nil.
func (d *dossier) rowOf(x ProviderRefund) *refund {
	for i := range d.refunds {
		if f := &d.refunds[i]; f.ProviderRefundID == x.ID || f.ProviderRefundID == "" && x.of(*f, d.lastOf(*f)) {
			return f
		}
	}
	return nil
}

// namedBy is the row whose id a refund carries in its metadata, which anybody may have copied, or nil.
func (d *dossier) namedBy(x ProviderRefund) *refund {
	for i := range d.refunds {
		if f := &d.refunds[i]; f.ID.String() == x.RefundID {
			return f
		}
	}
	return nil
}

// writeDown queues a row for a refund that none of ours has made.
func writeDown(b *pgx.Batch, d *dossier, x ProviderRefund) *refund {
	f := refund{
		ID: domain.NewID[domain.RefundID]().UUID, Amount: x.Amount.Amount, Currency: x.Amount.Currency, Reason: reasonDashboard,
		Status: refundPending, ProviderRefundID: x.ID,
	}
	postgres.Exec(b, "write down a refund of the provider's", `
		INSERT INTO refunds (id, payment_id, amount, currency, reason, provider_refund_id, watch_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::interval, clock_timestamp(), clock_timestamp())`,
		f.ID, d.payment.ID, f.Amount, f.Currency, f.Reason, f.ProviderRefundID, firstRefundWatch)
	ledger.Bring(b, d.payment.ID)
	d.refunds = append(d.refunds, f)
	return &d.refunds[len(d.refunds)-1]
}

// firstRefundWatch is how long after it was settled a refund is looked at again for the first time.
const firstRefundWatch = time.Hour

// settleRow moves a row to where the provider shows its refund. At the provider a refund is pending, then succeeded, then failed,
// and never goes back: what would lead back is older than what is known.
func (p *Payments) settleRow(b *pgx.Batch, d *dossier, f *refund, x ProviderRefund) (domain.Move, error) {
	unproved := f.Status == refundPending || f.Status == refundFailed && f.ProviderRefundID == "" // refused, and there all the same
	switch {
	case !x.alive() && f.Status != refundFailed:
		code := x.FailureCode
		if code == "" {
			code = x.Status
		}
		return p.failRow(b, d, f, x.ID, code)
	case x.Status == RefundSucceeded && unproved:
		return p.succeedRow(b, d, f, x.ID)
	case x.alive() && unproved && f.ProviderRefundID == "":
		wait := f.Status == refundFailed // its effect is finished or parked
		f.Status, f.ProviderRefundID, f.FailureCode = refundPending, x.ID, ""
		postgres.Exec(b, "note that the provider has accepted a refund", `
			UPDATE refunds
			   SET status = 'pending', provider_refund_id = $2, failure_code = NULL, settled_at = NULL, updated_at = clock_timestamp(),
			       watch_at = CASE WHEN $3 THEN clock_timestamp() + $4::interval END
			 WHERE id = $1`, f.ID, x.ID, wait, firstRefundWatch)
		ledger.Bring(b, d.payment.ID)
	}
	return domain.Move{}, nil
}

// succeedRow queues that a refund has been made, and tells of it.
func (p *Payments) succeedRow(b *pgx.Batch, d *dossier, f *refund, providerID string) (domain.Move, error) {
	f.Status, f.ProviderRefundID, f.FailureCode = refundSucceeded, providerID, ""
	postgres.ExecAnd(b, "settle a refund", oneRow, `
		UPDATE refunds
		   SET status = 'succeeded', provider_refund_id = $2, failure_code = NULL, settled_at = clock_timestamp(), updated_at = clock_timestamp(),
		       watches = 0, watch_at = clock_timestamp() + $3::interval
		 WHERE id = $1 AND status <> 'succeeded'`, f.ID, providerID, firstRefundWatch)
	ledger.Bring(b, d.payment.ID)
	if f.effect() != (domain.EffectID{}) {
		outbox.Done(b, f.effect())
		f.Open = false
	}
	return p.tellOfRefund(b, d, *f, domain.EventRefunded)
}

// failRow queues that a refund has given nothing back, or nothing any more, and tells of it: its amount is left again. Where the
// money is owed, by the refund's reason or since the customer's cancellation has counted on it, a person has to see to it, and a
// replay takes the next key; otherwise the effect is over.
func (p *Payments) failRow(b *pgx.Batch, d *dossier, f *refund, providerID, code string) (domain.Move, error) {
	f.Status, f.FailureCode = refundFailed, code
	if providerID != "" {
		f.ProviderRefundID = providerID
	}
	postgres.ExecAnd(b, "settle a refund", oneRow, `
		UPDATE refunds
		   SET status = 'failed', provider_refund_id = nullif($2, ''), failure_code = nullif($3, ''), settled_at = clock_timestamp(),
		       updated_at = clock_timestamp(), watch_at = NULL
		 WHERE id = $1 AND status <> 'failed'`, f.ID, f.ProviderRefundID, code)
	ledger.Bring(b, d.payment.ID)
	if c := d.lastOf(*f); c != nil {
		concludeCall(b, c, Rejected)
	}
	why := "the provider did not make the refund"
	if code != "" {
		why += ": " + code
	}
	switch {
	case d.left(f.ID) == 0 && !d.balance.Returns(): // what a dispute has taken may come back
		finish(b, f, why)
	case f.owed(), f.Reason == reasonRequested && d.countedOn():
		p.parkFailed(b, d, f, why)
	default:
		finish(b, f, why)
		p.oweAgain(b, d, f, why)
	}
	return p.tellOfRefund(b, d, *f, domain.EventRefundFailed)
}

// finish queues that nothing is left to do for a refund, if it is ours.
func finish(b *pgx.Batch, f *refund, why string) {
	if f.effect() == (domain.EffectID{}) {
		return
	}
	outbox.Note(b, f.effect(), why, 0)
	outbox.Done(b, f.effect())
	f.Open = false
}

// parkFailed leaves a refund that has failed to a person, whose replay takes the next key. One whose effect is finished gets a new one.
func (p *Payments) parkFailed(b *pgx.Batch, d *dossier, f *refund, why string) {
	p.cryOut(*d, *f, why)
	if !f.Open {
		f.EffectID, f.Open = outbox.Append(b, d.booking.ID, domain.EffectRefund).UUID, true
		postgres.Exec(b, "give a refund a new effect", `UPDATE refunds SET effect_id = $2 WHERE id = $1`, f.ID, f.EffectID)
	}
	outbox.Park(b, f.effect(), why)
}

// oweAgain sees to what is owed where a refund has failed that had taken the place of one of ours: ours that had failed for that
// is parked. Where ours gave back only the rest, a person has to ask for what is missing, and is told so aloud.
func (p *Payments) oweAgain(b *pgx.Batch, d *dossier, f *refund, why string) {
	missing := d.countedOn()
	for i := range d.refunds {
		o := &d.refunds[i]
		switch {
		case !o.owed():
		case o.Status != refundFailed:
			missing = missing || o.Reason == reasonLateSuccess && d.left(uuid.Nil) > 0
		case !o.Open:
			p.parkFailed(b, d, o, "another refund had given back what is owed, and has failed: "+why)
			return
		default:
			return // it is a person's already
		}
	}
	if missing {
		p.logger.Error("a refund has failed, and no refund of ours gives it back although the customer is owed it: ask for one",
			"booking_id", d.booking.ID, "refund_id", f.ID, "reason", why)
	}
}

// tellOfRefund queues the event, and raises the booking's sequence in d, so that one transaction can tell of several.
func (p *Payments) tellOfRefund(b *pgx.Batch, d *dossier, f refund, event domain.EventType) (domain.Move, error) {
	m := domain.Move{Booking: d.booking.Status, Reason: d.booking.EndingReason, Payment: d.payment.Status, Event: event}
	err := tell(b, *d, m, domain.EventData{Refund: &domain.RefundData{
		RefundID: f.id(), Amount: f.total(), Reason: f.Reason, FailureCode: f.FailureCode,
		Refunded: domain.Money{Amount: d.given(refundSucceeded), Currency: d.payment.Currency},
	}})
	d.booking.EventSeq++
	return m, err
}
