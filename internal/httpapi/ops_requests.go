package httpapi

import (
	"context"

	"holdfast/internal/operator"
)

type listRequestsInput struct {
	All bool `query:"all" doc:"true: decided ones, too, and the newest first; else those that are open, the oldest first. At most 200."`
}

// OperatorRequests lists acts that wait, or waited, for a second person.
type OperatorRequests struct {
	Requests []operator.Request `json:"requests" nullable:"false" doc:"At most 200."`
}

// listRequests shows what waits for a second person.
func (s *Server) listRequests(ctx context.Context, _ *exchange, in *listRequestsInput) (*shown[OperatorRequests], error) {
	found, err := s.config.Operators.Requests(ctx, in.All)
	return &shown[OperatorRequests]{OperatorRequests{append([]operator.Request{}, found...)}}, err
}

type decideRequestInput struct {
	ID      string `path:"id" doc:"The request's id."`
	RawBody []byte `contentType:"application/json"`
}

// decideRequest is the body of a decision, as the OpenAPI document shows it.
type decideRequest struct {
	Decision string `json:"decision" enum:"approve,withdraw" doc:"approve: the act is done, in your name too; only somebody else than who asked for it may. withdraw: it is not done; either may."`
	Reason   string `json:"reason" minLength:"3" maxLength:"500" doc:"Why, for whoever reads it later. Kept with who decided."`
}

// RequestDecision is what a second person's word has led to.
type RequestDecision struct {
	Request operator.Request `json:"request" doc:"As it stands now."`
	Result  *operator.Result `json:"result,omitempty" doc:"Of an approval: the act that was done."`
}

// decideRequest is the second person's word on an act.
func (s *Server) decideRequest(ctx context.Context, x *exchange, in *decideRequestInput) (*shown[RequestDecision], error) {
	id, err := plainID(in.ID)
	if err != nil {
		return nil, err
	}
	var body decideRequest
	err = readBodyOf(in.RawBody, func(m members) {
		body.Decision = m.oneOf("decision", "approve", "withdraw")
		body.Reason = m.reason()
	})
	if err != nil {
		return nil, err
	}
	asked, err := s.config.Operators.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	x.booking = asked.BookingID.String()
	if err := x.may(asked.Act); err != nil {
		return nil, err
	}
	if body.Decision == "withdraw" {
		withdrawn, err := s.config.Operators.Withdraw(ctx, id, x.actor(), body.Reason)
		return &shown[RequestDecision]{RequestDecision{Request: withdrawn}}, err
	}
	result, err := s.config.Operators.Approve(ctx, id, x.actor(), body.Reason)
	if err != nil {
		return nil, err
	}
	if asked, err = s.config.Operators.Request(ctx, id); err != nil {
		return nil, err
	}
	return &shown[RequestDecision]{RequestDecision{Request: asked, Result: &result}}, nil
}

// oneOf takes one of several words, which must be there.
func (m members) oneOf(name string, words ...string) string {
	if _, ok := m.values[name]; !ok && m.values != nil {
		m.fault(name, "is missing")
		return ""
	}
	return m.choice(name, words...)
}
