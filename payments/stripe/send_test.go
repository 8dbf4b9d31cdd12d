package stripe

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/domain"
	"holdfast/payments"
)

func frozenCharge() payments.Charge {
	booking, _ := domain.ParseID[domain.BookingID]("018f3b0e-0000-7000-8000-00000000000b")
	payment, _ := domain.ParseID[domain.PaymentID]("018f3b0e-0000-7000-8000-00000000000a")
	return payments.Charge{
		BookingID: booking, PaymentID: payment, PaymentMethod: "pm_card_visa",
		Total: domain.Money{Amount: 4200, Currency: "EUR"},
	}
}

// frozenRefund is a refund of all of a charge.
func frozenRefund(c payments.Charge, intent string) payments.Refund {
	id, _ := domain.ParseID[domain.RefundID]("018f3b0e-0000-7000-8000-00000000000c")
	if c.PaymentID != frozenCharge().PaymentID {
		id = domain.NewID[domain.RefundID]()
	}
	return payments.Refund{ID: id, Ordinal: 1, BookingID: c.BookingID, PaymentID: c.PaymentID, IntentID: intent, Total: c.Total}
}

// A refund's answer is believed only if it is a whole refund of the intent that was named (G3).
func TestRefundsThatAreNotBelieved(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{}`, `{"object":"refund","id":"re_3Wire","amount":4200,"currency":"eur","payment_intent":"pi_3Wire"}`, wholeIntent,
		`{"object":"refund","id":"re_3Wire","status":"succeeded","amount":4200,"currency":"eur","payment_intent":"pi_3Other"}`,
	} {
		p := newProvider(t, says(200, body))
		refund := frozenRefund(frozenCharge(), intentID)
		g := gatewayTo(t, p.URL)
		call := payments.Call{Operation: domain.OpRefund, IntentID: intentID, Key: "k", Params: g.FreezeRefund(refund)}
		require.Equal(t, payments.Unknown, g.Send(t.Context(), call).Class, body)
		call.IntentID = "pi_3Other"
		require.Equal(t, payments.NotExecuted, g.Send(t.Context(), call).Class, "a refund of another intent is not sent")
	}
}

// TestIncident13_TheBytesOfASend are golden: a key that was first sent by an older build must be sent again in the same
// bytes, or Stripe answers with a mismatch.
func TestIncident13_TheBytesOfASend(t *testing.T) {
	t.Parallel()
	g := gatewayTo(t, "http://127.0.0.1:1")
	const body = "amount=4200&capture_method=automatic&currency=eur" +
		"&metadata[booking_id]=018f3b0e-0000-7000-8000-00000000000b" +
		"&metadata[payment_id]=018f3b0e-0000-7000-8000-00000000000a" +
		"&payment_method=pm_card_visa&payment_method_types[0]=card"
	tests := []struct {
		op         domain.Operation
		intent     string
		path, body string
	}{
		{domain.OpCreate, "", "/v1/payment_intents", body},
		{domain.OpConfirm, intentID, "/v1/payment_intents/pi_3Wire/confirm", ""},
		{domain.OpCancel, intentID, "/v1/payment_intents/pi_3Wire/cancel", ""},
	}
	t.Run("refund", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t, says(200, `{"object":"refund","id":"re_3Wire","status":"succeeded","amount":4200,"currency":"eur","payment_intent":"pi_3Wire"}`))
		out := gatewayTo(t, p.URL).Send(t.Context(), payments.Call{
			Operation: domain.OpRefund, IntentID: intentID, Key: "hf:refund:refund:1", Params: g.FreezeRefund(frozenRefund(frozenCharge(), intentID)),
		})
		require.Equal(t, payments.Executed, out.Class, out.Detail)
		require.Equal(t, "re_3Wire", out.Refund.ID)
		r := p.requests()[0]
		require.Equal(t, "/v1/refunds", r.path)
		require.Equal(t, "amount=4200&metadata[booking_id]=018f3b0e-0000-7000-8000-00000000000b"+
			"&metadata[payment_id]=018f3b0e-0000-7000-8000-00000000000a&metadata[refund_id]=018f3b0e-0000-7000-8000-00000000000c"+
			"&metadata[refund_ordinal]=1&payment_intent=pi_3Wire", r.body)
		require.Equal(t, []string{"hf:refund:refund:1"}, r.header["Idempotency-Key"])
	})
	for _, tt := range tests {
		t.Run(string(tt.op), func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, says(200, wholeIntent))
			call := payments.Call{
				Operation: tt.op, IntentID: tt.intent, Key: "hf:payment:op:1", Params: g.Freeze(tt.op, frozenCharge()),
			}
			g := gatewayTo(t, p.URL) // one, since telemetry would come with its second request
			for range 20 {           // maps have no order
				call.Params = maps.Clone(call.Params)
				out := g.Send(t.Context(), call)
				require.Equal(t, payments.Executed, out.Class, out.Detail)
			}
			for _, r := range p.requests() {
				require.Equal(t, "POST", r.method)
				require.Equal(t, tt.path, r.path)
				require.Empty(t, r.query)
				require.Equal(t, tt.body, r.body)
				require.Equal(t, []string{"hf:payment:op:1"}, r.header["Idempotency-Key"])
				require.Equal(t, "2023-10-16", r.header.Get("Stripe-Version"))
				require.Equal(t, "Bearer sk_test_wire", r.header.Get("Authorization"))
				require.Equal(t, "application/x-www-form-urlencoded", r.header.Get("Content-Type"))
				require.Empty(t, r.header.Get("X-Stripe-Client-Telemetry"))
				require.Empty(t, r.header.Get("Stripe-Account"))
			}
		})
	}
}

// TestParamsSurviveTheirStorage: they go to the database and back, and may come back as nil.
func TestParamsSurviveTheirStorage(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says(200, wholeIntent))
	call := confirm()
	call.Params = nil
	require.Equal(t, payments.Executed, gatewayTo(t, p.URL).Send(t.Context(), call).Class)
	require.Equal(t, []string{intentKey}, p.requests()[0].header["Idempotency-Key"], "nil parameters are sent under the key, too")
}

// TestWhatWouldBeSomethingElseIsNotSent (G3).
func TestWhatWouldBeSomethingElseIsNotSent(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says(200, wholeIntent))
	g := gatewayTo(t, p.URL)
	create := payments.Call{Operation: domain.OpCreate, Key: "k", Params: g.Freeze(domain.OpCreate, frozenCharge())}
	with := func(c payments.Call, change func(*payments.Call)) payments.Call { change(&c); return c }
	long := make([]byte, 256)
	for i := range long {
		long[i] = 'k'
	}
	tests := map[string]payments.Call{
		"no operation":        with(create, func(c *payments.Call) { c.Operation = "" }),
		"unknown operation":   with(confirm(), func(c *payments.Call) { c.Operation = "capture" }),
		"no key":              with(confirm(), func(c *payments.Call) { c.Key = "" }),
		"key of white space":  with(confirm(), func(c *payments.Call) { c.Key = " \t" }),
		"key with newline":    with(confirm(), func(c *payments.Call) { c.Key = "k\nx: y" }),
		"long key":            with(confirm(), func(c *payments.Call) { c.Key = string(long) }),
		"no intent":           with(confirm(), func(c *payments.Call) { c.IntentID = "" }),
		"intent as a path":    with(confirm(), func(c *payments.Call) { c.IntentID = "pi_1/cancel?" }),
		"create of an intent": with(create, func(c *payments.Call) { c.IntentID = intentID }),
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := g.Send(t.Context(), call)
			require.Equal(t, payments.NotExecuted, out.Class)
			require.Contains(t, out.Detail, "not sent: ")
			require.Empty(t, p.requests())
		})
	}
	t.Run("no amount", func(t *testing.T) {
		t.Parallel()
		c := frozenCharge()
		c.Total.Currency = "XXX"
		call := create
		call.Params = g.Freeze(domain.OpCreate, c)
		out := g.Send(t.Context(), call)
		require.Equal(t, payments.Rejected, out.Class, "the same parameters never will")
		require.Empty(t, p.requests())
	})
}

// TestNoGlobals: two gateways of one process speak to two accounts, and leave the SDK's globals as they were.
func TestNoGlobals(t *testing.T) {
	t.Parallel()
	one, two := newProvider(t, says(200, wholeIntent)), newProvider(t, says(200, wholeIntent))
	g1 := gatewayTo(t, one.URL, func(c *Config) { c.APIKey = "sk_test_one" })
	g2 := gatewayTo(t, two.URL, func(c *Config) { c.APIKey = "rk_test_two" })
	g1.Send(t.Context(), confirm())
	g2.Send(t.Context(), confirm())
	require.Equal(t, "Bearer sk_test_one", one.requests()[0].header.Get("Authorization"))
	require.Equal(t, "Bearer rk_test_two", two.requests()[0].header.Get("Authorization"))
	require.Len(t, one.requests(), 1)
	require.Empty(t, sdk.Key)
	require.True(t, sdk.EnableTelemetry, "ours are off, the default is not touched")
}
