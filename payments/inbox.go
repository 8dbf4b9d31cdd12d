package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/internal/postgres"
)

// Verifier tells the provider's deliveries from everybody else's.
type Verifier interface {
	// Verify returns the event in a delivery, or ErrSignature, ErrSignatureAge or ErrEventUnreadable.
	Verify(signature string, body []byte) (Event, error)
}

// Inbox takes in what the provider delivers. It acts on nothing: a receipt is stored, and the reconciler looks.
type Inbox struct {
	pool     *pgxpool.Pool
	verifier Verifier
	meter    *Meter
}

// NewInbox makes an inbox. The meter may be nil.
func NewInbox(pool *pgxpool.Pool, verifier Verifier, meter *Meter) *Inbox {
	return &Inbox{pool: pool, verifier: verifier, meter: meter.orNew()}
}

// Receive verifies a delivery and stores its receipt, and returns the event's id. Only once it returns without an error
// may the provider be told that the delivery has arrived: it is forgotten there, and known here. An event that is here
// already is no error. Any other error than the three of Verify means that nothing is known to be stored.
func (i *Inbox) Receive(ctx context.Context, signature string, body []byte) (eventID string, err error) {
	e, err := i.verifier.Verify(signature, body)
	if err != nil {
		i.meter.delivered(refusal(err))
		return "", err
	}
	i.meter.lag(time.Since(e.Created))
	stored, err := storeEvents(ctx, i.pool, []Event{e}, viaWebhook)
	if err != nil {
		i.meter.delivered("not_stored")
		return e.ID, err
	}
	if len(stored) == 0 {
		i.meter.delivered("repeated")
		return e.ID, nil
	}
	i.meter.delivered("stored")
	i.meter.stored(e, viaWebhook)
	return e.ID, nil
}

// refusal names a refusal for the metrics.
func refusal(err error) string {
	switch {
	case errors.Is(err, ErrSignature):
		return "bad_signature"
	case errors.Is(err, ErrSignatureAge):
		return "bad_time"
	default:
		return "unreadable"
	}
}

// How a receipt came to us.
const (
	viaWebhook = "webhook"
	viaSweep   = "sweep"
)

// storeEvents stores the receipts of events that are not here yet, in one statement, and returns those. A type that
// nobody acts on is stored as ignored.
func storeEvents(ctx context.Context, q postgres.Querier, events []Event, via string) ([]Event, error) {
	if len(events) == 0 {
		return nil, nil
	}
	byID := make(map[string]Event, len(events))
	ids, rows := make([]string, 0, len(events)), make([]receipt, 0, len(events))
	for _, e := range events {
		if _, twice := byID[e.ID]; twice {
			continue
		}
		byID[e.ID] = e
		ids = append(ids, e.ID)
		rows = append(rows, newReceipt(e))
	}
	stored, err := q.Query(ctx, `
		INSERT INTO provider_events (id, type, livemode, object_type, object_id, intent_id, booking_id, payment_id, request_key,
		                             created_at, via, status, finished_at)
		SELECT id, type, livemode, object_type, object_id, intent_id, booking_id, payment_id, request_key,
		       created_at, $2, status, CASE WHEN status <> 'pending' THEN clock_timestamp() END
		  FROM jsonb_to_recordset($1::jsonb) AS e (id text, type text, livemode boolean, object_type text, object_id text,
		       intent_id text, booking_id text, payment_id text, request_key text, created_at timestamptz, status text)
		    ON CONFLICT ON CONSTRAINT provider_events_pkey DO NOTHING
		RETURNING id`, rows, via)
	if err != nil {
		return nil, fmt.Errorf("store %d events: %w", len(ids), err)
	}
	defer stored.Close()
	var fresh []Event
	for stored.Next() {
		var id string
		if err := stored.Scan(&id); err != nil {
			return nil, fmt.Errorf("store %d events: %w", len(ids), err)
		}
		fresh = append(fresh, byID[id])
	}
	if err := stored.Err(); err != nil {
		return nil, fmt.Errorf("store %d events: %w", len(ids), err)
	}
	return fresh, nil
}

// receipt is a new row of provider_events.
type receipt struct {
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Livemode   bool      `json:"livemode"`
	ObjectType string    `json:"object_type"`
	ObjectID   string    `json:"object_id"`
	IntentID   string    `json:"intent_id"`
	BookingID  string    `json:"booking_id"`
	PaymentID  string    `json:"payment_id"`
	RequestKey string    `json:"request_key"`
	CreatedAt  time.Time `json:"created_at"`
	Status     string    `json:"status"`
}

func newReceipt(e Event) receipt {
	r := receipt{
		ID: e.ID, Type: e.Type, Livemode: e.Livemode, ObjectType: e.ObjectType, ObjectID: e.ObjectID, IntentID: e.IntentID,
		BookingID: e.BookingID, PaymentID: e.PaymentID, RequestKey: e.Key, CreatedAt: e.Created, Status: receiptPending,
	}
	if !e.heeded() {
		r.Status = receiptIgnored
	}
	return r
}
