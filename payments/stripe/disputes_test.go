package stripe

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
)

const wholeDispute = `{"id": "dp_1Wire", "object": "dispute", "amount": 4200, "currency": "eur", "charge": "ch_3Wire", "payment_intent": "pi_3Wire",
	"status": "needs_response", "reason": "fraudulent", "created": 1700000000, "is_charge_refundable": false, "livemode": false, "metadata": {},
	"balance_transactions": [{"id": "txn_1", "object": "balance_transaction", "amount": -4200, "fee": 1500, "net": -5700, "currency": "eur", "type": "adjustment"}]}`

// TestDisputesAreTranslated: the status and the reason are Stripe's words, the amount is ours, and the money is gone while more
// balance transactions take it than bring it back.
func TestDisputesAreTranslated(t *testing.T) {
	t.Parallel()
	back := strings.Replace(wholeDispute, `"type": "adjustment"}`, `"type": "adjustment"},
		{"id": "txn_2", "object": "balance_transaction", "amount": 4199, "fee": 0, "net": 4199, "currency": "eur", "type": "adjustment"}`, 1)
	tests := map[string]struct {
		body string
		want domain.Dispute
	}{
		"withdrawn": {wholeDispute, domain.Dispute{
			ID: "dp_1Wire", Status: "needs_response", Amount: domain.Money{Amount: 4200, Currency: "EUR"}, Reason: "fraudulent", Withdrawn: true,
		}},
		"reinstated, at another rate": {strings.Replace(back, "needs_response", "won", 1), domain.Dispute{
			ID: "dp_1Wire", Status: "won", Amount: domain.Money{Amount: 4200, Currency: "EUR"}, Reason: "fraudulent",
		}},
		"an inquiry in yen": {
			strings.NewReplacer(`needs_response`, `warning_needs_response`, `"eur", "charge"`, `"jpy", "charge"`).Replace(before(wholeDispute, `"balance_transactions"`) + `"balance_transactions": []}`),
			domain.Dispute{ID: "dp_1Wire", Status: "warning_needs_response", Amount: domain.Money{Amount: 4200, Currency: "JPY"}, Reason: "fraudulent"},
		},
		"shillings are sent with two digits more": {
			strings.Replace(wholeDispute, `"eur", "charge"`, `"ugx", "charge"`, 1),
			domain.Dispute{ID: "dp_1Wire", Status: "needs_response", Amount: domain.Money{Amount: 42, Currency: "UGX"}, Reason: "fraudulent", Withdrawn: true},
		},
		"nobody has heard of it": {
			strings.Replace(wholeDispute, "needs_response", "on_the_moon", 1),
			domain.Dispute{ID: "dp_1Wire", Status: "on_the_moon", Amount: domain.Money{Amount: 4200, Currency: "EUR"}, Reason: "fraudulent", Withdrawn: true},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, asked := pages(listBody(false, tt.body))
			p := newProvider(t, answer)
			got, err := gatewayTo(t, p.URL).Disputes(t.Context(), intentID)
			require.NoError(t, err)
			require.Equal(t, []payments.ProviderDispute{{Dispute: tt.want, IntentID: intentID, Opened: time.Unix(1700000000, 0).UTC()}}, got)
			require.Equal(t, []url.Values{{"limit": {"100"}, "payment_intent": {intentID}}}, *asked)
			require.Equal(t, "/v1/disputes", p.requests()[0].path)
		})
	}
}

// TestDisputesAreListedWholeOrNot: a dispute of which anything is missing is no answer (G8).
func TestDisputesAreListedWholeOrNot(t *testing.T) {
	t.Parallel()
	spoiled := func(old, now string) string {
		require.Contains(t, wholeDispute, old)
		return strings.Replace(wholeDispute, old, now, 1)
	}
	tests := map[string][]string{
		"of another intent":           {listBody(false, spoiled("pi_3Wire", "pi_3Other"))},
		"of no intent":                {listBody(false, spoiled(`"payment_intent": "pi_3Wire",`, ""))},
		"a charge":                    {listBody(false, chargeBody("ch_1", intentID))},
		"without status":              {listBody(false, spoiled(`"status": "needs_response",`, ""))},
		"a status that is no word":    {listBody(false, spoiled("needs_response", "needs response"))},
		"without time":                {listBody(false, spoiled("1700000000", "0"))},
		"a currency that is none":     {listBody(false, spoiled(`"eur", "charge"`, `"zzz", "charge"`))},
		"half a shilling":             {listBody(false, strings.Replace(spoiled(`"eur", "charge"`, `"ugx", "charge"`), "4200", "4250", 1))},
		"a bare balance transaction":  {listBody(false, before(wholeDispute, `"balance_transactions"`)+`"balance_transactions": ["txn_1"]}`)},
		"a page that promises more":   {listBody(true, wholeDispute)},
		"a second page that is empty": {listBody(true, wholeDispute), listBody(false)},
		"a null":                      {listBody(false, "null")},
	}
	for name, bodies := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, _ := pages(bodies...)
			p := newProvider(t, answer)
			got, err := quick(t, p.URL).Disputes(t.Context(), intentID)
			require.Error(t, err)
			require.Nil(t, got)
		})
	}
}

func before(s, sep string) string {
	head, _, _ := strings.Cut(s, sep)
	return head
}
