package httpapi

import (
	"context"
	"time"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// getOverview shows how things stand.
func (s *Server) getOverview(ctx context.Context, _ *exchange, _ *struct{}) (*shown[operator.Overview], error) {
	v, err := s.config.Operators.Overview(ctx)
	return &shown[operator.Overview]{v}, err
}

type listEffectsInput struct {
	Stuck     bool   `query:"stuck" doc:"true: only what needs attention: parked, in doubt, late, or carried by no live job."`
	Kind      string `query:"kind" enum:"charge,cancel,refund,refresh,publish" doc:"Only this kind."`
	Status    string `query:"status" enum:"pending,in_doubt,parked,done,not_needed,discarded" doc:"Only this status. Without it, finished effects are left out, but for those of a booking."`
	Booking   string `query:"booking_id" doc:"Only the effects of this booking, finished ones too, the oldest first."`
	OlderThan string `query:"older_than" doc:"Only effects that are at least so old: a duration such as 90s, 15m or 24h." example:"15m"`
	Limit     int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most how many on one page, 1 to 1000."`
	After     string `query:"after" doc:"The next of the page before, with the same filters; left out for the first page."`
}

// listEffects shows one page of effects of all clients.
func (s *Server) listEffects(ctx context.Context, _ *exchange, in *listEffectsInput) (*shown[operator.Page], error) {
	f := outbox.Filter{
		Stuck: in.Stuck, Kind: domain.EffectKind(in.Kind), Status: domain.EffectStatus(in.Status), Limit: in.Limit, After: in.After,
	}
	var err error
	if in.Booking != "" {
		if f.Booking, err = domain.ParseID[domain.BookingID](in.Booking); err != nil {
			return nil, invalidQuery("booking_id", "want the id of a booking, a lower-case UUID")
		}
	}
	var fault string
	if f.OlderThan, fault = parseAge(in.OlderThan); fault != "" {
		return nil, invalidQuery("older_than", fault)
	}
	if f.Stuck && f.Status.Finished() {
		return nil, invalidQuery("stuck", "what is "+in.Status+" is not stuck")
	}
	page, err := s.config.Operators.List(ctx, f)
	return &shown[operator.Page]{page}, err
}

// parseAge reads an age. An empty one is any.
func parseAge(text string) (age time.Duration, fault string) {
	if text == "" {
		return 0, ""
	}
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 {
		return 0, "want a duration of more than 0 such as 90s, 15m or 24h"
	}
	return age, ""
}

type effectInput struct {
	ID string `path:"id" doc:"The effect's id; of an event, the event's."`
}

// getEffect shows one effect with its surroundings.
func (s *Server) getEffect(ctx context.Context, x *exchange, in *effectInput) (*shown[operator.Shown], error) {
	id, err := x.effectID(in.ID)
	if err != nil {
		return nil, err
	}
	v, err := s.config.Operators.Show(ctx, id)
	return &shown[operator.Shown]{v}, err
}

type timelineInput struct {
	ID string `path:"id" doc:"The booking's id."`
}

// getTimeline shows all that has happened to a booking of any client.
func (s *Server) getTimeline(ctx context.Context, x *exchange, in *timelineInput) (*shown[operator.Timeline], error) {
	id, err := x.bookingID(in.ID)
	if err != nil {
		return nil, err
	}
	v, err := s.config.Operators.Timeline(ctx, id)
	return &shown[operator.Timeline]{v}, err
}

type listActionsInput struct {
	Booking string `query:"booking_id" doc:"Only what was done to this booking."`
	Actor   string `query:"actor" maxLength:"200" doc:"Only what this person did."`
	Action  string `query:"action" maxLength:"50" doc:"Only this, such as replay, refund or pause."`
	Limit   int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"At most how many on one page, 1 to 200."`
	After   string `query:"after" doc:"The next of the page before, with the same filters; left out for the first page."`
}

// listActions shows one page of the audit.
func (s *Server) listActions(ctx context.Context, _ *exchange, in *listActionsInput) (*shown[operator.AuditPage], error) {
	f := operator.AuditFilter{Actor: outbox.Actor(in.Actor), Action: in.Action, Limit: in.Limit, After: in.After}
	var err error
	if in.Booking != "" {
		if f.Booking, err = domain.ParseID[domain.BookingID](in.Booking); err != nil {
			return nil, invalidQuery("booking_id", "want the id of a booking, a lower-case UUID")
		}
	}
	for _, q := range []struct{ name, text string }{{"actor", in.Actor}, {"action", in.Action}} {
		if !fits(q.text, 0, maxReason, line()) {
			return nil, invalidQuery(q.name, "want text "+line().says)
		}
	}
	page, err := s.config.Operators.Audit(ctx, f)
	return &shown[operator.AuditPage]{page}, err
}
