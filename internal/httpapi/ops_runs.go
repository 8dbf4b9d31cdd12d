package httpapi

import (
	"context"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

const (
	maxRun      = 10_000 // effects of a run
	maxContinue = 500    // effects at a time
)

// runRequest is the body of a run and of its dry run, as the OpenAPI document shows it.
type runRequest struct {
	Act    string       `json:"act" enum:"replay,republish,resolve,discard" doc:"What is done to each effect."`
	Filter effectFilter `json:"filter" doc:"Which effects; without anything in it, every one that is unfinished."`
	Cap    int          `json:"cap" minimum:"1" maximum:"10000" doc:"At most how many effects." example:"100"`
	Reason string       `json:"reason" minLength:"3" maxLength:"500" doc:"Why; kept with every single act."`
}

type effectFilter struct {
	Stuck     bool   `json:"stuck,omitempty" doc:"Only what needs attention."`
	Kind      string `json:"kind,omitempty" enum:"charge,cancel,refund,refresh,publish" doc:"Only this kind."`
	Status    string `json:"status,omitempty" enum:"pending,in_doubt,parked,done,not_needed,discarded" doc:"Only this status."`
	OlderThan string `json:"older_than,omitempty" maxLength:"40" doc:"Only effects that are at least so old: a duration such as 90s, 15m or 24h." example:"15m"`
}

func decodeRun(body []byte) (o operator.RunOrder, err error) {
	err = readBodyOf(body, func(m members) {
		o.Act = operator.Act(m.oneOf("act", "replay", "republish", "resolve", "discard"))
		m.object("filter", true, func(m members) { o.Filter = m.effectFilter() })
		o.Cap = int(m.integer("cap", 1, maxRun, true, 0))
		o.Reason = m.reason()
	})
	return o, err
}

func (m members) effectFilter() outbox.Filter {
	f := outbox.Filter{Stuck: m.boolean("stuck", false)}
	f.Kind = domain.EffectKind(m.choice("kind", "charge", "cancel", "refund", "refresh", "publish"))
	f.Status = domain.EffectStatus(m.choice("status", "pending", "in_doubt", "parked", "done", "not_needed", "discarded"))
	if f.Stuck && f.Status.Finished() {
		m.fault("stuck", "what is "+string(f.Status)+" is not stuck")
	}
	if v, ok := m.take("older_than", false); ok {
		text, isText := v.(string)
		age, fault := parseAge(text)
		if f.OlderThan = age; !isText || text == "" || fault != "" {
			m.fault("older_than", "want a duration of more than 0 such as 90s, 15m or 24h")
		}
	}
	return f
}

type previewRunInput struct {
	RawBody []byte `contentType:"application/json"`
}

// previewRun counts what a run would do.
func (s *Server) previewRun(ctx context.Context, x *exchange, in *previewRunInput) (*shown[operator.DryRun], error) {
	order, err := decodeRun(in.RawBody)
	if err != nil {
		return nil, err
	}
	order.ID, order.By = uuid.Must(uuid.NewV7()), x.actor() // of no run
	v, err := s.config.Operators.DryRun(ctx, order)
	return &shown[operator.DryRun]{v}, err
}

type startRunInput struct {
	ID      string `path:"id" doc:"The run's id: a lower-case UUID of your own making. The same id again is the same run."`
	RawBody []byte `contentType:"application/json"`
}

// startRun chooses the effects of a run.
func (s *Server) startRun(ctx context.Context, x *exchange, in *startRunInput) (*shown[operator.Run], error) {
	id, err := plainID(in.ID)
	if err != nil || id == uuid.Nil {
		return nil, newProblem(CodeValidationFailed, "The run's id is not one.", Fault{Location: "path.id", Message: "want a lower-case UUID of your own making"})
	}
	order, err := decodeRun(in.RawBody)
	if err != nil {
		return nil, err
	}
	if err := x.may(order.Act); err != nil {
		return nil, err
	}
	order.ID, order.By = id, x.actor()
	v, err := s.config.Operators.StartRun(ctx, order)
	return &shown[operator.Run]{v}, err
}

type continueRunInput struct {
	ID      string `path:"id" doc:"The run's id."`
	RawBody []byte `contentType:"application/json"`
}

// continueRequest is the body, as the OpenAPI document shows it.
type continueRequest struct {
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"500" default:"50" doc:"At most how many effects now; the answer comes when they are done."`
}

// continueRun does the act to the next effects of a run.
func (s *Server) continueRun(ctx context.Context, x *exchange, in *continueRunInput) (*shown[operator.Run], error) {
	id, err := plainID(in.ID)
	if err != nil {
		return nil, err
	}
	var body continueRequest
	err = readBodyOf(in.RawBody, func(m members) { body.Limit = int(m.integer("limit", 1, maxContinue, false, 50)) })
	if err != nil {
		return nil, err
	}
	if err := s.mayRun(ctx, x, id); err != nil {
		return nil, err
	}
	run, err := s.config.Operators.ContinueRun(ctx, id, body.Limit)
	return &shown[operator.Run]{run}, err
}

type endRunInput struct {
	ID      string `path:"id" doc:"The run's id."`
	RawBody []byte `contentType:"application/json"`
}

// endRequest is the body, as the OpenAPI document shows it.
type endRequest struct {
	Reason string `json:"reason" minLength:"3" maxLength:"500" doc:"Why; kept with who ended it, and with each effect that is left out."`
}

// endRun ends a run before all of it is done.
func (s *Server) endRun(ctx context.Context, x *exchange, in *endRunInput) (*shown[operator.Run], error) {
	id, err := plainID(in.ID)
	if err != nil {
		return nil, err
	}
	var body endRequest
	if err := readBodyOf(in.RawBody, func(m members) { body.Reason = m.reason() }); err != nil {
		return nil, err
	}
	if err := s.mayRun(ctx, x, id); err != nil {
		return nil, err
	}
	run, err := s.config.Operators.EndRun(ctx, id, x.actor(), body.Reason)
	return &shown[operator.Run]{run}, err
}

// mayRun refuses who may not do a run's act.
func (s *Server) mayRun(ctx context.Context, x *exchange, id uuid.UUID) error {
	run, err := s.config.Operators.Run(ctx, id)
	if err != nil {
		return err
	}
	return x.may(run.Act)
}

type listRunsInput struct {
	Unfinished bool `query:"unfinished" doc:"true: only runs that have effects left."`
}

// Runs lists bulk acts.
type Runs struct {
	Runs []operator.Run `json:"runs" nullable:"false" doc:"At most 200."`
}

// listRuns shows bulk acts, the newest first.
func (s *Server) listRuns(ctx context.Context, _ *exchange, in *listRunsInput) (*shown[Runs], error) {
	found, err := s.config.Operators.Runs(ctx, in.Unfinished)
	return &shown[Runs]{Runs{append([]operator.Run{}, found...)}}, err
}

type runInput struct {
	ID string `path:"id" doc:"The run's id."`
}

// getRun shows a run and how far it has come.
func (s *Server) getRun(ctx context.Context, _ *exchange, in *runInput) (*shown[operator.Run], error) {
	id, err := plainID(in.ID)
	if err != nil {
		return nil, err
	}
	v, err := s.config.Operators.Run(ctx, id)
	return &shown[operator.Run]{v}, err
}

type listRunItemsInput struct {
	ID    string `path:"id" doc:"The run's id."`
	From  int    `query:"from" minimum:"0" maximum:"1000000" doc:"The position of the first; the next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most how many on one page, 1 to 1000."`
}

// RunItems is one page of what became of a run's effects.
type RunItems struct {
	Items []operator.RunItem `json:"items" nullable:"false"`
	Next  *int               `json:"next,omitempty" doc:"Send this as from to have the next page. Not there on the last page."`
}

// listRunItems shows what became of each effect of a run.
func (s *Server) listRunItems(ctx context.Context, _ *exchange, in *listRunItemsInput) (*shown[RunItems], error) {
	id, err := plainID(in.ID)
	if err != nil {
		return nil, err
	}
	run, err := s.config.Operators.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	found, err := s.config.Operators.RunItems(ctx, id, in.From, in.Limit)
	if err != nil {
		return nil, err
	}
	page := RunItems{Items: append([]operator.RunItem{}, found...)}
	if n := len(found); n > 0 && found[n-1].Position < run.Total { // positions run from 1 to the total
		next := found[n-1].Position + 1
		page.Next = &next
	}
	return &shown[RunItems]{page}, nil
}
