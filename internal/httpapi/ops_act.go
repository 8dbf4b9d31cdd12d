package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"holdfast/internal/bookings"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

type previewInput struct {
	ID  string `path:"id" doc:"The effect's id."`
	Act string `query:"act" required:"true" enum:"replay,republish,resolve,discard" doc:"What would be done."`
}

// previewAct says what an act would do now.
func (s *Server) previewAct(ctx context.Context, x *exchange, in *previewInput) (*shown[operator.Preview], error) {
	id, err := x.effectID(in.ID)
	if err != nil {
		return nil, err
	}
	v, err := s.config.Operators.Preview(ctx, operator.Act(in.Act), operator.Target{Effect: id}, 0)
	return &shown[operator.Preview]{v}, err
}

type actInput struct {
	ID      string `path:"id" doc:"The effect's id."`
	RawBody []byte `contentType:"application/json"`
}

const maxSeen = 200 // bytes; it is the preview's, and nobody writes one

// actRequest is the body of an act, as the OpenAPI document shows it.
type actRequest struct {
	Reason string `json:"reason" minLength:"3" maxLength:"500" doc:"Why, for whoever reads it later. Kept with who did it." example:"The customer called; the bank shows no charge."`
	Seen   string `json:"seen,omitempty" minLength:"1" maxLength:"200" doc:"The seen of the preview that you have looked at: the act is refused if something has moved since. Left out: whatever the effect is now."`
}

// does makes the handler of one act. What was decided is written byte for byte as it was stored.
func (s *Server) does(act operator.Act) func(context.Context, *exchange, *actInput) (*decidedOutput, error) {
	return func(ctx context.Context, x *exchange, in *actInput) (*decidedOutput, error) {
		id, err := x.effectID(in.ID)
		if err != nil {
			return nil, err
		}
		var body actRequest
		err = readBodyOf(in.RawBody, func(m members) {
			body.Reason = m.reason()
			body.Seen = m.optionalText("seen", maxSeen)
		})
		if err != nil {
			return nil, err
		}
		key := bookings.Keyed{
			Client: x.principal.ClientID, Route: "/v1/ops/effects/" + id.String() + "/" + string(act), Key: x.key, Meaning: body,
		}
		order := operator.Order{Act: act, On: operator.Target{Effect: id}, By: x.actor(), Reason: body.Reason, Seen: body.Seen}
		decided, err := s.config.Operators.DoOnce(ctx, key, order, showAct)
		if err != nil {
			return nil, err
		}
		return x.decided(decided), nil
	}
}

// showAct answers 202 where a second person has yet to agree.
func showAct(r operator.Result, refused *outbox.RefusedError) (int, []byte, error) {
	if refused != nil {
		p := refusedAct(refused)
		body, err := json.Marshal(p)
		return p.Status, body, err
	}
	status := http.StatusOK
	if r.Request != nil {
		status = http.StatusAccepted
	}
	body, err := json.Marshal(r)
	return status, body, err
}

// actRefusals are the codes with which an act is refused.
func actRefusals() []Code {
	return []Code{
		CodeActRefused, CodeEffectFinished, CodeEffectChanged, CodeNotApplicable, CodeNoMoneyProof, CodeNothingToAdopt, CodeNotConfigured, CodeSecondPerson,
	}
}

// refusedAct says why an act was not done, and who was first where somebody was.
func refusedAct(r *outbox.RefusedError) *Problem {
	code := Code(r.Code)
	if kinds[code].status != http.StatusConflict {
		code = CodeActRefused
	}
	p := newProblem(code, r.Reason)
	p.By, p.At = string(r.By), r.At
	return p
}

// optionalText takes a short text of visible ASCII, or nothing where the member is absent.
func (m members) optionalText(name string, longest int) string {
	if _, ok := m.values[name]; !ok {
		return ""
	}
	return m.text(name, 1, longest, visibleASCII())
}
