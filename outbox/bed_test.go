package outbox

import (
	"context"
	"flag"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/internal/testnats"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { testdb.Main(m) }

const patience = 3 * time.Minute // on a busy machine: no test waits for so long unless it fails

// patient is a context for questions to the broker: without a deadline the client gives each of them five seconds, of which
// a busy machine's disk can take more.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// testBundle is a database and what a test needs to fill it.
type testBundle struct {
	pool   *pgxpool.Pool
	logger *slog.Logger
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	return &testBundle{pool: testdb.New(t).Pool, logger: slog.New(slog.DiscardHandler)}
}

// booked is what accept_booking has written of one booking.
type booked struct {
	booking domain.BookingID
	charge  domain.EffectID
	held    domain.EffectID
}

// book makes a booking as the service does.
func (b *testBundle) book(t *testing.T) booked {
	t.Helper()
	return book(t, b.pool)
}

func book(t *testing.T, q postgres.Querier) booked {
	t.Helper()
	made := booked{domain.NewID[domain.BookingID](), domain.NewID[domain.EffectID](), domain.NewID[domain.EffectID]()}
	resource := domain.NewID[domain.ResourceID]()
	_, err := q.Exec(t.Context(), `
		INSERT INTO resources (id, name, time_zone, places, unit_minutes, price, currency, hold)
		VALUES ($1, 'Court 1', 'Europe/Berlin', 1, 60, 2500, 'EUR', '10 minutes')`, resource)
	require.NoError(t, err)
	var outcome string
	err = q.QueryRow(t.Context(), `
		SELECT outcome FROM accept_booking(
			$1, '/v1/bookings', $2, '\x00', 1::smallint, '24 hours', $2::text::uuid, $3, $4, $5,
			$6, '2030-05-01T10:00Z', '2030-05-01T11:00Z', 1, NULL, NULL, 'Ada', 'ada@example.com', 'pm_card_visa', '{}')`,
		domain.NewID[domain.ClientID](), made.booking.String(), domain.NewID[domain.PaymentID](), made.charge, made.held,
		resource).Scan(&outcome)
	require.NoError(t, err)
	require.Equal(t, "created", outcome)
	return made
}

// young keeps the held events from growing old while a busy machine runs the test: those have no job of their own, and
// are missed after 15 s.
func (b *testBundle) young(t *testing.T) {
	t.Helper()
	b.exec(t, `UPDATE outbox SET created_at = now() + interval '1 hour' WHERE kind = 'publish' AND job_id IS NULL`)
}

// event appends an event to a booking as settling does: event_seq is taken under the booking's lock.
func (b *testBundle) event(t *testing.T, booking domain.BookingID, typ domain.EventType) domain.EffectID {
	t.Helper()
	require.NoError(t, postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		return appendNext(t.Context(), tx, booking, typ)
	}))
	var id domain.EffectID
	require.NoError(t, b.pool.QueryRow(t.Context(),
		`SELECT id FROM outbox WHERE booking_id = $1 AND kind = 'publish' ORDER BY event_seq DESC LIMIT 1`, booking).Scan(&id))
	return id
}

func appendNext(ctx context.Context, tx pgx.Tx, booking domain.BookingID, typ domain.EventType) error {
	var seq int64
	err := tx.QueryRow(ctx, `UPDATE bookings SET event_seq = event_seq + 1 WHERE id = $1 RETURNING event_seq`, booking).Scan(&seq)
	if err != nil {
		return err
	}
	return write(ctx, tx, func(q *pgx.Batch) error {
		return AppendEvent(q, booking, seq, typ, domain.EventData{BookingID: booking, Status: domain.BookingHeld, Quantity: 1})
	})
}

// write sends what fill queues.
func write(ctx context.Context, db postgres.Batcher, fill func(q *pgx.Batch) error) error {
	var q pgx.Batch
	if err := fill(&q); err != nil {
		return err
	}
	return postgres.Send(ctx, db, &q)
}

func (b *testBundle) load(t *testing.T, id domain.EffectID) Effect {
	t.Helper()
	e, err := Load(t.Context(), b.pool, id)
	require.NoError(t, err)
	return e
}

func (b *testBundle) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), query, args...)
	require.NoError(t, err)
}

func (b *testBundle) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, b.pool.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

// eventually waits until a count in the database is what is wanted.
func (b *testBundle) eventually(t *testing.T, want int, query string, args ...any) {
	t.Helper()
	var got int
	require.Eventually(t, func() bool {
		return b.pool.QueryRow(t.Context(), query, args...).Scan(&got) == nil && got == want
	}, patience, 10*time.Millisecond, "%s: want %d", query, want)
}

// workers starts workers that are quick, and stops them with the test.
func (b *testBundle) workers(t *testing.T, cfg WorkersConfig, handlers map[domain.EffectKind]Handler) *Workers {
	t.Helper()
	if cfg.FetchPollInterval == 0 {
		cfg.FetchPollInterval = 20 * time.Millisecond
	}
	w, err := NewWorkers(b.pool, cfg, handlers, b.logger)
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		require.NoError(t, w.Stop(ctx))
	})
	return w
}

// stream returns a publisher to a stream of the test's own server, which exists.
func (b *testBundle) stream(t *testing.T, server *testnats.Server, cfg StreamConfig) *JetStream {
	t.Helper()
	js, err := NewJetStream(server.Connect(t), cfg, b.logger)
	require.NoError(t, err)
	require.NoError(t, js.EnsureStream(patient(t)))
	return js
}

// drain sets up publishing with waits that a test can stand.
func (b *testBundle) drain(p Publisher) *Drain {
	return NewDrain(b.pool, p, DrainConfig{
		Timeout: patience, FirstBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond, PausedFor: 10 * time.Millisecond,
	}, b.logger)
}

// told reads all messages of the stream, in order.
func told(t *testing.T, js *JetStream) []*jetstream.RawStreamMsg {
	t.Helper()
	ctx := patient(t)
	stream, err := js.js.Stream(ctx, StreamName)
	require.NoError(t, err)
	info, err := stream.Info(ctx)
	require.NoError(t, err)
	messages := make([]*jetstream.RawStreamMsg, 0, info.State.Msgs)
	for seq := info.State.FirstSeq; seq != 0 && seq <= info.State.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		require.NoError(t, err)
		messages = append(messages, m)
	}
	return messages
}
