package stripe

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
)

const wholeMovement = `{"id": "txn_1", "object": "balance_transaction", "type": "charge", "reporting_category": "charge", "amount": 3125, "fee": 72,
	"net": 3053, "currency": "eur", "exchange_rate": 0.00625, "created": 1700000000, "available_on": 1700200000, "status": "pending", "source":
	{"id": "ch_1", "object": "charge", "amount": 9000, "amount_captured": 5000, "currency": "jpy", "payment_intent": "pi_3Wire"}}`

// TestTransactionsAreTranslated: the settlement's money and what the customer was shown are two amounts in two currencies.
func TestTransactionsAreTranslated(t *testing.T) {
	t.Parallel()
	whole := payments.Transaction{
		ID: "txn_1", Type: "charge", Category: "charge", SourceID: "ch_1", IntentID: intentID, Amount: domain.Money{Amount: 3125, Currency: "EUR"},
		Fee: 72, Net: 3053, ExchangeRate: "0.00625", Presented: &domain.Money{Amount: 5000, Currency: "JPY"},
		Created: time.Unix(1700000000, 0).UTC(), Available: time.Unix(1700200000, 0).UTC(),
	}
	change := func(f func(*payments.Transaction)) payments.Transaction {
		changed := whole
		f(&changed)
		return changed
	}
	source := func(now string) string { return before(wholeMovement, `{"id": "ch_1"`) + now + "}" }
	tests := map[string]struct {
		body string
		want payments.Transaction
	}{
		"a charge": {wholeMovement, whole},
		"a refund": {
			strings.NewReplacer(`"amount": 3125`, `"amount": -3125`, `"fee": 72`, `"fee": 0`, "3053", "-3125").Replace(
				source(`{"id": "re_1", "object": "refund", "amount": 5000, "currency": "jpy", "payment_intent": "pi_3Wire"}`)),
			change(func(x *payments.Transaction) {
				x.SourceID, x.Amount.Amount, x.Fee, x.Net, x.Presented = "re_1", -3125, 0, -3125, &domain.Money{Amount: -5000, Currency: "JPY"}
			}),
		},
		"a payout": {
			strings.Replace(source(`{"id": "po_1", "object": "payout", "amount": 3053, "currency": "eur"}`), `0.00625`, `null`, 1),
			change(func(x *payments.Transaction) {
				x.SourceID, x.IntentID, x.Presented, x.ExchangeRate = "po_1", "", nil, ""
			}),
		},
		"of no source": {source("null"), change(func(x *payments.Transaction) { x.SourceID, x.IntentID, x.Presented = "", "", nil })},
		"of an id":     {source(`"ch_1"`), change(func(x *payments.Transaction) { x.IntentID, x.Presented = "", nil })},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, asked := pages(listBody(false, tt.body))
			p := newProvider(t, answer)
			got, err := listed(t, gatewayTo(t, p.URL), time.Unix(1700000000, 0), time.Unix(1700000001, 0))
			require.NoError(t, err)
			require.Equal(t, []payments.Transaction{tt.want}, got)
			require.Equal(t, []url.Values{{
				"limit": {"100"}, "created[gte]": {"1700000000"}, "created[lt]": {"1700000001"}, "expand[0]": {"data.source"},
			}}, *asked)
		})
	}
}

// TestTransactionsAreListedWholeOrNot: a movement of which anything is missing or does not add up is no answer (G8).
func TestTransactionsAreListedWholeOrNot(t *testing.T) {
	t.Parallel()
	spoiled := func(old, now string) string {
		require.Contains(t, wholeMovement, old)
		return strings.Replace(wholeMovement, old, now, 1)
	}
	tests := map[string][]string{
		"net is not amount less fee":  {listBody(false, spoiled("3053", "3054"))},
		"another object":              {listBody(false, spoiled("balance_transaction", "charge"))},
		"without category":            {listBody(false, spoiled(`"reporting_category": "charge",`, ""))},
		"before the window":           {listBody(false, spoiled("1700000000", "1699999999"))},
		"at the window's end":         {listBody(false, spoiled("1700000000", "1700000001"))},
		"a currency that is none":     {listBody(false, spoiled("eur", "zzz"))},
		"a source without id":         {listBody(false, spoiled(`"id": "ch_1", `, ""))},
		"a source that is a number":   {listBody(false, before(wholeMovement, `{"id": "ch_1"`)+"7}")},
		"an intent that is no id":     {listBody(false, spoiled("pi_3Wire", "pi 3"))},
		"a page that promises more":   {listBody(true, wholeMovement)},
		"a second page that is empty": {listBody(true, wholeMovement), listBody(false)},
		"a null":                      {listBody(false, "null")},
	}
	for name, bodies := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, _ := pages(bodies...)
			p := newProvider(t, answer)
			got, err := listed(t, quick(t, p.URL), time.Unix(1700000000, 0), time.Unix(1700000001, 0))
			require.Error(t, err)
			require.Nil(t, got)
		})
	}
}

// TestAChargesTransactionMayBeMissing: a charge without one is no error, and no transaction.
func TestAChargesTransactionMayBeMissing(t *testing.T) {
	t.Parallel()
	movement := before(wholeMovement, `"source"`) + `"source": "ch_2"}`
	charge := func(id, intent, transaction string) string {
		return `{"id": "` + id + `", "object": "charge", "amount": 5000, "amount_captured": 5000, "currency": "jpy", "payment_intent": "` + intent +
			`", "balance_transaction": ` + transaction + `}`
	}
	answer, asked := pages(listBody(false, charge("ch_1", intentID, "null"), charge("ch_2", intentID, movement)))
	p := newProvider(t, answer)
	got, err := gatewayTo(t, p.URL).ChargeTransactions(t.Context(), intentID)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, []any{"ch_2", intentID, &domain.Money{Amount: 5000, Currency: "JPY"}}, []any{got[0].SourceID, got[0].IntentID, got[0].Presented})
	require.Equal(t, []url.Values{{"limit": {"100"}, "payment_intent": {intentID}, "expand[0]": {"data.balance_transaction"}}}, *asked)

	for _, bad := range []string{charge("ch_1", "pi_3Other", "null"), charge("ch_1", intentID, `{}`), charge("", intentID, "null"), "null"} {
		answer, _ := pages(listBody(false, bad))
		got, err := quick(t, newProvider(t, answer).URL).ChargeTransactions(t.Context(), intentID)
		require.Error(t, err, bad)
		require.Empty(t, got)
	}
	_, err = quick(t, p.URL).ChargeTransactions(t.Context(), "no id")
	require.Error(t, err)
	for status, says := range map[int]string{http.StatusNotFound: `{"error": {"type": "invalid_request_error", "code": "resource_missing"}}`, http.StatusUnauthorized: "{}"} {
		p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(says))
		})
		_, err = quick(t, p.URL).ChargeTransactions(t.Context(), intentID)
		require.Equal(t, status == http.StatusNotFound, errors.Is(err, payments.ErrNoIntent), "%v", err)
		require.Error(t, err)
	}
}

// listed collects a listing; half of one is nothing.
func listed(t *testing.T, g *Gateway, from, to time.Time) (all []payments.Transaction, err error) {
	t.Helper()
	err = g.EachTransaction(t.Context(), from, to, func(page []payments.Transaction) error {
		all = append(all, page...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
