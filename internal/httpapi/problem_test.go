package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/payments"
)

var errTransient = errors.New("deadlock detected")

func TestEveryErrorHasItsProblem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		status  int
		code    httpapi.Code
		headers map[string]string
	}{
		"invalid":         {&domain.ValidationError{Field: "end", Reason: "no"}, 422, httpapi.CodeValidationFailed, nil},
		"too small":       {&domain.ValidationError{Field: "resource_id", Reason: "no", Code: "amount_too_small"}, 422, httpapi.CodeAmountTooSmall, nil},
		"a later code":    {&domain.ValidationError{Field: "resource_id", Reason: "no", Code: "closed_that_day"}, 422, "closed_that_day", nil},
		"no resource":     {domain.ErrNotFound, 404, httpapi.CodeResourceNotFound, nil},
		"reused":          {bookings.ErrKeyReused, 422, httpapi.CodeKeyReused, map[string]string{"Location": ""}},
		"expired":         {&bookings.KeyExpiredError{Location: "/v1/bookings/x"}, 409, httpapi.CodeKeyExpired, map[string]string{"Location": "/v1/bookings/x"}},
		"expired refusal": {&bookings.KeyExpiredError{}, 409, httpapi.CodeKeyExpired, map[string]string{"Location": ""}},
		"in progress":     {bookings.ErrInProgress, 409, httpapi.CodeRequestInProgress, map[string]string{"Retry-After": "1"}},
		"busy":            {domain.ErrBusy, 503, httpapi.CodeBusy, map[string]string{"Retry-After": "1"}},
		"transient":       {errTransient, 503, httpapi.CodeBusy, map[string]string{"Retry-After": "1"}},
		"out of time":     {context.DeadlineExceeded, 503, httpapi.CodeBusy, map[string]string{"Retry-After": "1"}},
		"a bug":           {errors.New("sentinel"), 500, httpapi.CodeInternal, map[string]string{"Retry-After": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := faked(t, fakes{accept: func(context.Context, bookings.Request) (bookings.Response, error) {
				return bookings.Response{}, fmt.Errorf("accept: %w", c.err)
			}}, func(c *httpapi.Config) {
				c.Transient = func(err error) bool { return errors.Is(err, errTransient) }
			})
			if name == "a later code" {
				b.unwatched(t)
			}
			a := b.book(t, "k", b.body())
			a.refused(t, c.status, c.code)
			for header, value := range c.headers {
				require.Equal(t, value, a.header.Get(header), header)
			}
			require.NotContains(t, string(a.body), "sentinel")
			require.Contains(t, b.log.String(), `"problem":"`+string(c.code)+`"`)
			require.Equal(t, c.status >= 500, strings.Contains(b.log.String(), `"error":"accept: `))
		})
	}
}

func TestStoredAnswersAreWrittenByteForByte(t *testing.T) {
	t.Parallel()
	stored := `{ "code" : "slot_unavailable", "odd":  [1 ] }`
	b := faked(t, fakes{accept: func(context.Context, bookings.Request) (bookings.Response, error) {
		return bookings.Response{Status: 409, Body: []byte(stored), Replayed: true, KeyExpires: time.Unix(1, 0)}, nil
	}})
	b.unwatched(t)
	a := b.book(t, "k", b.body())
	require.Equal(t, http.StatusConflict, a.status)
	require.Equal(t, stored, string(a.body))
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	require.Equal(t, "true", a.header.Get("Idempotency-Replayed"))
	require.Equal(t, "1970-01-01T00:00:01Z", a.header.Get("Idempotency-Key-Expires"))
	require.NotContains(t, a.header, "Location")
	require.Contains(t, b.log.String(), `"replayed":true,"problem":"slot_unavailable"`)
}

func TestBusyAuthenticationIsNoRefusalOfTheToken(t *testing.T) {
	t.Parallel()
	b := faked(t, fakes{authenticate: func(context.Context, domain.Secret) (clients.Principal, error) {
		return clients.Principal{}, fmt.Errorf("authenticate: %w", domain.ErrBusy)
	}})
	b.get(t, "/v1/resources").refused(t, http.StatusServiceUnavailable, httpapi.CodeBusy)
}

// What is panicked with can hold anything: neither the answer nor the log repeats it (G9).
func TestIncident17_PanicsTellNothing(t *testing.T) {
	t.Parallel()
	b := faked(t, fakes{
		view: func(context.Context, domain.BookingID) (payments.View, error) { panic("sentinel") },
		accept: func(context.Context, bookings.Request) (bookings.Response, error) {
			panic(errors.New("sentinel"))
		},
		resources: func(context.Context) ([]domain.Resource, error) {
			return make([]domain.Resource, 0)[:len("sentinel")], nil
		},
	})
	for _, a := range []answer{b.get(t, "/v1/bookings/"+uuid.NewString()), b.book(t, "k", b.body()), b.get(t, "/v1/resources")} {
		p := a.refused(t, http.StatusInternalServerError, httpapi.CodeInternal)
		require.Empty(t, p.Detail)
		require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	}
	log := b.log.String()
	require.NotContains(t, log, "sentinel")
	require.Contains(t, log, "panic with a string")
	require.Contains(t, log, "slice bounds out of range")
	require.Contains(t, log, "goroutine", "the stack is in the log")
	require.Equal(t, 3, strings.Count(log, `"msg":"request"`))
}

func TestRequestsEndAtTheirDeadline(t *testing.T) {
	t.Parallel()
	b := faked(t, fakes{accept: func(ctx context.Context, _ bookings.Request) (bookings.Response, error) {
		<-ctx.Done()
		return bookings.Response{}, ctx.Err()
	}}, func(c *httpapi.Config) { c.RequestTimeout = 20 * time.Millisecond })
	a := b.book(t, "k", b.body())
	a.refused(t, http.StatusServiceUnavailable, httpapi.CodeBusy)
	require.Equal(t, "1", a.header.Get("Retry-After"))
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	b := faked(t, fakes{}, func(c *httpapi.Config) {
		c.Ready = func(context.Context) error { return errors.New("sentinel") }
	})
	a := b.get(t, "/readyz")
	a.refused(t, http.StatusServiceUnavailable, httpapi.CodeNotReady)
	require.NotContains(t, string(a.body), "sentinel")
	require.Contains(t, b.log.String(), "sentinel")
	require.JSONEq(t, `{"status":"ok"}`, string(b.get(t, "/healthz").body), "alive all the same")
	require.JSONEq(t, `{"status":"ok"}`, string(faked(t, fakes{}).get(t, "/readyz").body))
}
