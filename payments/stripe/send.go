package stripe

import (
	"context"
	"net/http"

	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/domain"
	"holdfast/payments"
)

// Send makes one send and tells what is known of it. If ctx ends, the send may have been executed all the same, and the
// outcome says Unknown.
func (g *Gateway) Send(ctx context.Context, c payments.Call) payments.Outcome {
	if out, ok := sendable(c); !ok {
		return out
	}
	w, intent, refund := &witness{}, &sdk.PaymentIntent{}, &sdk.Refund{}
	var into sdk.LastResponseSetter = intent
	if c.Operation == domain.OpRefund {
		into = refund
	}
	// Never nil parameters: with those the SDK sends no key at all, and without a key in them it makes one up.
	params := &sdk.Params{Context: w.watch(ctx), IdempotencyKey: sdk.String(c.Key)}
	err := g.writes.CallRaw(http.MethodPost, path(c), g.key(), encode(c.Params), params, into)
	return classify(c, answer{
		err: err, intent: intent, refund: refund,
		status: w.status, header: w.header, written: int(w.written.Load()),
	})
}

// sendable stops what would be executed as something else than was meant: each of these is an error of ours.
func sendable(c payments.Call) (payments.Outcome, bool) {
	not := func(why string) (payments.Outcome, bool) {
		return payments.Outcome{Class: payments.NotExecuted, Detail: "not sent: " + why}, false
	}
	_, known := suffix(c.Operation)
	_, priced := c.Params["amount"]
	switch {
	case !known:
		return not("the operation is not known here")
	case !keyFits(c.Key):
		return not("the idempotency key is not 1 to 255 visible ASCII characters")
	case c.Operation == domain.OpCreate && c.IntentID != "":
		return not("a create names no intent")
	case c.Operation != domain.OpCreate && !idFits(c.IntentID):
		return not("the intent's id is missing or malformed")
	case c.Operation == domain.OpRefund && c.Params["payment_intent"] != c.IntentID:
		return not("the refund is of another intent")
	case (c.Operation == domain.OpCreate || c.Operation == domain.OpRefund) && !priced:
		return payments.Outcome{
			Class: payments.Rejected, Detail: "not sent: the provider cannot take this amount in this currency",
		}, false
	}
	return payments.Outcome{}, true
}

func path(c payments.Call) string {
	switch c.Operation {
	case domain.OpCreate:
		return intentsPath
	case domain.OpRefund:
		return refundsPath
	case domain.OpUpdate, domain.OpConfirm, domain.OpCancel:
	}
	end, _ := suffix(c.Operation)
	return intentsPath + "/" + c.IntentID + end
}

const (
	intentsPath = "/v1/payment_intents"
	refundsPath = "/v1/refunds"
)

// suffix is what follows the intent in the path of an operation.
func suffix(op domain.Operation) (string, bool) {
	end, known := map[domain.Operation]string{
		domain.OpCreate:  "",
		domain.OpUpdate:  "",
		domain.OpConfirm: "/confirm",
		domain.OpCancel:  "/cancel",
		domain.OpRefund:  "", // which names the intent in its parameters
	}[op]
	return end, known
}

// keyFits is stricter than the SDK, which trims white space, and would send what is left: perhaps nothing.
func keyFits(key string) bool {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return key != "" && len(key) <= domain.MaxKeyLength
}

// idFits keeps an id from leading a request to another path.
func idFits(id string) bool { return id != "" && token(id) == id }
