package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/operator"
	"holdfast/outbox"
	"holdfast/payments"
)

// emptyDesk knows of nothing, or fails as it is told. What the desk does is proved in package operator.
type emptyDesk struct{ err error }

func (d emptyDesk) Overview(context.Context) (v operator.Overview, _ error) { return v, d.err }

func (d emptyDesk) List(context.Context, outbox.Filter) (v operator.Page, _ error) { return v, d.err }

func (d emptyDesk) Show(context.Context, domain.EffectID) (v operator.Shown, _ error) {
	return v, d.err
}

func (d emptyDesk) Timeline(context.Context, domain.BookingID) (v operator.Timeline, _ error) {
	return v, d.err
}

func (d emptyDesk) Audit(context.Context, operator.AuditFilter) (v operator.AuditPage, _ error) {
	return v, d.err
}

func (d emptyDesk) Preview(context.Context, operator.Act, operator.Target, int64) (v operator.Preview, _ error) {
	return v, d.err
}

func (d emptyDesk) DoOnce(
	context.Context, bookings.Keyed, operator.Order, func(operator.Result, *outbox.RefusedError) (int, []byte, error),
) (v bookings.Response, _ error) {
	return v, d.err
}

func (d emptyDesk) Request(context.Context, uuid.UUID) (operator.Request, error) {
	return operator.Request{Act: operator.Discard}, nil
}

func (d emptyDesk) Requests(context.Context, bool) (v []operator.Request, _ error) { return v, d.err }

func (d emptyDesk) Approve(context.Context, uuid.UUID, outbox.Actor, string) (v operator.Result, _ error) {
	return v, d.err
}

func (d emptyDesk) Withdraw(context.Context, uuid.UUID, outbox.Actor, string) (v operator.Request, _ error) {
	return v, d.err
}

func (d emptyDesk) Run(context.Context, uuid.UUID) (operator.Run, error) {
	return operator.Run{Act: operator.Discard}, nil
}
func (d emptyDesk) Runs(context.Context, bool) (v []operator.Run, _ error) { return v, d.err }
func (d emptyDesk) RunItems(context.Context, uuid.UUID, int, int) (v []operator.RunItem, _ error) {
	return v, d.err
}

func (d emptyDesk) DryRun(context.Context, operator.RunOrder) (v operator.DryRun, _ error) {
	return v, d.err
}

func (d emptyDesk) StartRun(context.Context, operator.RunOrder) (v operator.Run, _ error) {
	return v, d.err
}

func (d emptyDesk) ContinueRun(context.Context, uuid.UUID, int) (v operator.Run, _ error) {
	return v, d.err
}

func (d emptyDesk) EndRun(context.Context, uuid.UUID, outbox.Actor, string) (v operator.Run, _ error) {
	return v, d.err
}
func (d emptyDesk) Pauses(context.Context) (v []outbox.Pausing, _ error) { return v, d.err }
func (d emptyDesk) SetPause(context.Context, domain.EffectKind, bool, outbox.Actor, string) (v operator.PauseResult, _ error) {
	return v, d.err
}

const someID = "01954f1e-0000-7000-8000-000000000001"

// deskRequest is a well-formed request of each operation of the desk, and the scope that it needs.
type deskRequest struct {
	method, path, body string
	scope              clients.Scope
}

