package payments

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Story is all that our tables tell of a booking's money: each list the newest first, and at most so long as was asked for.
// It holds no card, no token and no secret.
type Story struct {
	Payment  StoryPayment
	Sends    []StorySend
	Refunds  []StoryRefund
	Disputes []StoryDispute
	Receipts []StoryReceipt
}

// StoryPayment is where the payment stands.
type StoryPayment struct {
	ID            uuid.UUID
	Status        domain.PaymentStatus
	Amount        int64
	Received      int64
	Currency      string
	Card          int // which card of the customer's
	IntentID      string
	DeclineCode   string
	FailureCode   string
	UpdatedAt     time.Time
	ChargeID      string // these four once the charge's transaction is read
	TransactionID string
	Fee           int64
	FeeCurrency   string
}

// StorySend is all sends of one key.
type StorySend struct {
	Operation   domain.Operation
	Ordinal     int
	RefundID    uuid.UUID // zero: of no refund
	Key         string
	FirstSentAt time.Time
	LastSentAt  time.Time
	Sends       int
	Outcome     string
	HTTPStatus  int // of the newest answer, as the next three; 0: none
	ErrorCode   string
	RequestID   string
	Replayed    bool
}

// StoryRefund is one refund, ours or made by hand at the provider.
type StoryRefund struct {
	ID               uuid.UUID
	Amount           int64
	Currency         string
	Reason           string
	RequestedBy      string
	RequestReason    string
	Status           string
	FailureCode      string
	ProviderRefundID string
	CreatedAt        time.Time
	SettledAt        *time.Time
}

// StoryDispute is one dispute.
type StoryDispute struct {
	ID        string
	Amount    int64
	Currency  string
	Reason    string
	Status    string
	Withdrawn bool
	OpenedAt  time.Time
	CreatedAt time.Time // when it was learned of
	UpdatedAt time.Time
}

// StoryReceipt is one event of the provider's that tells of this booking's money.
type StoryReceipt struct {
	ID         string
	Type       string
	ObjectID   string
	Via        string
	Status     string
	Attempts   int
	Why        string
	ReceivedAt time.Time
	FinishedAt *time.Time
}

// Tell queues the reading of a booking's story into s.
func Tell(b *pgx.Batch, id domain.BookingID, most int, s *Story) {
	postgres.One(b, "read a payment's story", func(row StoryPayment) { s.Payment = row }, `
		SELECT p.id, p.status, p.amount, p.amount_received AS received, p.currency, p.card, coalesce(p.provider_intent_id, '') AS intent_id,
		       coalesce(p.decline_code, '') AS decline_code, coalesce(p.failure_code, '') AS failure_code, p.updated_at,
		       coalesce(t.source_id, '') AS charge_id, coalesce(t.id, '') AS transaction_id, coalesce(t.fee, 0) AS fee,
		       coalesce(t.currency, '') AS fee_currency
		  FROM payments p
		  LEFT JOIN LATERAL (SELECT id, source_id, fee, currency FROM provider_transactions
		                      WHERE intent_id = p.provider_intent_id AND intent_id <> '' AND category = 'charge'
		                      ORDER BY created_at, id LIMIT 1) t ON true
		 WHERE p.booking_id = $1`, id)
	postgres.All(b, "read the story of a payment's sends", &s.Sends, `
		SELECT operation, ordinal, coalesce(refund_id, '00000000-0000-0000-0000-000000000000') AS refund_id, key, first_sent_at, last_sent_at,
		       sends, outcome, coalesce(http_status, 0) AS http_status, coalesce(error_code, '') AS error_code,
		       coalesce(request_id, '') AS request_id, coalesce(replayed, false) AS replayed
		  FROM provider_calls
		 WHERE payment_id = (SELECT id FROM payments WHERE booking_id = $1)
		 ORDER BY first_sent_at DESC, key LIMIT $2`, id, most)
	postgres.All(b, "read the story of a payment's refunds", &s.Refunds, `
		SELECT id, amount, currency, reason, coalesce(requested_by, '') AS requested_by, coalesce(request_reason, '') AS request_reason, status,
		       coalesce(failure_code, '') AS failure_code, coalesce(provider_refund_id, '') AS provider_refund_id, created_at, settled_at
		  FROM refunds
		 WHERE payment_id = (SELECT id FROM payments WHERE booking_id = $1)
		 ORDER BY created_at DESC, id LIMIT $2`, id, most)
	postgres.All(b, "read the story of a payment's disputes", &s.Disputes, `
		SELECT id, amount, currency, reason, status, withdrawn, opened_at, created_at, updated_at
		  FROM disputes
		 WHERE payment_id = (SELECT id FROM payments WHERE booking_id = $1)
		 ORDER BY created_at DESC, id LIMIT $2`, id, most)
	postgres.All(b, "read what the provider has told of a payment", &s.Receipts, `
		SELECT id, type, object_id, via, status, attempts, coalesce(last_error, '') AS why, received_at, finished_at
		  FROM provider_events
		 WHERE id IN (SELECT e.id FROM provider_events e JOIN payments p ON p.provider_intent_id = e.intent_id
		               WHERE p.booking_id = $1 AND e.intent_id <> ''
		              UNION
		              SELECT id FROM provider_events WHERE booking_id = $2 AND booking_id <> '')
		 ORDER BY received_at DESC, id LIMIT $3`, id, id.String(), most)
}
