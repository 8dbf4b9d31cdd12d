package stripe

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	stripedata "github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// officialGate is Stripe's own mock server, with the description of the version that the SDK pins: 200 to a request that this
// version has, with parameters that it takes. It knows no state, no ids and no keys. It prints what it is asked.
var officialGate = sync.OnceValues(func() (http.Handler, error) {
	var description, paths map[string]json.RawMessage
	if err := json.Unmarshal(stripedata.OpenAPISpec, &description); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(description["paths"], &paths); err != nil {
		return nil, err
	}
	maps.DeleteFunc(paths, func(path string, _ json.RawMessage) bool { // reading them all takes seconds
		return !strings.HasPrefix(path, "/v1/payment_intents") && !strings.HasPrefix(path, "/v1/charges") && !strings.HasPrefix(path, "/v1/events") &&
			!strings.HasPrefix(path, "/v1/refunds") && !strings.HasPrefix(path, "/v1/disputes")
	})
	var err error
	if description["paths"], err = json.Marshal(paths); err != nil {
		return nil, err
	}
	part, err := json.Marshal(description)
	if err != nil {
		return nil, err
	}
	spec, err := server.LoadSpec(part, "")
	if err != nil {
		return nil, err
	}
	fixtures, err := server.LoadFixtures(stripedata.OpenAPIFixtures, "")
	if err != nil {
		return nil, err
	}
	mock, err := server.NewStubServer(fixtures, spec, true, false)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", mock.HandleRequest)
	var mu sync.Mutex // it was not made for many
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		(&server.DoubleSlashFixHandler{Mux: mux}).ServeHTTP(rw, r)
	}), nil
})

// gated passes every request to the gate first, and then to the simulator, which answers.
type gated struct {
	gate http.Handler
	sim  *stripesim.Simulator

	mu      sync.Mutex
	refused []string
}

func (g *gated) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	again := r.Clone(r.Context())
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	again.Body = io.NopCloser(strings.NewReader(string(body)))
	g.mu.Lock()
	verdict := httptest.NewRecorder()
	g.gate.ServeHTTP(verdict, again)
	if verdict.Code != http.StatusOK {
		g.refused = append(g.refused, r.Method+" "+r.URL.String()+" "+string(body)+": "+verdict.Body.String())
	}
	g.mu.Unlock()
	g.sim.ServeHTTP(rw, r)
}

func newGated(t *testing.T) (*gated, *Gateway) {
	t.Helper()
	gate, err := officialGate()
	require.NoError(t, err)
	provider := &gated{gate: gate, sim: stripesim.New(stripesim.Config{})}
	front := httptest.NewServer(provider)
	t.Cleanup(front.Close)
	t.Cleanup(provider.sim.Close)
	return provider, gatewayTo(t, front.URL, func(c *Config) { c.APIKey = "sk_test_123" })
}

// TestEveryRequestPassesTheOfficialGate: each kind of request that this package makes is one of Stripe's, of the pinned version.
func TestEveryRequestPassesTheOfficialGate(t *testing.T) {
	t.Parallel()
	provider, g := newGated(t)
	began := time.Now()
	const cards = 104 // more than fit on a page, so that a cursor is sent
	var last string
	for i := range cards {
		c := frozenCharge()
		c.PaymentID = domain.NewID[domain.PaymentID]()
		switch i {
		case 0: // charged
		case 1:
			c.PaymentMethod = "pm_card_chargeDeclined"
		case 2:
			c.Total = domain.Money{Amount: 4200, Currency: "JPY"}
		case 3:
			c.PaymentMethod = "pm_card_threeDSecure2Required"
		}
		send := func(op domain.Operation, intent string) payments.Outcome {
			return g.Send(t.Context(), payments.Call{
				Operation: op, IntentID: intent, Key: domain.ProviderKey(c.PaymentID, op, 1), Params: g.Freeze(op, c),
			})
		}
		created := send(domain.OpCreate, "")
		require.Equal(t, payments.Executed, created.Class, created.Detail)
		last = created.Intent.ID
		if i > 3 {
			continue
		}
		confirmed := send(domain.OpConfirm, last)
		require.Contains(t, []payments.Class{payments.Executed, payments.Declined}, confirmed.Class, confirmed.Detail)
		send(domain.OpUpdate, last)
		send(domain.OpCancel, last)
		refund := frozenRefund(c, last)
		refunded := g.Send(t.Context(), payments.Call{
			Operation: domain.OpRefund, IntentID: last, Key: domain.RefundKey(refund.ID, 1), Params: g.FreezeRefund(refund),
		})
		require.Contains(t, []payments.Class{payments.Executed, payments.Rejected}, refunded.Class, refunded.Detail)
		_, err := g.Refunds(t.Context(), last)
		require.NoError(t, err)
		_, err = g.Disputes(t.Context(), last)
		require.NoError(t, err)
		_, err = g.Intent(t.Context(), last)
		require.NoError(t, err)
		_, err = g.Charges(t.Context(), last)
		require.NoError(t, err)
	}
	intents, err := g.IntentsCreated(t.Context(), began.Add(-time.Minute), time.Now().Add(time.Minute))
	require.NoError(t, err)
	require.Len(t, intents, cards)
	page, more, err := g.Events(t.Context(), []string{"payment_intent.created", "charge.failed"}, began.Add(-time.Minute), time.Now().Add(time.Minute), "")
	require.NoError(t, err)
	require.True(t, more)
	rest, more, err := g.Events(t.Context(), []string{"payment_intent.created", "charge.failed"}, began.Add(-time.Minute), time.Now().Add(time.Minute), page[len(page)-1].ID)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, append(page, rest...), cards+1)

	require.Empty(t, provider.refused)
	asked := map[string]int{}
	for _, e := range provider.sim.Journal(0) {
		asked[e.Operation]++
	}
	require.Equal(t, map[string]int{
		"payment_intents.create": cards, "payment_intents.update": 4, "payment_intents.confirm": 4, "payment_intents.cancel": 4, "payment_intents.retrieve": 4,
		"refunds.create": 4, "refunds.list": 4, "charges.list": 4, "disputes.list": 4, "payment_intents.list": 2,
		"events.list": 2,
	}, asked)
	for _, op := range []domain.Operation{domain.OpCreate, domain.OpUpdate, domain.OpConfirm, domain.OpCancel} {
		if _, known := suffix(op); known {
			require.Contains(t, asked, "payment_intents."+string(op), "an operation that the gate has not seen")
		}
	}
}

// TestTheGateIsShut to what this version of the API does not have.
func TestTheGateIsShut(t *testing.T) {
	t.Parallel()
	provider, g := newGated(t)
	params := g.Freeze(domain.OpCreate, frozenCharge())
	wrong := map[string]payments.Params{
		"additional properties": {"colour": "red"},
		"invalid value":         {"capture_method": "never"},
		"amount":                {"amount": "a lot"},
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		spoiled := maps.Clone(params)
		maps.Copy(spoiled, wrong[name])
		call := confirm()
		call.Operation, call.IntentID, call.Params = domain.OpCreate, "", spoiled
		g.Send(t.Context(), call)
	}
	require.Len(t, provider.refused, len(wrong), provider.refused)
}
