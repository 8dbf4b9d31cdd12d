package stripesim

import (
	"fmt"
	"net/http"
	"strings"
)

// The four types an error has on the wire. A rate limit is an invalid_request_error too.
const (
	typeAPI         = "api_error"
	typeCard        = "card_error"
	typeIdempotency = "idempotency_error"
	typeInvalid     = "invalid_request_error"
)

const codeUnexpectedState = "payment_intent_unexpected_state"

// apiError is one of Stripe's errors, on the wire and as an intent's last_payment_error.
type apiError struct {
	status        int
	kind          string // "type" on the wire
	code          string
	declineCode   string
	message       string
	param         string
	charge        string
	paymentIntent object
	paymentMethod object
}

// envelope is the body of an error answer.
func (e *apiError) envelope(requestID string) object {
	fields := e.fields()
	if e.paymentIntent != nil {
		fields["payment_intent"] = e.paymentIntent
	}
	fields["request_log_url"] = "https://dashboard.stripe.com/test/logs/" + requestID
	return object{"error": fields}
}

// fields is the error as last_payment_error shows it: without the intent it is part of.
func (e *apiError) fields() object {
	fields := object{"type": e.kind, "message": e.message}
	if e.code != "" {
		fields["code"] = e.code
		fields["doc_url"] = "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(e.code, "_", "-")
	}
	for name, value := range map[string]string{"decline_code": e.declineCode, "param": e.param, "charge": e.charge} {
		if value != "" {
			fields[name] = value
		}
	}
	if e.paymentMethod != nil {
		fields["payment_method"] = e.paymentMethod
	}
	return fields
}

func invalid(code, param, format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusBadRequest, kind: typeInvalid, code: code, param: param,
		message: fmt.Sprintf(format, args...),
	}
}

func failure(status int, kind, code, message string) *apiError {
	return &apiError{status: status, kind: kind, code: code, message: message}
}

// missing is the answer for an object named by the path, or by a list's cursor.
func missing(what, param, id string) *apiError {
	e := invalid("resource_missing", param, "There is no %s with the id %q in this account.", what, id)
	e.status = http.StatusNotFound
	return e
}

func lockTimeout() *apiError {
	return failure(http.StatusTooManyRequests, typeInvalid, "lock_timeout",
		"Another request is working on this object. Try again in a moment.")
}

func keyInUse() *apiError {
	return failure(http.StatusConflict, typeInvalid, "idempotency_key_in_use",
		"Another request with this idempotency key is still running.")
}

func serverError(status int) *apiError {
	return failure(status, typeAPI, "", "Something went wrong on the provider's side.")
}
