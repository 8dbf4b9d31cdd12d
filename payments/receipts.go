package payments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
)

// Where a receipt stands.
const (
	receiptPending = "pending" // not acted on yet, or kept until what it is about is here
	receiptSettled = "settled" // it made us look, and what was seen is settled
	receiptIgnored = "ignored" // it could teach us nothing
	receiptForeign = "foreign" // of another application on the account, or of its other mode
	receiptParked  = "parked"  // never understood: for a person
)

// claimed is a receipt whose turn it is.
type claimed struct {
	ID         string
	Type       string
	CreatedAt  time.Time // by the provider's clock
	Livemode   bool
	ObjectType string
	ObjectID   string
	IntentID   string
	BookingID  string
	PaymentID  string
	Attempts   int
	Waited     time.Duration // since it was received, by the database's clock
}

// verdict is what becomes of a receipt. Pending means: not yet, look again later.
type verdict struct {
	status string
	why    string
}

// SettleEvent takes one receipt that is due and acts on it: it reads the intent that the event names, and settles what the
// provider shows. It tells whether there was one. An event is a hint and nothing else, so it may be late, doubled or out
// of order, two receipts of one change may be acted on at once, and one may be acted on again after a crash.
func (p *Payments) SettleEvent(ctx context.Context) (bool, error) {
	c, err := p.claimEvent(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v, err := p.heed(ctx, c)
	if err != nil {
		return true, fmt.Errorf("settle event %s: %w", c.ID, err) // the lease runs out, and it is tried again
	}
	return true, p.finishEvent(ctx, c, v)
}

// heed decides what to do about an event, and does it.
func (p *Payments) heed(ctx context.Context, c claimed) (verdict, error) {
	if c.Livemode != p.gateway.Livemode() {
		return verdict{receiptForeign, "of the account's other mode, live or test"}, nil
	}
	about, found, err := p.aboutPayment(ctx, c)
	disputed := slices.Contains(disputeEvents(), c.Type)
	success := c.Type == eventSucceeded || c.Type == eventChargeSucceeded || disputed // what is disputed was taken
	switch {
	case err != nil:
		return verdict{}, err
	case !found && !c.namesUs():
		return verdict{receiptForeign, "of another application on the account"}, nil
	case !found:
		return verdict{receiptPending, "it names a booking that is not here"}, nil
	case c.IntentID != "" && about.intent == c.IntentID && disputed:
		return p.lookForDispute(ctx, c, about)
	case c.IntentID != "" && about.intent == c.IntentID && c.tellsOfRefund():
		return p.lookForRefundEvent(ctx, c, about)
	case c.IntentID != "" && about.intent == c.IntentID:
		return p.lookForEvent(ctx, c, about, success)
	case c.IntentID != "" && about.intent == "" && !about.status.Closed():
		return verdict{receiptPending, "the intent's id is not committed yet"}, nil
	case success: // no confirm is ever sent for such an intent
		p.logger.ErrorContext(ctx, "an event tells of money on an intent that is not the payment's: look at it in the provider's dashboard",
			"event_id", c.ID, "intent_id", c.IntentID, "booking_id", about.booking)
		return verdict{receiptParked, "it tells of money on an intent that is not the payment's"}, nil
	default:
		return verdict{receiptIgnored, "it is about an intent that is not the payment's"}, nil
	}
}

// tellsOfRefund tells whether the event is about money that goes back.
func (c claimed) tellsOfRefund() bool { return slices.Contains(refundEvents(), c.Type) }

// lookForEvent reads the intent, unless it could show nothing that is not settled already.
func (p *Payments) lookForEvent(ctx context.Context, c claimed, about subject, success bool) (verdict, error) {
	if about.status == domain.PaymentSucceeded || about.status == domain.PaymentCanceled && c.Type == eventCanceled {
		return verdict{receiptIgnored, "what it tells is settled already"}, nil
	}
	s, err := p.look(ctx, about.booking, nil)
	switch {
	case errors.Is(err, ErrUnread):
		return verdict{receiptPending, unread(err)}, nil
	case err != nil:
		return verdict{}, err
	case s.move.Stale:
		return verdict{receiptPending, "something was sent while we looked"}, nil
	case success && s.fact != domain.FactSucceeded:
		return verdict{receiptPending, "it tells of a success that the provider does not show yet"}, nil
	default:
		return verdict{status: receiptSettled}, nil
	}
}

// lookForSuccess settles what was taken, before what is told of it: what went back or is disputed was taken first.
func (p *Payments) lookForSuccess(ctx context.Context, c claimed, about subject) (verdict, error) {
	if about.status == domain.PaymentSucceeded {
		return verdict{status: receiptSettled}, nil
	}
	return p.lookForEvent(ctx, c, about, true)
}

// namesUs tells whether the event's object carries metadata as we write it. Others may use the same names, but hardly
// for such ids.
func (c claimed) namesUs() bool {
	return parseUUID(c.PaymentID) != nil || parseUUID(c.BookingID) != nil
}

func parseUUID(s string) *uuid.UUID {
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s {
		return nil
	}
	return &id
}

// subject is the payment that an event is about.
type subject struct {
	booking domain.BookingID
	intent  string
	status  domain.PaymentStatus
}

// aboutPayment finds it by the intent, whose id the provider gives out once, and otherwise by our own ids in the
// metadata, which are there from the intent's first moment on, while its id is not committed here before the answer.
func (p *Payments) aboutPayment(ctx context.Context, c claimed) (subject, bool, error) {
	var s subject
	err := p.pool.QueryRow(ctx, `
		SELECT booking_id, coalesce(provider_intent_id, ''), status FROM (
		    SELECT p.*, 1 AS preference FROM payments p WHERE p.provider_intent_id = nullif($1, '')
		    UNION ALL
		    SELECT p.*, 2 FROM payments p WHERE p.id = $2
		    UNION ALL
		    SELECT p.*, 3 FROM payments p WHERE p.booking_id = $3
		) AS candidates
		 ORDER BY preference LIMIT 1`, c.IntentID, parseUUID(c.PaymentID), parseUUID(c.BookingID),
	).Scan(&s.booking.UUID, &s.intent, &s.status)
	if errors.Is(err, pgx.ErrNoRows) {
		return subject{}, false, nil
	}
	if err != nil {
		return subject{}, false, fmt.Errorf("find the payment of an event: %w", err)
	}
	return s, true, nil
}

// claimEvent takes the receipt that has been due longest and puts its next turn a lease ahead, so that nobody else takes
// it meanwhile and a crash delays it by no more than that.
func (p *Payments) claimEvent(ctx context.Context) (claimed, error) {
	var c claimed
	var waited float64
	err := p.pool.QueryRow(ctx, `
		UPDATE provider_events AS e
		   SET attempts = attempts + 1, due_at = clock_timestamp() + $1::interval
		 WHERE id = (SELECT id FROM provider_events
		              WHERE status = 'pending' AND due_at <= clock_timestamp()
		              ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING id, type, created_at, livemode, object_type, object_id, intent_id, booking_id, payment_id, attempts,
		          extract(epoch FROM clock_timestamp() - received_at)::float8`, p.config.Lease,
	).Scan(&c.ID, &c.Type, &c.CreatedAt, &c.Livemode, &c.ObjectType, &c.ObjectID, &c.IntentID, &c.BookingID, &c.PaymentID, &c.Attempts, &waited)
	if err != nil {
		return claimed{}, fmt.Errorf("claim an event: %w", err)
	}
	c.Waited = time.Duration(waited * float64(time.Second))
	return c, nil
}

// finishEvent writes down what became of a receipt. One that has to wait is looked at again, at growing intervals, for
// as long as the provider itself would deliver it again, and then left to a person.
func (p *Payments) finishEvent(ctx context.Context, c claimed, v verdict) error {
	if v.status == receiptPending && c.Waited >= p.config.EventKeep {
		v.status = receiptParked
	}
	if v.status == receiptParked {
		p.logger.ErrorContext(ctx, "an event is parked", "event_id", c.ID, "type", c.Type, "why", v.why)
	}
	var err error
	if v.status == receiptPending {
		_, err = p.pool.Exec(ctx, `
			UPDATE provider_events SET due_at = clock_timestamp() + $2::interval, last_error = $3 WHERE id = $1 AND status = 'pending'`,
			c.ID, p.eventBackoff(c.Attempts), v.why)
	} else {
		_, err = p.pool.Exec(ctx, `
			UPDATE provider_events SET status = $2, finished_at = clock_timestamp(), last_error = nullif($3, '')
			 WHERE id = $1 AND status = 'pending'`, c.ID, v.status, v.why)
	}
	if err != nil {
		return fmt.Errorf("finish event %s: %w", c.ID, err)
	}
	p.meter.finished(c, v.status)
	return nil
}

// eventBackoff is the wait after the n-th attempt: it doubles, up to ten minutes.
func (p *Payments) eventBackoff(n int) time.Duration {
	return min(p.config.Backoff<<min(max(n-1, 0), 16), 10*time.Minute)
}