func deskRequests() []deskRequest {
	const why, run = `{"reason":"why not"}`, `{"act":"discard","filter":{},"cap":1,"reason":"why not"}`
	return []deskRequest{
		{"GET", "/v1/ops/overview", "", clients.OperatorRead},
		{"GET", "/v1/ops/effects?stuck=true", "", clients.OperatorRead},
		{"GET", "/v1/ops/effects/" + someID, "", clients.OperatorRead},
		{"GET", "/v1/ops/effects/" + someID + "/preview?act=replay", "", clients.OperatorRead},
		{"GET", "/v1/ops/bookings/" + someID + "/timeline", "", clients.OperatorRead},
		{"POST", "/v1/ops/effects/" + someID + "/replay", why, clients.OperatorReplay},
		{"POST", "/v1/ops/effects/" + someID + "/republish", why, clients.OperatorRepublish},
		{"POST", "/v1/ops/effects/" + someID + "/resolve", why, clients.OperatorResolve},
		{"POST", "/v1/ops/effects/" + someID + "/discard", why, clients.OperatorDiscard},
		{"GET", "/v1/ops/requests?all=true", "", clients.OperatorRead},
		{"PUT", "/v1/ops/requests/" + someID, `{"decision":"approve","reason":"why not"}`, clients.OperatorDiscard},
		{"PUT", "/v1/ops/requests/" + someID, `{"decision":"withdraw","reason":"why not"}`, clients.OperatorDiscard},
		{"GET", "/v1/ops/runs?unfinished=true", "", clients.OperatorRead},
		{"POST", "/v1/ops/runs/preview", run, clients.OperatorRead},
		{"GET", "/v1/ops/runs/" + someID, "", clients.OperatorRead},
		{"PUT", "/v1/ops/runs/" + someID, run, clients.OperatorDiscard},
		{"POST", "/v1/ops/runs/" + someID + "/continue", `{}`, clients.OperatorDiscard},
		{"GET", "/v1/ops/runs/" + someID + "/items", "", clients.OperatorRead},
		{"GET", "/v1/ops/actions?actor=ada", "", clients.OperatorRead},
		{"GET", "/v1/ops/pauses", "", clients.OperatorRead},
		{"PUT", "/v1/ops/pauses/charge", `{"paused":true,"reason":"why not"}`, clients.OperatorPause},
	}
}

func (b *bed) ask(t *testing.T, r deskRequest) answer {
	t.Helper()
	headers := []string{b.bearer()}
	if r.body != "" {
		headers = append(headers, asJSON, "Idempotency-Key: "+uuid.NewString())
	}
	return b.send(t, r.method, r.path, strings.NewReader(r.body), headers...)
}

// Each operation is open to its own permission, to operator, and to nobody else: an act does not allow another, finance and
// customers nothing.
func TestDesk_Scopes(t *testing.T) {
	t.Parallel()
	held := clients.OperatorRead
	b := faked(t, fakes{authenticate: func(context.Context, domain.Secret) (clients.Principal, error) {
		return clients.Principal{Name: "ada", Scopes: []clients.Scope{held}}, nil
	}}, func(c *httpapi.Config) { c.Operators = emptyDesk{domain.ErrNotFound} })
	acts := []clients.Scope{
		clients.OperatorReplay, clients.OperatorRepublish, clients.OperatorResolve, clients.OperatorRefund, clients.OperatorDiscard, clients.OperatorPause,
	}
	b.unwatched(t) // the overview is never "not found" in earnest
	for _, r := range deskRequests() {
		for _, scope := range append([]clients.Scope{
			clients.BookingsRead, clients.BookingsWrite, clients.Finance, clients.Operator, clients.OperatorRead,
		}, acts...) {
			held = scope
			reading := r.scope == clients.OperatorRead && strings.HasPrefix(string(scope), "operator:")
			open := scope == r.scope || scope == clients.Operator || reading
			require.Equal(t, !open, b.ask(t, r).status == http.StatusForbidden, "%s %s with %s", r.method, r.path, scope)
		}
	}
}

// What the desk refuses is a problem with its own code that says who was first; what it could not find out is 503.
func TestDesk_Refusals(t *testing.T) {
	t.Parallel()
	when := domain.Instant{}
	for name, c := range map[string]struct {
		err    error
		status int
		code   httpapi.Code
	}{
		"somebody was first": {&outbox.RefusedError{Code: outbox.RefusedChanged, Reason: "grace has replayed it", By: "grace", At: &when}, 409, httpapi.CodeEffectChanged},
		"no code":            {&outbox.RefusedError{Reason: "no"}, 409, httpapi.CodeActRefused},
		"a code of no table": {&outbox.RefusedError{Code: "busy", Reason: "no"}, 409, httpapi.CodeActRefused},
		"provider":           {fmt.Errorf("look: %w", payments.ErrUnread), 503, httpapi.CodeProviderUnread},
		"provider, in time":  {errors.Join(context.DeadlineExceeded, payments.ErrUnread), 503, httpapi.CodeProviderUnread},
		"broker":             {fmt.Errorf("send: %w", operator.ErrBroker), 503, httpapi.CodeBrokerAway},
		"nothing":            {domain.ErrNotFound, 404, httpapi.CodeNotFound},
		"busy":               {domain.ErrBusy, 503, httpapi.CodeBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := faked(t, fakes{}, func(config *httpapi.Config) { config.Operators = emptyDesk{c.err} })
			p := b.ask(t, deskRequest{"POST", "/v1/ops/effects/" + someID + "/discard", `{"reason":"why not"}`, ""}).refused(t, c.status, c.code)
			var refused *outbox.RefusedError
			if errors.As(c.err, &refused) {
				require.Equal(t, []any{refused.Reason, string(refused.By), refused.At}, []any{p.Detail, p.By, p.At})
			}
		})
	}
}

