package httpapi

import (
	"context"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// Pauses lists what is paused.
type Pauses struct {
	Pauses []outbox.Pausing `json:"pauses" nullable:"false"`
}

// listPauses shows what is paused.
func (s *Server) listPauses(ctx context.Context, _ *exchange, _ *struct{}) (*shown[Pauses], error) {
	found, err := s.config.Operators.Pauses(ctx)
	return &shown[Pauses]{Pauses{append([]outbox.Pausing{}, found...)}}, err
}

type setPauseInput struct {
	Kind    string `path:"kind" enum:"charge,publish" doc:"charge or publish; fences, reads and refunds cannot be paused."`
	RawBody []byte `contentType:"application/json"`
}

// pauseRequest is the body of a switch, as the OpenAPI document shows it.
type pauseRequest struct {
	Paused bool   `json:"paused" doc:"true: stop; false: go on."`
	Reason string `json:"reason" minLength:"3" maxLength:"500" doc:"Why, for whoever finds it paused."`
}

// setPause pauses a kind of effects, or lets it go on. Sent again it changes nothing.
func (s *Server) setPause(ctx context.Context, x *exchange, in *setPauseInput) (*shown[operator.PauseResult], error) {
	var body pauseRequest
	err := readBodyOf(in.RawBody, func(m members) {
		body.Paused = m.boolean("paused", true)
		body.Reason = m.reason()
	})
	if err != nil {
		return nil, err
	}
	v, err := s.config.Operators.SetPause(ctx, domain.EffectKind(in.Kind), body.Paused, x.actor(), body.Reason)
	return &shown[operator.PauseResult]{v}, err
}

// boolean takes true or false. One that is absent and need not be there is false.
func (m members) boolean(name string, required bool) bool {
	v, ok := m.take(name, required)
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		m.fault(name, "want true or false")
	}
	return b
}
