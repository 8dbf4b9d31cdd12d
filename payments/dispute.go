package payments

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Disputer reads what cardholders' banks dispute.
type Disputer interface {
	// Disputes lists all disputes of an intent's charges, newest first. An error means that the listing is incomplete.
	Disputes(ctx context.Context, intentID string) ([]ProviderDispute, error)
}

// ProviderDispute is a dispute as the provider has it.
type ProviderDispute struct {
	domain.Dispute

	IntentID string
	Opened   time.Time // by the provider's clock
}

// Balance is what is left of a payment, in minor units of its currency. It is reckoned in one place, the view
// payment_balances, from the rows of the payment, its refunds and its disputes.
type Balance struct {
	Captured   int64
	Refunded   int64 // by refunds that have not failed, those included of which nothing is known yet
	Disputed   int64 // by disputes that have taken money, or are about to, and not given it back
	Refundable int64 // what is left; never below zero
	Contested  bool  // a dispute is open and no mere inquiry: the provider refuses every refund
	Awaited    bool  // a dispute is won, and its money is not back with us yet
}

// Returns tells whether what a dispute has taken may still come back.
func (b Balance) Returns() bool { return b.Contested || b.Awaited }

// CodeDisputed is the provider's refusal of a refund of a charge that is disputed, and ours.
const CodeDisputed = "charge_disputed"

// ReadBalance queues a reading of the balance of a booking's payment. Whoever decides on it holds the booking's lock.
func ReadBalance(b *pgx.Batch, id domain.BookingID, into *Balance) {
	postgres.One(b, "read the balance of a payment", func(row Balance) { *into = row },
		`SELECT captured, refunded, disputed, refundable, contested, awaited FROM payment_balances WHERE booking_id = $1`, id)
}
