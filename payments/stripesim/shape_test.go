package stripesim_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// seen is what a test has been shown: kinds and states of objects, wherever in an answer they stand, and types of errors.
type seen map[string]bool

func (s seen) look(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			s.look(item)
		}
	case map[string]any:
		kind, _ := value["object"].(string)
		status, _ := value["status"].(string)
		s[strings.Trim(kind+" "+status, " ")] = true
		for _, inner := range value {
			s.look(inner)
		}
	}
	delete(s, "")
}

// Every object in every state, alone, in a list, in an error, in an event and expanded. The bundle's transport compares each answer
// with the description; what is shown here is that nothing has been left out.
func TestEveryShapeIsStripes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shown := seen{}
	show := func(r response) response {
		t.Helper()
		require.NoError(t, r.err)
		shown.look(r.body)
		return r
	}
	ada := show(b.post(t, "/v1/customers", "ada", "email=ada@example.com")).id()
	show(b.post(t, "/v1/customers/"+ada, "ada 2", "name=Ada&metadata[a]=b"))
	show(b.get(t, "/v1/customers/"+ada))
	show(b.get(t, "/v1/customers"))
	b.attached(t, "pm_card_visa", ada)
	const manual = "&capture_method=manual"
	for name, steps := range map[string]struct {
		method, create, confirm string
		after                   func(id string)
	}{
		"charged":       {method: "pm_card_visa"},
		"customer":      {method: "pm_card_amex", create: "&customer=" + ada + "&receipt_email=a@example.com&setup_future_usage=off_session"},
		"described":     {method: "pm_card_mastercard", create: "&description=d&statement_descriptor_suffix=ABC&transfer_group=g"},
		"automatic":     {method: "pm_card_visa", create: "&automatic_payment_methods[enabled]=true", confirm: "return_url=https://x.test"},
		"no method":     {},
		"declined":      {method: "pm_card_chargeDeclined"},
		"expired":       {method: "pm_card_chargeDeclinedExpiredCard"},
		"blocked":       {method: "pm_card_radarBlock"},
		"off session":   {method: "pm_card_authenticationRequired", confirm: "off_session=true"},
		"action":        {method: "pm_card_threeDSecure2Required"},
		"redirect":      {method: "pm_card_threeDSecure2Required", confirm: "return_url=https://x.test"},
		"authenticated": {method: "pm_card_threeDSecure2Required", after: b.acts(t, "authenticate")},
		"not passed":    {method: "pm_card_threeDSecure2Required", after: b.acts(t, "fail_authentication")},
		"processing":    {method: "pm_sim_processing"},
		"processed":     {method: "pm_sim_processing", after: b.acts(t, "settle_processing")},
		"authorised":    {method: "pm_card_visa", create: manual},
		"captured":      {method: "pm_card_visa", create: manual, after: func(id string) { show(b.post(t, intentPath(id, "capture"), id+"c", "")) }},
		"part captured": {method: "pm_card_visa", create: manual, after: func(id string) { show(b.post(t, intentPath(id, "capture"), id+"c", "amount_to_capture=900")) }},
		"refunded": {method: "pm_card_visa", after: func(id string) {
			re := show(b.post(t, "/v1/refunds", id+"r", "payment_intent="+id+"&amount=700&reason=duplicate&metadata[a]=b&expand[]=charge"))
			show(b.get(t, "/v1/refunds/"+re.id()+"?expand[]=payment_intent"))
			show(b.post(t, "/v1/refunds", id+"r2", "payment_intent="+id))
			show(b.post(t, "/v1/refunds", id+"r3", "payment_intent="+id))
			show(b.get(t, "/v1/refunds?payment_intent="+id+"&expand[]=data.charge"))
		}},
		"refund fails": {method: "pm_card_pendingRefund", after: func(id string) {
			show(b.post(t, "/v1/refunds", id+"r", "payment_intent="+id))
			_, err := b.Act(stripesim.Action{Action: "settle_refund", PaymentIntent: id, Outcome: "failed"})
			require.NoError(t, err)
			show(b.get(t, "/v1/refunds"))
		}},
		"refund fails later": {method: "pm_card_refundFail", after: func(id string) {
			re := show(b.post(t, "/v1/refunds", id+"r", "payment_intent="+id))
			show(b.post(t, "/v1/refunds/"+re.id(), id+"u", "metadata[a]=b&expand[]=charge"))
			b.act(t, stripesim.Action{Action: "fail_refund", PaymentIntent: id})
		}},
		"refund canceled": {method: "pm_card_pendingRefund", after: func(id string) {
			show(b.post(t, "/v1/refunds", id+"r", "payment_intent="+id))
			b.act(t, stripesim.Action{Action: "settle_refund", PaymentIntent: id, Outcome: "canceled"})
		}},
		"disputed": {method: "pm_card_createDispute", after: func(id string) {
			show(b.post(t, "/v1/refunds", id+"r", "payment_intent="+id))
			d := ids(show(b.get(t, "/v1/disputes?payment_intent="+id+"&expand[]=data.charge&expand[]=data.payment_intent")))[0]
			show(b.post(t, "/v1/disputes/"+d, id+"d", evidence+"mine&metadata[a]=b"))
			b.act(t, stripesim.Action{Action: "close_dispute", PaymentIntent: id, Outcome: "lost"})
		}},
		"dispute won": {method: "pm_card_createDisputeProductNotReceived", after: func(id string) {
			d := ids(show(b.get(t, "/v1/disputes?payment_intent="+id)))[0]
			show(b.post(t, "/v1/disputes/"+d, id+"d", evidence+"winning_evidence"))
			show(b.get(t, "/v1/disputes/"+d+"?expand[]=charge"))
		}},
		"dispute given up": {method: "pm_card_createDispute", after: func(id string) {
			d := ids(show(b.get(t, "/v1/disputes?payment_intent="+id)))[0]
			show(b.post(t, "/v1/disputes/"+d+"/close", id+"d", ""))
		}},
		"inquiry": {method: "pm_card_createDisputeInquiry", after: func(id string) {
			d := ids(show(b.get(t, "/v1/disputes?payment_intent="+id)))[0]
			show(b.post(t, "/v1/disputes/"+d, id+"d", evidence+"mine"))
			b.act(t, stripesim.Action{Action: "close_dispute", PaymentIntent: id})
			show(b.get(t, "/v1/disputes/"+d))
		}},
		"released": {method: "pm_card_visa", create: manual, after: func(id string) { show(b.post(t, intentPath(id, "cancel"), id+"x", "")) }},
		"canceled": {after: func(id string) {
			show(b.post(t, intentPath(id, "cancel"), id+"x", "cancellation_reason=requested_by_customer"))
		}},
		"the other card": {method: "pm_card_chargeDeclined", after: func(id string) { show(b.post(t, intentPath(id, ""), id+"u", "payment_method=pm_card_visa")) }},
	} {
		form := "amount=2000&currency=eur&metadata[case]=" + strings.ReplaceAll(name, " ", "+") + steps.create
		if !strings.Contains(form, "automatic_payment_methods") {
			form += "&payment_method_types[]=card"
		}
		if steps.method != "" {
			form += "&payment_method=" + steps.method
		}
		created := show(b.post(t, "/v1/payment_intents", name, form))
		require.Equal(t, http.StatusOK, created.status, created.raw)
		id := created.id()
		if method, _ := created.body["payment_method"].(string); method != "" {
			show(b.get(t, "/v1/payment_methods/"+method))
		}
		show(b.get(t, intentPath(id, "")))
		show(b.post(t, intentPath(id, "confirm"), id, steps.confirm))
		show(b.get(t, intentPath(id, "")))
		if steps.after != nil {
			steps.after(id)
		}
		show(b.post(t, intentPath(id, "confirm"), id+"again", "expand[]=latest_charge"))
		show(b.get(t, intentPath(id, "")+"?expand[]=latest_charge&expand[]=payment_method"))
		show(b.get(t, "/v1/charges?payment_intent="+id+"&expand[]=data.payment_intent"))
	}
	show(b.get(t, "/v1/payment_intents?limit=100&expand[]=data.latest_charge&expand[]=data.payment_method"))
	show(b.get(t, "/v1/payment_intents?limit=1&created[gte]=1"))
	show(b.get(t, "/v1/account"))
	show(b.get(t, "/v1/balance_transactions"))
	b.Advance(48 * time.Hour)
	po := b.act(t, stripesim.Action{Action: "create_payout"}).Object
	show(b.get(t, "/v1/payouts/"+po+"?expand[]=balance_transaction"))
	b.Advance(48 * time.Hour)
	show(b.get(t, "/v1/payouts"))
	b.act(t, stripesim.Action{Action: "fail_payout", Payout: po})
	show(b.get(t, "/v1/payouts?expand[]=data.failure_balance_transaction"))
	show(b.get(t, "/v1/balance"))
	b.report(t, "payout_reconciliation.itemized.5", b.Now().Add(-100*time.Hour), b.Now())
	show(b.get(t, "/v1/files/"+b.aFile(t, show(b.get(t, "/v1/reporting/report_runs")))))
	rows := show(b.get(t, "/v1/balance_transactions?limit=100&expand[]=data.source"))
	show(b.get(t, "/v1/balance_transactions/"+ids(rows)[0]+"?expand[]=source"))
	for _, ch := range b.Ledger().Charges {
		show(b.get(t, "/v1/charges/"+ch.ID+"?expand[]=payment_intent"))
	}
	for last, more := "", true; more; {
		page := show(b.get(t, "/v1/events?limit=100"+last))
		more, _ = page.body["has_more"].(bool)
		found := ids(page)
		last = "&starting_after=" + found[len(found)-1]
		show(b.get(t, "/v1/events/"+found[0]))
	}
	b.Advance(2 * time.Minute) // or search knows nothing yet
	show(b.get(t, "/v1/payment_intents/search?"+query("query", "currency:'eur'", "limit", "100")))
	answered := map[string]bool{}
	for _, e := range b.Journal(0) {
		answered[e.Operation] = answered[e.Operation] || e.Status == http.StatusOK
	}
	for _, operation := range b.Operations() {
		require.True(t, answered[operation], "nothing was seen of %s", operation)
	}
	require.Equal(t, []string{
		"account", "balance", "balance_transaction available", "balance_transaction pending", "charge failed", "charge pending",
		"charge succeeded", "customer", "dispute lost", "dispute needs_response", "dispute under_review", "dispute warning_closed",
		"dispute warning_needs_response", "dispute warning_under_review", "dispute won", "event", "file", "list", "payment_intent canceled",
		"payment_intent processing", "payment_intent requires_action", "payment_intent requires_capture",
		"payment_intent requires_confirmation", "payment_intent requires_payment_method", "payment_intent succeeded", "payment_method",
		"payout failed", "payout in_transit", "payout paid", "refund canceled", "refund failed", "refund pending", "refund succeeded",
		"reporting.report_run succeeded", "search_result",
	}, slices.Sorted(maps.Keys(shown)))
}

