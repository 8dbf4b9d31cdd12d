package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"holdfast/domain"
	"holdfast/internal/bookings"
)

// Accepter decides booking requests, each (client, key) once.
type Accepter interface {
	Accept(ctx context.Context, client domain.ClientID, key string, r bookings.Request) (bookings.Response, error)
}

type createBookingInput struct {
	RawBody []byte `contentType:"application/json"` // huma's own reading of JSON is more lenient than the contract
}

// createBooking takes a booking request that has passed the gate: decode, validate, accept, answer. What was decided
// is written byte for byte as it was stored, a refusal of the business included.
func (s *Server) createBooking(ctx context.Context, x *exchange, in *createBookingInput) (*decidedOutput, error) {
	request, err := decodeBooking(in.RawBody)
	if err != nil {
		return nil, err
	}
	decided, err := s.config.Bookings.Accept(ctx, x.principal.ClientID, x.key, request)
	if errors.Is(err, domain.ErrNotFound) {
		return nil, newProblem(CodeResourceNotFound, "There is no resource with this id.",
			Fault{Location: "body.resource_id", Message: "there is no such resource"})
	}
	if err != nil {
		return nil, err
	}
	x.booking = decided.Location[strings.LastIndexByte(decided.Location, '/')+1:]
	return x.decided(decided), nil
}

// codeOf reads a stored refusal, for the log.
func codeOf(body []byte) Code {
	var p struct {
		Code Code `json:"code"`
	}
	_ = json.Unmarshal(body, &p) // written by our own database
	return p.Code
}
