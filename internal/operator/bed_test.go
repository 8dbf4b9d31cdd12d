package operator_test

import (
	"log/slog"
	"path"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/operator"
	"holdfast/internal/testdb"
	"holdfast/outbox"
)

// bed is a database with a resource to book, and desks on it.
type bed struct {
	testing.TB
	db       *testdb.DB
	client   domain.ClientID
	resource domain.ResourceID
	start    time.Time // of the next booking
}

type noWaker struct{}

func (noWaker) Wake(domain.EffectKind) {}

func setup(t *testing.T) *bed {
	t.Helper()
	b := &bed{TB: t, db: testdb.New(t), client: domain.NewID[domain.ClientID](), start: time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC)}
	b.exec(`INSERT INTO clients (id, name) VALUES ($1, 'test')`, b.client)
	r, err := b.service(b.db.Pool).CreateResource(t.Context(), domain.Resource{
		Name: "Room", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 2500, Currency: "EUR"}, Hold: time.Hour,
	})
	require.NoError(t, err)
	b.resource = r.ID
	return b
}

func (b *bed) service(pool *pgxpool.Pool) *bookings.Service {
	return bookings.New(pool, noWaker{}, bookings.Config{Budget: time.Minute})
}

// desk is one process's desk, without provider and broker.
func (b *bed) desk() *operator.Desk { return b.deskOn(b.db.Pool, operator.Config{}) }

func (b *bed) deskOn(pool *pgxpool.Pool, config operator.Config) *operator.Desk {
	return operator.New(pool, b.service(pool), nil, nil, config, slog.New(slog.DiscardHandler))
}

// book accepts a booking on its own hour and returns it and its charge.
func (b *bed) book() (domain.BookingID, domain.EffectID) {
	b.Helper()
	b.start = b.start.Add(time.Hour)
	answer, err := b.service(b.db.Pool).Accept(b.Context(), b.client, domain.NewID[domain.EffectID]().String(), bookings.Request{
		ResourceID: b.resource, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Ada", CustomerEmail: "ada@example.org",
		PaymentMethod: "pm_card_visa",
	})
	require.NoError(b, err)
	id, err := domain.ParseID[domain.BookingID](path.Base(answer.Location))
	require.NoError(b, err)
	return id, b.effect(id, domain.EffectCharge)
}

// effect returns a booking's newest effect of a kind.
func (b *bed) effect(id domain.BookingID, kind domain.EffectKind) domain.EffectID {
	b.Helper()
	var e domain.EffectID
	b.scan(`SELECT id FROM outbox WHERE booking_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1`, &e, id, kind)
	return e
}

// put puts an effect into a state.
func (b *bed) put(id domain.EffectID, status domain.EffectStatus) {
	b.Helper()
	b.exec(`UPDATE outbox SET status = $2, last_error = 'why', finished_at = CASE WHEN $3 THEN now() END,
		stream = CASE WHEN kind = 'publish' THEN 'BOOKINGS' END, stream_sequence = CASE WHEN kind = 'publish' THEN 1 END WHERE id = $1`,
		id, status, status.Finished())
}

func (b *bed) load(id domain.EffectID) outbox.Effect {
	b.Helper()
	e, err := outbox.Load(b.Context(), b.db.Pool, id)
	require.NoError(b, err)
	return e
}

func (b *bed) audits() int { return b.count(`SELECT count(*) FROM operator_actions`) }

func (b *bed) count(sql string, args ...any) int {
	b.Helper()
	var n int
	b.scan(sql, &n, args...)
	return n
}

func (b *bed) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.db.Pool.Exec(b.Context(), sql, args...)
	require.NoError(b, err)
}

func (b *bed) scan(sql string, into any, args ...any) {
	b.Helper()
	require.NoError(b, b.db.Pool.QueryRow(b.Context(), sql, args...).Scan(into))
}

// open returns a pool of the test's own.
func (b *bed) open(url string) *pgxpool.Pool {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), url)
	require.NoError(b, err)
	b.Cleanup(pool.Close)
	return pool
}
