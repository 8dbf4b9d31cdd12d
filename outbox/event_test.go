package outbox

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/testdb"
)

func eventTypes() []domain.EventType {
	return []domain.EventType{
		domain.EventHeld, domain.EventActionRequired, domain.EventPaymentDeclined, domain.EventConfirmed,
		domain.EventExpired, domain.EventCancelled, domain.EventFailed, domain.EventRefunded, domain.EventRefundFailed,
		domain.EventDisputed,
	}
}

// TestGoldenEventsAreEqualBytesForEver (G6): what consumers parse is golden, from the row in the database to the bytes. A
// clock, a map's order or a new field in the envelope turns it red.
func TestGoldenEventsAreEqualBytesForEver(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	for i, typ := range eventTypes() {
		e := storedEvent(t, tx, int64(i+1), typ)
		m, err := message(e)
		require.NoError(t, err)
		again, err := message(e)
		require.NoError(t, err)
		require.Equal(t, m, again)
		require.Equal(t, "bookings.v1."+string(typ), m.Subject)
		golden(t, filepath.Join("testdata", "events", string(typ)+".json"), m.Body)

		var ce event.Event
		require.NoError(t, json.Unmarshal(m.Body, &ce))
		require.NoError(t, ce.Validate())
		require.Equal(t, e.ID.String(), ce.ID())
		require.Equal(t, e.BookingID.String(), ce.Subject())
	}
}

// TestGoldenSkippedEvent (G6): what takes the place of an event that was discarded.
func TestGoldenSkippedEvent(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	e := storedEvent(t, tx, 7, domain.EventConfirmed)
	skipped, err := domain.ParseID[domain.EffectID]("0190b7a0-0000-7000-8000-000000000006")
	require.NoError(t, err)
	payload, err := json.Marshal(domain.SkippedData{BookingID: e.BookingID, EventID: skipped, EventType: domain.EventConfirmed})
	require.NoError(t, err)
	e.EventType = domain.EventSkipped
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT $1::text::jsonb`, string(payload)).Scan(&e.Payload))
	m, err := message(e)
	require.NoError(t, err)
	golden(t, filepath.Join("testdata", "events", "skipped.json"), m.Body)
}

// TestHeldEventReadsLikeTheOthers: the held event's payload is written by SQL, the others' by Go. Consumers see one
// shape: the same members, and times in the same layout.
func TestHeldEventReadsLikeTheOthers(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	held, err := Load(t.Context(), tx, book(t, tx).held)
	require.NoError(t, err)
	var data domain.EventData
	require.NoError(t, json.Unmarshal(held.Payload, &data))
	require.Equal(t, held.BookingID, data.BookingID)
	again, err := json.Marshal(data)
	require.NoError(t, err)
	require.JSONEq(t, string(again), string(held.Payload))
}

// storedEvent writes an event with fixed values and reads it back, so that it is what PostgreSQL made of it.
func storedEvent(t *testing.T, tx pgx.Tx, seq int64, typ domain.EventType) Effect {
	t.Helper()
	made := book(t, tx)
	at := time.Date(2030, 5, 1, 10, 0, 0, 123456000, time.UTC)
	fixed := func(last string) string { return "0190b7a0-0000-7000-8000-00000000000" + last }
	booking, err := domain.ParseID[domain.BookingID](fixed("1"))
	require.NoError(t, err)
	payment, err := domain.ParseID[domain.PaymentID](fixed("2"))
	require.NoError(t, err)
	resource, err := domain.ParseID[domain.ResourceID](fixed("3"))
	require.NoError(t, err)
	data := domain.EventData{
		BookingID: booking, PaymentID: payment, ResourceID: resource,
		Status: domain.BookingHeld, PaymentStatus: domain.PaymentPending,
		Start: domain.Instant(at), End: domain.Instant(at.Add(time.Hour)), Quantity: 2,
		Total: domain.Money{Amount: 5000, Currency: "EUR"}, HoldExpiresAt: domain.Instant(at.Add(10 * time.Minute)),
	}
	if typ == domain.EventPaymentDeclined {
		data.DeclineCode = "insufficient_funds"
	}
	if typ == domain.EventRefunded || typ == domain.EventRefundFailed {
		refund, err := domain.ParseID[domain.RefundID](fixed("5"))
		require.NoError(t, err)
		data.Status, data.PaymentStatus = domain.BookingExpired, domain.PaymentSucceeded
		data.Refund = &domain.RefundData{RefundID: refund, Amount: data.Total, Reason: "late_success", Refunded: data.Total}
		if typ == domain.EventRefundFailed {
			data.Refund.FailureCode, data.Refund.Refunded.Amount = "charge_disputed", 0
		}
	}
	if typ == domain.EventDisputed {
		data.Status, data.PaymentStatus = domain.BookingConfirmed, domain.PaymentSucceeded
		data.Dispute = &domain.DisputeData{DisputeID: "dp_1Golden", Status: domain.DisputeNeedsResponse, Amount: data.Total, Reason: "fraudulent"}
	}
	require.NoError(t, write(t.Context(), tx, func(q *pgx.Batch) error { return AppendEvent(q, made.booking, seq+1, typ, data) }))
	var id domain.EffectID
	require.NoError(t, tx.QueryRow(t.Context(),
		`SELECT id FROM outbox WHERE booking_id = $1 AND event_seq = $2`, made.booking, seq+1).Scan(&id))
	e, err := Load(t.Context(), tx, id)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), e.CreatedAt, time.Minute)
	// Only what differs from run to run is replaced.
	e.ID, err = domain.ParseID[domain.EffectID](fixed("4"))
	require.NoError(t, err)
	e.BookingID, e.CreatedAt, e.EventSeq = booking, at, seq
	return e
}
