package client_test

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/payments"
	"holdfast/pkg/client"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// bed is the real API on a real database, as a handler to put something hostile before.
type bed struct {
	db       *testdb.DB
	api      http.Handler
	token    client.Token
	resource string // four places, one minute, 1.00 EUR: a booking made twice would find room
}

type noWaker struct{}

func (noWaker) Wake(domain.EffectKind) {}

func setup(t *testing.T) *bed {
	t.Helper()
	db := testdb.New(t)
	service, tokens := bookings.New(db.Pool, noWaker{}, bookings.Config{Budget: time.Minute}), clients.New(db.Pool)
	api, err := httpapi.New(httpapi.Config{
		Clients: tokens, Bookings: service, Catalogue: service, Payments: payments.NewViewer(db.Pool),
		Desk:      payments.NewDesk(service, noWaker{}, payments.CardLimits{}, slog.New(slog.DiscardHandler)),
		Ready:     func(context.Context) error { return nil },
		Transient: func(err error) bool { return postgres.IsTransient(err) || postgres.IsUnavailable(err) },
	}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	resource, err := service.CreateResource(t.Context(), domain.Resource{
		Name: "Hall", TimeZone: "UTC", Places: 4, UnitMinutes: 1, Price: domain.Money{Amount: 100, Currency: "EUR"}, Hold: 15 * time.Minute,
	})
	require.NoError(t, err)
	made, err := tokens.Create(t.Context(), "acme", []clients.Scope{clients.BookingsRead, clients.BookingsWrite}, "", time.Hour)
	require.NoError(t, err)
	return &bed{db: db, api: api, token: client.Token(made.Token.Reveal()), resource: resource.ID.String()}
}

// wish is the booking of intention i: a minute of its own.
func (b *bed) wish(i int) client.BookingRequest {
	start := time.Date(2031, time.January, 6, 0, i, 0, 0, time.UTC)
	return client.BookingRequest{
		ResourceID: b.resource, Start: start, End: start.Add(time.Minute), PaymentMethod: "pm_card_visa",
		Customer: client.Customer{Name: "Ada Lovelace", Email: "ada@example.org"},
		Metadata: map[string]string{"intention": strconv.Itoa(i)},
	}
}

func (b *bed) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.db.Pool.QueryRow(t.Context(), sql, args...).Scan(&n), sql)
	return n
}
