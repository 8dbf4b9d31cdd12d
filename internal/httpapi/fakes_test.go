package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/outbox"
	"holdfast/payments"
)

// fakes stand in for what the API calls, where a test is about an answer that the real ones give too rarely.
type fakes struct {
	authenticate func(context.Context, domain.Secret) (clients.Principal, error)
	accept       func(context.Context, bookings.Request) (bookings.Response, error)
	view         func(context.Context, domain.BookingID) (payments.View, error)
	resources    func(context.Context) ([]domain.Resource, error)
	events       func(after int64) []outbox.Happened
}

func (f fakes) Authenticate(ctx context.Context, token domain.Secret) (clients.Principal, error) {
	if f.authenticate != nil {
		return f.authenticate(ctx, token)
	}
	return clients.Principal{ClientID: domain.NewID[domain.ClientID](), Name: "fake", Scopes: clients.Scopes()}, nil
}

func (f fakes) Accept(ctx context.Context, _ domain.ClientID, _ string, r bookings.Request) (bookings.Response, error) {
	return f.accept(ctx, r)
}

func (f fakes) View(ctx context.Context, _ domain.ClientID, id domain.BookingID) (payments.View, error) {
	return f.view(ctx, id)
}

func (f fakes) Cancellation(context.Context, domain.ClientID, domain.BookingID) (payments.Cancellation, error) {
	return payments.Cancellation{}, domain.ErrNotFound
}

func (f fakes) List(context.Context, domain.ClientID, bookings.Filter) ([]payments.View, error) {
	return nil, domain.ErrNotFound
}

func (f fakes) Refunds(context.Context, domain.BookingID) (payments.RefundsView, error) {
	return payments.RefundsView{}, domain.ErrNotFound
}

func (f fakes) After(_ context.Context, _ domain.BookingID, seq int64) ([]outbox.Happened, error) {
	return f.events(seq), nil
}

func (f fakes) Newest(_ context.Context, of []domain.BookingID) (map[domain.BookingID]int64, error) {
	newest := map[domain.BookingID]int64{}
	for _, id := range of {
		for _, e := range f.events(0) {
			newest[id] = e.EventSeq
		}
	}
	return newest, nil
}

func (f fakes) Resources(ctx context.Context, _ domain.ResourceID, _ int) ([]domain.Resource, error) {
	return f.resources(ctx)
}

func (f fakes) Resource(context.Context, domain.ResourceID) (domain.Resource, error) {
	return domain.Resource{}, domain.ErrNotFound
}

func (f fakes) config() httpapi.Config {
	return httpapi.Config{
		Clients: f, Bookings: f, Catalogue: f, Payments: f, Events: f,
		Ready: func(context.Context) error { return nil },
	}
}

// faked starts the API on fakes alone.
func faked(t *testing.T, f fakes, change ...func(*httpapi.Config)) *bed {
	t.Helper()
	c := f.config()
	for _, with := range change {
		with(&c)
	}
	b := &bed{log: &safeBuffer{}, token: "hf_fake", resource: domain.Resource{ID: domain.NewID[domain.ResourceID]()}}
	var err error
	b.api, err = httpapi.New(c, slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	server := httptest.NewServer(b.api)
	t.Cleanup(server.Close)
	b.url, b.http = server.URL, watched(t, server.Client())
	return b
}

func created() bookings.Response {
	return bookings.Response{Status: http.StatusCreated, Body: []byte(`{}`), Location: "/v1/bookings/01a230ea-190a-7055-9ce5-cc3fccb03b7b"}
}
