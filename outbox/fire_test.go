package outbox

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// What the tests share that put the broker under fire: many bookings at once, the connection that a real worker has, and
// what must hold of rows and stream after all of it.

// books makes n bookings as the service does, and appends the same events to each, in two round trips for the bookings
// and one transaction for the events: a test with hundreds of them is about what comes after.
func (b *testBundle) books(t *testing.T, n int, then ...domain.EventType) []booked {
	t.Helper()
	made := make([]booked, n)
	resources, ids, charges, helds := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i := range made {
		made[i] = booked{domain.NewID[domain.BookingID](), domain.NewID[domain.EffectID](), domain.NewID[domain.EffectID]()}
		resources[i] = domain.NewID[domain.ResourceID]().String()
		ids[i], charges[i], helds[i] = made[i].booking.String(), made[i].charge.String(), made[i].held.String()
	}
	b.exec(t, `
		INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold)
		SELECT id, 'Court 1', 'Europe/Berlin', 1, 60, 2500, 'EUR', '10 minutes' FROM unnest($1::uuid[]) AS id`, resources)
	require.Equal(t, n, b.count(t, `
		SELECT count(*) FILTER (WHERE a.outcome = 'created')
		  FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[]) AS m (resource, booking, charge, held),
		       accept_booking(
			gen_random_uuid(), '/v1/bookings', m.booking::text, '\x00', 1::smallint, '24 hours', m.booking, gen_random_uuid(),
			m.charge, m.held, m.resource, '2030-05-01T10:00Z', '2030-05-01T11:00Z', 1, NULL, NULL, 'Ada', 'ada@example.com',
			'pm_card_visa', '{}') AS a`, resources, ids, charges, helds))
	require.NoError(t, postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		for _, m := range made {
			for _, typ := range then {
				if err := appendNext(t.Context(), tx, m.booking, typ); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	return made
}

// connected returns a publisher to a stream that exists, over the connection that a worker has: it is lost, waits and
// comes back as in a live system.
func (b *testBundle) connected(t *testing.T, url string, cfg StreamConfig) *JetStream {
	t.Helper()
	conn, err := Connect(url, "test", b.logger)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := NewJetStream(conn, cfg, b.logger)
	require.NoError(t, err)
	require.NoError(t, js.EnsureStream(t.Context()))
	return js
}

// disturbed publishes through js and says when so many acknowledgements have come. failed counts what did not go out.
func disturbed(js *JetStream, failed *atomic.Int64, at ...int64) (p Publisher, reached <-chan struct{}) {
	signal := make(chan struct{}, len(at))
	var acknowledged atomic.Int64
	return publisherFunc(func(ctx context.Context, m Message) (Ack, error) {
		ack, err := js.Publish(ctx, m)
		if err != nil {
			failed.Add(1)
			return ack, err
		}
		if slices.Contains(at, acknowledged.Add(1)) {
			signal <- struct{}{}
		}
		return ack, nil
	}), signal
}

// impatient is a drain that does not wait for what is lost for longer than a test can stand.
func (b *testBundle) impatient(p Publisher) *Drain {
	return NewDrain(b.pool, p, DrainConfig{
		Timeout: time.Second, FirstBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
	}, b.logger)
}

// requireToldWhereTheRowsSay checks the events' rows against the stream, both ways: each row is done, and the stream
// holds that event at the place that the row names; the stream holds nothing that no row tells of. It returns how often
// each event is in the stream.
func requireToldWhereTheRowsSay(t *testing.T, b *testBundle, js *JetStream) map[string]int {
	t.Helper()
	at, copies := map[int64]string{}, map[string]int{}
	for _, m := range told(t, js) {
		id := m.Header.Get("Nats-Msg-Id")
		at[int64(m.Sequence)] = id
		copies[id]++
	}
	rows, err := b.pool.Query(t.Context(), `SELECT `+effectColumns+` FROM outbox o WHERE kind = 'publish'`)
	require.NoError(t, err)
	events, err := pgx.CollectRows(rows, pgx.RowToStructByName[Effect])
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, e := range events {
		require.Equal(t, domain.EffectDone, e.Status, "%s", e.LastError)
		require.Equal(t, StreamName, e.Stream)
		require.Equal(t, e.ID.String(), at[e.StreamSequence], "the stream's message %d is another", e.StreamSequence)
		ids[e.ID.String()] = true
	}
	for id := range maps.Keys(copies) {
		require.True(t, ids[id], "the stream tells of %s, which no row does", id)
	}
	return copies
}
