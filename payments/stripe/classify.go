package stripe

import (
	"errors"
	"net/http"

	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/domain"
	"holdfast/payments"
)

// answer is all that is known after one send.
type answer struct {
	err     error              // what the SDK made of it
	intent  *sdk.PaymentIntent // what it decoded if err is nil
	refund  *sdk.Refund        // the same, of a refund
	status  int                // 0: no answer
	header  http.Header
	written int // how often the request's headers were written
}

// classify says what a send has shown. It decides by status and code before type, since the type of a 409 is disputed,
// and takes "not sent" from what was written, never from an error: if a kept-alive connection dies under a request that
// was executed and cannot be dialled again, the dial error is all that is left. What no line names is Unknown.
func classify(c payments.Call, a answer) payments.Outcome {
	out := payments.Outcome{
		HTTPStatus: a.status,
		RequestID:  token(a.header.Get("Request-Id")),
		Replayed:   a.header.Get("Idempotent-Replayed") == "true",
	}
	var refusal *sdk.Error
	switch {
	case a.err == nil && c.Operation == domain.OpRefund:
		out.Class, out.Refund = acceptedRefund(c, a)
	case a.err == nil:
		out.Class, out.Intent = accepted(c, a)
	case errors.As(a.err, &refusal) && fromStripe(refusal):
		out.Code, out.DeclineCode = token(string(refusal.Code)), token(string(refusal.DeclineCode))
		out.Intent = embedded(c, refusal)
		out.Class = refused(a.status, refusal, out.Intent != nil)
		out.Stored = a.status == http.StatusInternalServerError
	case a.status == 0 && a.written == 0:
		out.Class = payments.NotExecuted
	}
	if a.written > 1 && out.Class == payments.NotExecuted {
		out.Class = payments.Unknown // the second send was not executed; of the first nothing was heard
	}
	if out.Class != payments.Executed && out.Class != payments.Declined && out.Class != payments.KnownState {
		out.Intent = nil
	}
	out.Detail = detail(out, a)
	return out
}

// accepted reads an answer that the SDK took for a success: anything below 400 that is JSON, an empty object too.
func accepted(c payments.Call, a answer) (payments.Class, *payments.Intent) {
	if a.status < 200 || a.status > 299 {
		return payments.Unknown, nil
	}
	intent, err := translate(a.intent)
	if err != nil || c.IntentID != "" && intent.ID != c.IntentID {
		return payments.Unknown, nil // executed, no doubt, but of what came back nothing can be believed
	}
	return payments.Executed, &intent
}

// acceptedRefund is accepted for a refund.
func acceptedRefund(c payments.Call, a answer) (payments.Class, *payments.ProviderRefund) {
	refund, err := translateRefund(a.refund, c.IntentID)
	if err != nil || a.status < 200 || a.status > 299 {
		return payments.Unknown, nil
	}
	return payments.Executed, &refund
}

// fromStripe tells Stripe's error from an empty one, which a proxy could have written as well.
func fromStripe(e *sdk.Error) bool { return e.Type != "" || e.Code != "" }

// embedded is the intent that came with a refusal, if it is the one that the call was about.
func embedded(c payments.Call, e *sdk.Error) *payments.Intent {
	intent, err := translate(e.PaymentIntent)
	if err != nil || c.IntentID != "" && intent.ID != c.IntentID {
		return nil
	}
	return &intent
}

func refused(status int, e *sdk.Error, withIntent bool) payments.Class {
	switch status {
	case http.StatusConflict:
		return payments.Busy
	case http.StatusTooManyRequests:
		if e.Code == sdk.ErrorCodeLockTimeout {
			return payments.Busy
		}
		return payments.NotExecuted
	case http.StatusUnauthorized, http.StatusForbidden:
		return payments.NotExecuted
	case http.StatusPaymentRequired:
		return payments.Declined
	case http.StatusBadRequest:
		switch {
		case e.Type == sdk.ErrorTypeIdempotency:
			return payments.KeyMismatch
		case e.Code == sdk.ErrorCodePaymentIntentUnexpectedState && withIntent:
			return payments.KnownState
		}
		return payments.Rejected
	case http.StatusNotFound:
		return payments.Rejected
	default:
		return payments.Unknown // a 500 is stored under the key, but what it did is not known
	}
}
