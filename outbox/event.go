package outbox

import (
	"encoding/json"
	"fmt"

	"github.com/cloudevents/sdk-go/v2/event"

	"holdfast/domain"
)

// What every event carries. These are a contract with consumers.
const (
	SubjectPrefix = "bookings.v1." // of the NATS subject, and of the event's type
	eventSource   = "holdfast"
	contentType   = "application/cloudevents+json; charset=UTF-8"
)

// Message is one event as it goes to the stream. Publishing a row again makes an equal message, byte for byte.
type Message struct {
	ID      domain.EffectID // the event's id, by which stream and consumers drop duplicates
	Subject string
	Body    []byte // a CloudEvent in structured JSON
}

// message writes an event row as a CloudEvent 1.0. All of it comes from the row: no clock, no host, nothing that
// differs at the next publish or after a deploy. The payload keeps the order of members that jsonb gave it.
func message(e Effect) (Message, error) {
	ce := event.New(event.CloudEventsVersionV1)
	ce.SetID(e.ID.String())
	ce.SetSource(eventSource)
	ce.SetType(SubjectPrefix + string(e.EventType))
	ce.SetSubject(e.BookingID.String())
	ce.SetTime(e.CreatedAt.UTC())
	// The sequence extension of CloudEvents is a string that sorts as text.
	ce.SetExtension("sequence", fmt.Sprintf("%010d", e.EventSeq))
	if err := ce.SetData(event.ApplicationJSON, e.Payload); err != nil {
		return Message{}, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	if err := ce.Validate(); err != nil {
		return Message{}, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	body, err := json.Marshal(ce)
	if err != nil {
		return Message{}, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	return Message{ID: e.ID, Subject: ce.Type(), Body: body}, nil
}
