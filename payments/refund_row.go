package payments

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// Why money goes back.
const (
	reasonLateSuccess  = string(domain.RefundLateSuccess)  // it was taken although its booking has ended: all of it
	reasonCancellation = string(domain.RefundCancellation) // a booking was cancelled: what its policy says
	reasonRequested    = "requested"                       // a person has asked for it
	reasonDashboard    = "dashboard"                       // somebody has given it back at the provider; it is only written down
)

// Where a refund stands. A failed one has given nothing back: its amount is left again.
const (
	refundPending   = "pending"
	refundSucceeded = "succeeded"
	refundFailed    = "failed"
)

// refund is a row of refunds.
type refund struct {
	ID               uuid.UUID
	EffectID         uuid.UUID // zero: made by hand at the provider
	Open             bool      // its effect is not finished
	Amount           int64
	Currency         string
	Reason           string
	Category         string
	RequestedBy      string
	RequestReason    string
	Status           string
	HeldBack         bool // the ceiling has parked it before
	ProviderRefundID string
	FailureCode      string
	CreatedAt        time.Time
	SettledAt        *time.Time
}

func (f refund) id() domain.RefundID { return domain.RefundID{UUID: f.ID} }

func (f refund) effect() domain.EffectID { return domain.EffectID{UUID: f.EffectID} }

func (f refund) total() domain.Money { return domain.Money{Amount: f.Amount, Currency: f.Currency} }

// owed tells whether the money is the customer's whatever becomes of this refund: then a failure is for a person to see to.
// What a person has asked for, the same person can ask for again.
func (f refund) owed() bool { return owed(f.Reason) }

func owed(reason string) bool { return reason == reasonLateSuccess || reason == reasonCancellation }

// countedOn tells whether the customer's cancellation gives back less than the policy says, because other refunds, or disputes, had
// taken the rest at that time. If such a refund fails, the rest is owed.
func (d dossier) countedOn() bool {
	c := d.booking.Cancellation
	if c == nil {
		return false
	}
	return d.booking.RefundPolicy.Terms(d.booking.Start, c.RequestedAt)[0].Of(d.booking.Total, 1).Amount > c.Refund.Amount
}

// readRefunds queues the reading of all refunds of a booking's payment, oldest first.
func readRefunds(b *pgx.Batch, id domain.BookingID, into *[]refund) {
	postgres.All(b, "read the refunds of a payment", into, `
		SELECT id, coalesce(effect_id, '00000000-0000-0000-0000-000000000000') AS effect_id,
		       EXISTS (SELECT FROM outbox o WHERE o.id = effect_id AND o.status IN ('pending', 'in_doubt', 'parked')) AS open, amount, currency, reason,
		       coalesce(category, '') AS category, coalesce(requested_by, '') AS requested_by,
		       coalesce(request_reason, '') AS request_reason, status, held_back_at IS NOT NULL AS held_back,
		       coalesce(provider_refund_id, '') AS provider_refund_id, coalesce(failure_code, '') AS failure_code, created_at, settled_at
		  FROM refunds
		 WHERE payment_id = (SELECT id FROM payments WHERE booking_id = $1)
		 ORDER BY created_at, id`, id.UUID)
}

// left is what may still be given back beside one refund, or, for the zero id, beside all: what was taken, less what disputes have
// taken, less every refund that has not failed. It is never stored, but added up from the rows under the payment's lock
// (lockMoney), and follows what is decided in this transaction.
func (d dossier) left(beside uuid.UUID) int64 {
	left := d.balance.Captured - d.balance.Disputed
	for _, f := range d.refunds {
		if f.ID != beside && f.Status != refundFailed {
			left -= f.Amount
		}
	}
	return max(left, 0)
}

// given is the sum of the refunds with a status.
func (d dossier) given(status string) (sum int64) {
	for _, f := range d.refunds {
		if f.Status == status {
			sum += f.Amount
		}
	}
	return sum
}

// refundOf is the refund that an effect makes, or nil.
func (d dossier) refundOf(e domain.EffectID) *refund {
	for i := range d.refunds {
		if d.refunds[i].EffectID == e.UUID {
			return &d.refunds[i]
		}
	}
	return nil
}

// lastOf is the newest send of a refund, or nil.
func (d dossier) lastOf(f refund) *call {
	var newest *call
	for i := range d.calls {
		if d.calls[i].RefundID == f.ID {
			newest = &d.calls[i]
		}
	}
	return newest
}

// order says what is to be given back, and why.
type order struct {
	amount   int64 // minor units; 0: all that was taken
	reason   string
	category string
	by       outbox.Actor // who asked, where a person did,
	words    string       // and in which words
}

// errExceeds says that the sum of all refunds that have not failed would be more than was taken.
var errExceeds = errors.New("it would give back more than was taken")

// beginRefund queues a refund and the effect that makes it, and says which. The batch fails if that would give back more than
// was taken, unless it is owed: then no settlement fails because somebody was quicker by hand, and no more is sent than is left
// (beginKey). The payment is locked, and settled as succeeded by the batch itself at the latest.
func beginRefund(b *pgx.Batch, d dossier, o order) (domain.RefundID, domain.EffectID) {
	id, effect := domain.NewID[domain.RefundID](), outbox.Append(b, d.booking.ID, domain.EffectRefund)
	postgres.ExecAnd(b, fmt.Sprintf("begin a refund (%s)", o.reason), func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != 1 {
			return errExceeds
		}
		return nil
	}, `
		INSERT INTO refunds (id, payment_id, effect_id, amount, currency, reason, category, requested_by, request_reason, created_at, updated_at)
		SELECT $1, payment_id, $2, coalesce(nullif($3, 0), captured), currency, $4, nullif($5, ''), nullif($6, ''), nullif($7, ''),
		       clock_timestamp(), clock_timestamp()
		  FROM payment_balances
		 WHERE payment_id = $8 AND captured > 0 AND ($9 OR $3 <= refundable)`,
		id, effect, o.amount, o.reason, o.category, string(o.by), o.words, d.payment.ID, owed(o.reason))
	return id, effect
}

// giveBack begins the refund that a move calls for, and returns what there is to tell of it; nil: none.
func giveBack(b *pgx.Batch, d dossier, m domain.Move) *domain.RefundData {
	o, back := order{reason: string(m.Refund)}, d.booking.Total // all of it, whatever sum that was
	if m.Refund == domain.RefundCancellation && d.booking.Cancellation != nil {
		back = d.booking.Cancellation.Refund
		o.amount = back.Amount
	}
	if m.Refund == "" || back.Amount == 0 {
		return nil
	}
	id, _ := beginRefund(b, d, o)
	return &domain.RefundData{
		RefundID: id, Amount: back, Reason: string(m.Refund),
		Refunded: domain.Money{Amount: d.given(refundSucceeded), Currency: back.Currency},
	}
}