// Whatever is sent where an id, a page or a body is asked for is refused, and never 500.
func TestDesk_BadRequests(t *testing.T) {
	t.Parallel()
	b := faked(t, fakes{}, func(c *httpapi.Config) { c.Operators = emptyDesk{} })
	for _, r := range deskRequests() {
		if !strings.Contains(r.path, someID) {
			continue
		}
		for _, id := range []string{"x", strings.ToUpper(someID), "%00", "urn:uuid:" + someID, strings.Repeat("a", 5000), "00000000-0000-0000-0000-000000000000x"} {
			bad := r
			bad.path = strings.Replace(r.path, someID, id, 1)
			status := b.ask(t, bad).status
			require.Contains(t, []int{http.StatusNotFound, http.StatusUnprocessableEntity}, status, "%s %s", bad.method, bad.path)
		}
	}
	for _, query := range []string{
		"stuck=maybe", "kind=x", "status=x", "booking_id=x", "older_than=x", "older_than=-1s", "older_than=0s", "older_than=1e99h", "limit=0", "limit=1001",
		"limit=99999999999999999999", "stuck=true&status=done", "cursor=x", "kind=charge&kind=charge",
	} {
		b.get(t, "/v1/ops/effects?"+query).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	for _, path := range []string{
		"/v1/ops/effects/" + someID + "/preview", "/v1/ops/effects/" + someID + "/preview?act=refund", "/v1/ops/runs/" + someID + "/items?from=-1",
		"/v1/ops/runs/" + someID + "/items?limit=1001", "/v1/ops/actions?limit=201", "/v1/ops/actions?booking_id=x", "/v1/ops/actions?actor=%00",
		"/v1/ops/actions?action=" + strings.Repeat("x", 51), "/v1/ops/requests?all=2", "/v1/ops/runs?unfinished=x",
	} {
		b.get(t, path).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	for _, kind := range []string{"refund", "cancel", "x", "%00"} {
		b.ask(t, deskRequest{"PUT", "/v1/ops/pauses/" + kind, `{"paused":true,"reason":"why not"}`, ""}).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	for _, r := range deskRequests() {
		if r.body == "" {
			continue
		}
		for _, body := range []string{`[]`, `{"reason":7}`, `{"reason":"   "}`, `{"reason":"why not","x":1}`, `{"reason":"4242424242424242"}`, `{"limit":0}`, `{"limit":501}`} {
			r.body = body
			b.ask(t, r).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
		}
		r.body = `{`
		b.ask(t, r).refused(t, http.StatusBadRequest, httpapi.CodeMalformedJSON)
	}
	for _, body := range []string{
		`{"act":"refund","filter":{},"cap":1,"reason":"why not"}`, `{"act":"replay","cap":1,"reason":"why not"}`, `{"act":"replay","filter":{},"cap":0,"reason":"why not"}`,
		`{"act":"replay","filter":{},"cap":10001,"reason":"why not"}`, `{"act":"replay","filter":{"stuck":1},"cap":1,"reason":"why not"}`,
		`{"act":"replay","filter":{"older_than":"x"},"cap":1,"reason":"why not"}`, `{"act":"replay","filter":{"older_than":5},"cap":1,"reason":"why not"}`,
		`{"act":"replay","filter":{"stuck":true,"status":"done"},"cap":1,"reason":"why not"}`, `{"act":"replay","filter":{"limit":5},"cap":1,"reason":"why not"}`,
	} {
		b.ask(t, deskRequest{"PUT", "/v1/ops/runs/" + someID, body, ""}).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	}
	b.ask(t, deskRequest{"PUT", "/v1/ops/requests/" + someID, `{"decision":"refuse","reason":"why not"}`, ""}).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	b.ask(t, deskRequest{"PUT", "/v1/ops/pauses/charge", `{"paused":"yes","reason":"why not"}`, ""}).refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	a := b.send(t, http.MethodPost, "/v1/ops/effects/"+someID+"/replay", strings.NewReader(`{"reason":"why not"}`), b.bearer(), asJSON)
	a.refused(t, http.StatusBadRequest, httpapi.CodeKeyMissing)
}
