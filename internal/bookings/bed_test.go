package bookings_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// bed is the service on a database of its own.
type bed struct {
	testing.TB
	ctx     context.Context
	db      *testdb.DB
	pool    *pgxpool.Pool // with short waits
	service *bookings.Service
	client  domain.ClientID
	woken   atomic.Int64
}

func (b *bed) Wake(domain.EffectKind) { b.woken.Add(1) }

func setup(t *testing.T) *bed {
	t.Helper()
	b := &bed{TB: t, ctx: t.Context(), db: testdb.New(t), client: domain.NewID[domain.ClientID]()}
	b.pool = b.open(b.db.URL)
	b.service = bookings.New(b.pool, b, bookings.Config{Budget: time.Minute})
	b.exec(`INSERT INTO clients (id, name) VALUES ($1, 'test')`, b.client)
	return b
}

func (b *bed) open(url string) *pgxpool.Pool {
	b.Helper()
	pool, err := postgres.Open(b.ctx, postgres.PoolConfig{
		URL: url, ApplicationName: "bookings-test", MaxConns: 16, LockTimeout: 300 * time.Millisecond,
	})
	require.NoError(b, err)
	b.Cleanup(pool.Close)
	return pool
}

func (b *bed) resource(places int) domain.ResourceID {
	b.Helper()
	r, err := b.service.CreateResource(b.ctx, domain.Resource{
		Name: "Room", TimeZone: "Europe/Berlin", Places: places, UnitMinutes: 30,
		Price: domain.Money{Amount: 1250, Currency: "EUR"}, Hold: 15 * time.Minute,
	})
	require.NoError(b, err)
	return r.ID
}

// request is for two hours from 10:00 plus so many hours on an ordinary day: 5000 EUR in minor units.
func request(r domain.ResourceID, plus float64) bookings.Request {
	start := time.Date(2030, 5, 6, 10, 0, 0, 0, time.UTC).Add(time.Duration(plus * float64(time.Hour)))
	return bookings.Request{
		ResourceID: r, Start: start, End: start.Add(2 * time.Hour), Quantity: 1, CustomerName: "Ada", CustomerEmail: "ada@example.org",
		PaymentMethod: "pm_card_visa", Metadata: map[string]string{"b": "2", "a": "1"},
	}
}

func (b *bed) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.db.Pool.Exec(context.WithoutCancel(b.ctx), sql, args...)
	require.NoError(b, err)
}

func (b *bed) count(sql string, args ...any) int {
	b.Helper()
	var n int
	require.NoError(b, b.db.Pool.QueryRow(b.ctx, sql, args...).Scan(&n))
	return n
}

// rows counts what one accepted booking leaves behind, table by table.
func (b *bed) rows() map[string]int {
	b.Helper()
	counts := map[string]int{}
	for name, sql := range map[string]string{
		"keys":     `SELECT count(*) FROM idempotency_keys`,
		"bookings": `SELECT count(*) FROM bookings`,
		"places":   `SELECT count(*) FROM allocations WHERE active`,
		"payments": `SELECT count(*) FROM payments`,
		"charges":  `SELECT count(*) FROM outbox WHERE kind = 'charge'`,
		"events":   `SELECT count(*) FROM outbox WHERE kind = 'publish'`,
		"jobs":     `SELECT count(*) FROM river_job`,
	} {
		counts[name] = b.count(sql)
	}
	return counts
}

// each returns what n accepted bookings and so many refusals leave behind.
func each(n, refusals int) map[string]int {
	return map[string]int{"keys": n + refusals, "bookings": n, "places": n, "payments": n, "charges": n, "events": n, "jobs": n}
}

// deadlocks reads the database's own count.
func (b *bed) deadlocks() int {
	b.Helper()
	b.exec(`SELECT pg_stat_clear_snapshot()`)
	return b.count(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
}

// together runs n functions at once and waits for all.
func together(n int, f func(i int)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	group.Wait()
}

func code(r bookings.Response) string {
	for _, c := range []string{"slot_unavailable", "price_changed"} {
		if strings.Contains(string(r.Body), c) {
			return c
		}
	}
	return ""
}
