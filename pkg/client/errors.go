package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Code names a kind of problem, for programs. It never changes its meaning; docs/errors.md lists every one with what may
// already have happened and what to do. New ones may be added.
type Code string

// The codes that a program commonly tells apart.
const (
	CodeSlotUnavailable    Code = "slot_unavailable"        // refused, and the key is spent: trying again is a new intention
	CodePriceChanged       Code = "price_changed"           // refused, and the key is spent: show the new price, and use a new key
	CodePaymentNotDeclined Code = "payment_not_declined"    // no other card is called for, and the key is spent: look at the booking
	CodeBookingOver        Code = "booking_over"            // not cancelled, and the key is spent: the time of the paid booking has passed
	CodeRefundChanged      Code = "refund_changed"          // not cancelled, and the key is spent: show the new refund, and use a new key
	CodeTooManyCards       Code = "too_many_cards"          // refused for now or for good, and the key is free
	CodeRequestInProgress  Code = "request_in_progress"     // sent again by the Client itself
	CodeKeyExpired         Code = "idempotency_key_expired" // the key was used long ago; Location is its booking, if it made one
	CodeKeyReused          Code = "idempotency_key_reused"  // the key belongs to another request: a fault of the caller's
	CodeValidationFailed   Code = "validation_failed"       // Faults say what is wrong
	CodeResourceNotFound   Code = "resource_not_found"
	CodeNotFound           Code = "not_found"
	CodeUnauthenticated    Code = "unauthenticated"
	CodeForbidden          Code = "forbidden"
)

// Problem is a refusal by the API (RFC 9457). It speaks of the send that it answers, and the Client returns it alone only
// if no earlier send of the same call can have done anything, or if the code itself is the decision for the key.
type Problem struct { //nolint:errname // the name of the document, as in RFC 9457
	Status    int    // of HTTP
	Code      Code   // empty if the answer was no problem document: something between has refused
	Title     string // what kind of problem this is; the same for every problem of one code
	Detail    string // what is wrong with this request, for people
	Faults    []Fault
	RequestID string // quote it when you ask the operator
	Location  string // of the booking that an expired key has made; else empty
	Replayed  bool   // this is the stored answer of an earlier send
}

// Fault is one thing wrong with a request.
type Fault struct {
	Location string `json:"location"` // where, such as body.customer.email
	Message  string `json:"message"`  // what is wrong there, and what would be right
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("holdfast answered %d %s", p.Status, p.Code)
	if p.Code == "" {
		text = fmt.Sprintf("%d %s, not from the API", p.Status, http.StatusText(p.Status))
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if p.RequestID != "" {
		text += " (request " + p.RequestID + ")"
	}
	return text
}

// decidesTheKey says that the problem is what the key itself stands for, whatever became of earlier sends.
func (p *Problem) decidesTheKey() bool {
	switch p.Code { //nolint:exhaustive // the others say nothing about the key
	case CodeSlotUnavailable, CodePriceChanged, CodePaymentNotDeclined, CodeBookingOver, CodeRefundChanged, CodeKeyExpired, CodeKeyReused:
		return true
	default:
		return false
	}
}

// UnknownError says that no definite answer came: what was asked for may have been done, or may still be done by a send
// on its way. It is no failure. Send the same request again under Key, now or later: it is never done twice.
type UnknownError struct {
	Key   Key
	Tries int   // sends made by this call
	Cause error // why it ended, and what the last send brought: of the context, the connection, or a *Problem
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("outcome unknown (sent: %d): it may have happened; send the same again under key %q to learn it: %v",
		e.Tries, string(e.Key), e.Cause)
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *UnknownError) Unwrap() error { return e.Cause }

// readRefusal makes a *Problem of an answer that is a refusal. A problem document that cannot be read was cut on its way:
// what it refuses is not known then, and it is no *Problem.
func readRefusal(a answer) error {
	p := &Problem{Status: a.status, RequestID: a.header.Get("X-Request-Id")}
	mediaType, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/problem+json") {
		return p // something between has refused, and where it would lead us is no booking
	}
	var document struct {
		Code   Code    `json:"code"`
		Title  string  `json:"title"`
		Detail string  `json:"detail"`
		Errors []Fault `json:"errors"`
	}
	err := json.Unmarshal(a.body, &document)
	if err != nil || document.Code == "" {
		return fmt.Errorf("the problem document of a %d was cut", a.status)
	}
	p.Code, p.Title, p.Detail, p.Faults = document.Code, document.Title, document.Detail, document.Errors
	p.Location, p.Replayed = a.header.Get("Location"), a.header.Get("Idempotency-Replayed") == "true"
	return p
}
