package outbox

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/internal/testnats"
)

func (b *testBundle) discard(t *testing.T, id domain.EffectID) error {
	t.Helper()
	_, as, err := See(t.Context(), b.pool, id)
	require.NoError(t, err)
	return postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		e, err := LockSeen(t.Context(), tx, id, as)
		if err != nil {
			return err
		}
		_, _, err = Discard(t.Context(), tx, e, Signature{ID: uuid.New(), Actor: "ada", Reason: "it can never be encoded"})
		return err
	})
}

// TestADiscardedEventLeavesAMarker (G6): the marker takes the event's place in its booking's order, and what waited behind it goes on,
// also where the marker is the first or the last.
func TestADiscardedEventLeavesAMarker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	made := b.book(t)
	other := b.book(t)
	second, third := b.event(t, made.booking, domain.EventPaymentDeclined), b.event(t, made.booking, domain.EventConfirmed)
	drain := b.drain(js)
	b.exec(t, `UPDATE outbox SET status = 'parked', last_error = 'too large' WHERE id = ANY ($1)`, []uuid.UUID{made.held.UUID, third.UUID})
	require.NoError(t, b.discard(t, made.held))
	events, err := NewEvents(b.pool).After(t.Context(), made.booking, 0)
	require.NoError(t, err)
	require.Equal(t, []Happened{{1, domain.EventSkipped}, {2, domain.EventPaymentDeclined}, {3, domain.EventConfirmed}}, events)

	_, err = drain.Work(t.Context(), Job{Effect: second})
	require.NoError(t, err)
	require.Len(t, told(t, js), 2, "the last is parked still")
	require.NoError(t, b.discard(t, third))
	_, err = drain.Work(t.Context(), Job{Effect: other.held})
	require.NoError(t, err)
	_, err = drain.Work(t.Context(), Job{Effect: third}) // whatever job of the booking runs
	require.NoError(t, err)

	var subjects []string
	for _, m := range told(t, js) {
		var ce struct {
			Subject  string
			Sequence string
			Data     json.RawMessage
		}
		require.NoError(t, json.Unmarshal(m.Data, &ce))
		if ce.Subject != made.booking.String() {
			continue
		}
		subjects = append(subjects, m.Subject+" "+ce.Sequence)
		if m.Subject == "bookings.v1.skipped" {
			var data domain.SkippedData
			require.NoError(t, json.Unmarshal(ce.Data, &data))
			require.Equal(t, made.booking, data.BookingID)
			require.Contains(t, map[domain.EffectID]domain.EventType{made.held: domain.EventHeld, third: domain.EventConfirmed}, data.EventID)
		}
	}
	require.Equal(t, []string{
		"bookings.v1.skipped 0000000001", "bookings.v1.payment_declined 0000000002", "bookings.v1.skipped 0000000003",
	}, subjects)
	require.Zero(t, b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status IN ('pending', 'in_doubt', 'parked')`))
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM operator_actions WHERE action = 'discard' AND after ->> 'status' = 'discarded'`))
	newest, err := NewEvents(b.pool).Newest(t.Context(), []domain.BookingID{made.booking})
	require.NoError(t, err)
	require.EqualValues(t, 3, newest[made.booking])
	page, err := List(t.Context(), b.pool, Filter{Status: domain.EffectDiscarded})
	require.NoError(t, err)
	require.Len(t, page.Rows, 2)
}

// TestDiscardByStatus (G7): only what is parked; a refusal changes nothing and leaves no audit.
func TestDiscardByStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, status := range []domain.EffectStatus{
		domain.EffectPending, domain.EffectInDoubt, domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded, domain.EffectParked,
	} {
		made := b.book(t)
		b.exec(t, `UPDATE outbox SET status = $2, finished_at = CASE WHEN $3 THEN now() END, stream = 'BOOKINGS', stream_sequence = 1 WHERE id = $1`,
			made.held, status, status.Finished())
		before := b.load(t, made.held)
		err := b.discard(t, made.held)
		if status == domain.EffectParked {
			require.NoError(t, err)
			continue
		}
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, status)
		require.Equal(t, before, b.load(t, made.held))
		require.Zero(t, b.count(t, `SELECT count(*) FROM operator_actions WHERE effect_id = $1`, made.held))
		require.Zero(t, b.count(t, `SELECT count(*) FROM outbox WHERE booking_id = $1 AND event_type = 'skipped'`, made.booking))
	}
}