// aFile is the id of the file of the first report run in a list.
func (b *testBundle) aFile(t *testing.T, runs response) string {
	t.Helper()
	data, _ := runs.body["data"].([]any)
	run, _ := data[0].(map[string]any)
	result, _ := run["result"].(map[string]any)
	id, _ := result["id"].(string)
	require.NotEmpty(t, id)
	return id
}

func intentPath(id, act string) string {
	return strings.TrimSuffix("/v1/payment_intents/"+id+"/"+act, "/")
}

func (b *testBundle) acts(t *testing.T, action string) func(id string) {
	t.Helper()
	return func(id string) {
		t.Helper()
		_, err := b.Act(stripesim.Action{Action: action, PaymentIntent: id})
		require.NoError(t, err)
	}
}

// What the description is there to find, it finds.
func TestAWrongShapeIsFound(t *testing.T) {
	t.Parallel()
	against, err := theOfficial()
	require.NoError(t, err)
	b := setup(t)
	id := b.create(t, "pm_card_chargeDeclined")
	declined := b.confirm(t, id, "k")
	intent := b.get(t, intentPath(id, ""))
	events := b.get(t, "/v1/events")
	cases := map[string]struct {
		r          response
		path       string
		old, wrong string
	}{
		"a status that is none":       {intent, intentPath(id, ""), `"requires_payment_method"`, `"failed"`},
		"a field that is missing":     {intent, intentPath(id, ""), `"currency": "eur",`, ``},
		"a field that is unknown":     {intent, intentPath(id, ""), `"currency": "eur"`, `"currency": "eur", "charges": []`},
		"a text for a number":         {intent, intentPath(id, ""), `"amount": 2000`, `"amount": "2000"`},
		"a null that may not be":      {intent, intentPath(id, ""), `"metadata": {`, `"metadata": null, "was": {`},
		"deep in the last error":      {intent, intentPath(id, ""), `"funding": "credit"`, `"funding": 7`},
		"an error's type":             {declined, intentPath(id, "confirm"), `"card_error"`, `"rate_limit_error"`},
		"an intent inside an error":   {declined, intentPath(id, "confirm"), `"requires_payment_method"`, `"failed"`},
		"a snapshot inside an event":  {events, "/v1/events", `"network_status"`, `"network"`},
		"an event's own field":        {events, "/v1/events", `"pending_webhooks": 0`, `"pending_webhooks": null`},
		"another object than desired": {events, "/v1/account", `"list"`, `"list"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spoiled := strings.Replace(tc.r.raw, tc.old, tc.wrong, 1)
			require.True(t, tc.old == tc.wrong || spoiled != tc.r.raw, tc.r.raw)
			require.True(t, json.Valid([]byte(spoiled)))
			method := http.MethodGet
			if strings.HasSuffix(tc.path, "/confirm") {
				method = http.MethodPost
			}
			require.Error(t, against.response(method, tc.path, tc.r.status, []byte(spoiled)))
		})
	}
	t.Run("a parameter that Stripe does not have", func(t *testing.T) {
		t.Parallel()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/v1/payment_intents", strings.NewReader(cardIntent+"&colour=red"))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		require.ErrorContains(t, against.request(r), "additional properties")
	})
}
