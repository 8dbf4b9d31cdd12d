package payments

import (
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
)

// disputeRow is a row of disputes.
type disputeRow struct {
	ID        string
	PaymentID uuid.UUID
	Amount    int64
	Currency  string
	Reason    string
	Status    domain.DisputeStatus
	Withdrawn bool
}

func (r disputeRow) dispute() domain.Dispute {
	return domain.Dispute{
		ID: r.ID, Status: r.Status, Amount: domain.Money{Amount: r.Amount, Currency: r.Currency}, Reason: r.Reason, Withdrawn: r.Withdrawn,
	}
}

// readDisputes queues a reading of all disputes of these bookings' payments: those that are over first, then the older.
func readDisputes(b *pgx.Batch, bookings []uuid.UUID, into *[]disputeRow) {
	postgres.All(b, "read disputes", into, `
		SELECT d.id, d.payment_id, d.amount, d.currency, d.reason, d.status, d.withdrawn
		  FROM disputes d JOIN payments p ON p.id = d.payment_id
		 WHERE p.booking_id = ANY ($1)
		 ORDER BY d.status IN ('won', 'lost', 'warning_closed') DESC, d.opened_at, d.created_at, d.id`, bookings)
}

// disputeMove is what a sight of one dispute has changed.
type disputeMove struct {
	domain.DisputeMove

	seen  domain.Dispute
	isNew bool
}

// settleDisputes queues what listed disputes change, the oldest first. The listing must not be older than the rows, which
// are read under the booking's lock.
func settleDisputes(b *pgx.Batch, d dossier, known []disputeRow, found []ProviderDispute) ([]disputeMove, error) {
	moves := make([]disputeMove, 0, len(found))
	changed := false
	for _, seen := range slices.Backward(found) {
		var before *domain.Dispute
		for _, row := range known {
			if row.ID == seen.ID {
				before = new(domain.Dispute)
				*before = row.dispute()
			}
		}
		m := disputeMove{DisputeMove: domain.SettleDispute(before, seen.Dispute), seen: seen.Dispute, isNew: before == nil}
		moves = append(moves, m)
		if m.Changed {
			changed = true
			writeDispute(b, d, seen)
		}
		if m.Tell {
			if err := tellOfDispute(b, d, seen.Dispute); err != nil {
				return nil, err
			}
			d.booking.EventSeq++ // of the next one
		}
	}
	if changed {
		postgres.ExecAnd(b, "note that a payment's disputes have moved", oneRow,
			`UPDATE payments SET version = version + 1 WHERE id = $1 AND version = $2`, d.payment.ID, d.payment.Version)
		ledger.Bring(b, d.payment.ID)
	}
	return moves, nil
}

func writeDispute(b *pgx.Batch, d dossier, seen ProviderDispute) {
	postgres.ExecAnd(b, "write a dispute", oneRow, `
		INSERT INTO disputes AS d (id, payment_id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp(), clock_timestamp())
		    ON CONFLICT ON CONSTRAINT disputes_pkey
		    DO UPDATE SET amount = $3, currency = $4, reason = $5, status = $6, withdrawn = $7, updated_at = clock_timestamp()
		        WHERE d.payment_id = $2`,
		seen.ID, d.payment.ID, seen.Amount.Amount, seen.Amount.Currency, seen.Reason, seen.Status, seen.Withdrawn, seen.Opened)
}

// noteClosing queues when a dispute was closed, which only its event tells. Nothing else of the event is believed: a dispute
// that the provider does not show as closed has no such time.
func noteClosing(b *pgx.Batch, c claimed) {
	if c.Type != eventDisputeClosed {
		return
	}
	postgres.Exec(b, "note when a dispute was closed", `
		UPDATE disputes SET closed_at = least(closed_at, $2), updated_at = clock_timestamp()
		 WHERE id = $1 AND status IN ('won', 'lost', 'warning_closed')`, c.ObjectID, c.CreatedAt)
}

// tellOfDispute queues the event that tells where a dispute stands now.
func tellOfDispute(b *pgx.Batch, d dossier, seen domain.Dispute) error {
	m := domain.Move{Booking: d.booking.Status, Reason: d.booking.EndingReason, Payment: d.payment.Status, Event: domain.EventDisputed}
	return tell(b, d, m, domain.EventData{
		Dispute: &domain.DisputeData{DisputeID: seen.ID, Status: seen.Status, Amount: seen.Amount, Reason: seen.Reason},
	})
}
