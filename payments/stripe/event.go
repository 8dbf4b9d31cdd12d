package stripe

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"holdfast/payments"
)

var errNoEvent = errors.New("the answer holds something that is no event")

// readEvent takes from an event which objects it is about, and nothing of how they stood. It asks for an id and a type
// and for nothing else: the API version of an event is set in a dashboard, and its shape changes with it.
func readEvent(raw []byte) (payments.Event, error) {
	var e struct {
		ID       json.RawMessage `json:"id"`
		Type     json.RawMessage `json:"type"`
		Created  json.RawMessage `json:"created"`
		Livemode json.RawMessage `json:"livemode"`
		Request  json.RawMessage `json:"request"`
		Data     json.RawMessage `json:"data"`
	}
	if !json.Valid(raw) || members(raw, &e) != nil {
		return payments.Event{}, errNoEvent
	}
	event := payments.Event{ID: identifier(e.ID), Type: eventType(text(e.Type)), Created: instant(e.Created)}
	if event.ID == "" || event.Type == "" {
		return payments.Event{}, errNoEvent
	}
	_ = json.Unmarshal(e.Livemode, &event.Livemode) // absent is false
	var request struct {
		Key json.RawMessage `json:"idempotency_key"`
	}
	if members(e.Request, &request) == nil { // before 2017 it was the request's bare id
		event.Key = key(text(request.Key))
	}
	var data struct {
		Object json.RawMessage `json:"object"`
	}
	var object struct {
		ID       json.RawMessage `json:"id"`
		Object   json.RawMessage `json:"object"`
		Intent   json.RawMessage `json:"payment_intent"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if members(e.Data, &data) == nil {
		_ = members(data.Object, &object) // what is no object has no ids
	}
	event.ObjectID, event.ObjectType = identifier(object.ID), token(text(object.Object))
	event.IntentID = identifier(object.Intent)
	if event.ObjectType == "payment_intent" {
		event.IntentID = event.ObjectID
	}
	var metadata map[string]json.RawMessage
	if members(object.Metadata, &metadata) == nil {
		event.BookingID, event.PaymentID = token(text(metadata[metadataBooking])), token(text(metadata[metadataPayment]))
	}
	return event, nil
}

// members decodes a JSON object and nothing else: null, an array or a string is an error.
func members(raw json.RawMessage, into any) error {
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return errNoEvent
	}
	return json.Unmarshal(raw, into)
}

// text is a JSON string, or empty for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// identifier is an object's id, given as such or as the object itself.
func identifier(raw json.RawMessage) string {
	var expanded struct {
		ID json.RawMessage `json:"id"`
	}
	if members(raw, &expanded) == nil {
		raw = expanded.ID
	}
	return token(text(raw))
}

// instant is a time in Unix seconds or RFC 3339, or zero.
func instant(raw json.RawMessage) time.Time {
	const lastYear = 253402300799 // 9999, as far as anything can store it
	var seconds int64
	if json.Unmarshal(raw, &seconds) == nil && seconds > 0 && seconds <= lastYear {
		return time.Unix(seconds, 0).UTC()
	}
	if t, err := time.Parse(time.RFC3339, text(raw)); err == nil && t.Unix() > 0 && t.Unix() <= lastYear {
		return t.UTC()
	}
	return time.Time{}
}

// eventType is the type if it may be one, such as charge.dispute.created.
func eventType(s string) string {
	if token(strings.ReplaceAll(s, ".", "_")) == "" {
		return ""
	}
	return s
}

// key is an idempotency key that can be stored and shown: ours are such. Others' may be anything.
func key(s string) string {
	if len(s) > 255 || strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' }) {
		return ""
	}
	return s
}
