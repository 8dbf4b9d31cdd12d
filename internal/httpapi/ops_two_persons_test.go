package httpapi_test

import (
	"log/slog"
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
)

// put sends a body under no key.
func (b *bed) put(t *testing.T, path, body string) answer {
	t.Helper()
	return b.send(t, http.MethodPut, path, strings.NewReader(body), b.bearer(), asJSON)
}

// What lets more money move than one person may (G7): 202 and nothing done, once for its key; the same person cannot approve it, another
// can, once; the audit names both.
func TestDesk_TwoPersons(t *testing.T) {
	t.Parallel()
	b, _, charge := parked(t)
	service := bookings.New(b.db.Pool, noWaker{}, bookings.Config{Budget: eternity})
	desk := operator.New(b.db.Pool, service, nil, nil, operator.Config{SecondPerson: map[string]int64{"EUR": 2000}}, slog.New(slog.DiscardHandler))
	limited := setupOn(t, b, func(c *httpapi.Config) { c.Operators = desk })
	grace := *limited
	grace.token = b.newToken(t, "grace", clients.Operator)

	first := limited.act(t, "replay", "big", `{"reason":"the key is valid again"}`, charge)
	require.Equal(t, http.StatusAccepted, first.status, "%s", first.body)
	require.Equal(t, string(first.body), string(limited.act(t, "replay", "big", `{"reason":"the key is valid again"}`, charge).body))
	listed := read[httpapi.OperatorRequests](t, limited.get(t, "/v1/ops/requests")).Requests
	require.Len(t, listed, 1)
	require.Equal(t, []any{operator.RequestOpen, domain.Money{Amount: 2500, Currency: "EUR"}, "ada"}, []any{listed[0].Status, listed[0].Money, string(listed[0].By)})
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'parked'`, charge), "nothing is done yet")

	path := "/v1/ops/requests/" + listed[0].ID.String()
	limited.put(t, path, `{"decision":"approve","reason":"it is mine"}`).refused(t, http.StatusConflict, httpapi.CodeSamePerson)
	decided := read[httpapi.RequestDecision](t, grace.put(t, path, `{"decision":"approve","reason":"seen and agreed"}`))
	require.Equal(t, operator.RequestApproved, decided.Request.Status)
	require.NotNil(t, decided.Result)
	again := grace.put(t, path, `{"decision":"approve","reason":"once more"}`).refused(t, http.StatusConflict, httpapi.CodeRequestDecided)
	require.Equal(t, "grace", again.By)
	limited.put(t, path, `{"decision":"withdraw","reason":"never mind"}`).refused(t, http.StatusConflict, httpapi.CodeRequestDecided)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM outbox WHERE id = $1 AND status = 'pending'`, charge))
	require.Empty(t, read[httpapi.OperatorRequests](t, limited.get(t, "/v1/ops/requests")).Requests)
	grace.put(t, "/v1/ops/requests/"+uuid.NewString(), `{"decision":"withdraw","reason":"of nothing"}`).refused(t, http.StatusNotFound, httpapi.CodeNotFound)
}

// A refund above the amount waits, too, whoever asks, finance included.
func TestRefund_TwoPersons(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.paid(t, "paid")
	service := bookings.New(b.db.Pool, noWaker{}, bookings.Config{Budget: eternity})
	desk := operator.New(b.db.Pool, service, nil, nil, operator.Config{SecondPerson: map[string]int64{"EUR": 2000}}, slog.New(slog.DiscardHandler))
	limited := setupOn(t, b, func(c *httpapi.Config) { c.Operators = desk })
	limited.token = b.newToken(t, "till", clients.Finance)
	require.Equal(t, http.StatusCreated, limited.refund(t, made, "small", `{"amount":400,"reason":"too loud"}`).status)
	big := limited.refund(t, made, "big", `{"amount":2100,"reason":"all that is left"}`)
	require.Equal(t, http.StatusAccepted, big.status, "%s", big.body)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM refunds`), "nothing more goes back yet")
	limited.token = b.newToken(t, "grace", clients.OperatorRefund)
	listed := read[httpapi.OperatorRequests](t, limited.get(t, "/v1/ops/requests")).Requests
	require.Len(t, listed, 1)
	read[httpapi.RequestDecision](t, limited.put(t, "/v1/ops/requests/"+listed[0].ID.String(), `{"decision":"approve","reason":"seen and agreed"}`))
	require.Equal(t, 2500, b.count(t, `SELECT sum(amount)::int FROM refunds`))
}

// A bulk act by HTTP (G7): its dry run changes nothing, the same id is the same run, and each effect is acted on once.
func TestDesk_Run(t *testing.T) {
	t.Parallel()
	b, _, charge := parked(t)
	const order = `{"act":"replay","filter":{"stuck":true,"kind":"charge"},"cap":10,"reason":"the key is valid again"}`
	dry := b.send(t, http.MethodPost, "/v1/ops/runs/preview", strings.NewReader(order), b.bearer(), asJSON)
	require.Equal(t, 1, read[operator.DryRun](t, dry).Allowed)
	require.Zero(t, b.count(t, `SELECT count(*) FROM operator_actions`))
	path := "/v1/ops/runs/" + uuid.NewString()
	for range 2 {
		require.Equal(t, 1, read[operator.Run](t, b.put(t, path, order)).Left)
	}
	b.put(t, path, strings.Replace(order, `"cap":10`, `"cap":9`, 1)).refused(t, http.StatusConflict, httpapi.CodeRunDiffers)
	for range 2 {
		run := read[operator.Run](t, b.send(t, http.MethodPost, path+"/continue", strings.NewReader(`{}`), b.bearer(), asJSON))
		require.Equal(t, []int{1, 0, 0}, []int{run.Done, run.Refused, run.Left})
	}
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM operator_actions WHERE action = 'replay' AND effect_id = $1`, charge))
	items := read[httpapi.RunItems](t, b.get(t, path+"/items?limit=1"))
	require.Len(t, items.Items, 1)
	require.Equal(t, []any{"done", charge}, []any{items.Items[0].Status, items.Items[0].EffectID})
	require.Nil(t, items.Next)
	require.Len(t, read[httpapi.Runs](t, b.get(t, "/v1/ops/runs")).Runs, 1)
	require.Empty(t, read[httpapi.Runs](t, b.get(t, "/v1/ops/runs?unfinished=true")).Runs)
	reader := *b
	reader.token = b.newToken(t, "reader", clients.OperatorRead, clients.OperatorDiscard)
	reader.put(t, "/v1/ops/runs/"+uuid.NewString(), order).refused(t, http.StatusForbidden, httpapi.CodeForbidden)
	reader.send(t, http.MethodPost, path+"/continue", strings.NewReader(`{}`), reader.bearer(), asJSON).refused(t, http.StatusForbidden, httpapi.CodeForbidden)
}
