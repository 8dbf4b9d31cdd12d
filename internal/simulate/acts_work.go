package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
)

// takeAny lets a worker take a job that waits.
func (s *schedule) takeAny() {
	if waits := s.jobs(waiting()...); len(waits) > 0 {
		s.take(pick(s.chance, waits...))
	}
}

func (s *schedule) takeOne(kind string) {
	var fit []job
	for _, j := range s.jobs(waiting()...) {
		if j.Kind == kind {
			fit = append(fit, j)
		}
	}
	if len(fit) > 0 {
		s.take(pick(s.chance, fit...))
	}
}

func (s *schedule) runTwin() {
	if all := s.jobs(); len(all) > 0 {
		s.twin(pick(s.chance, all...))
	}
}

func (s *schedule) loseJob() {
	if all := s.jobs(); len(all) > 0 {
		s.exec(`DELETE FROM river_job WHERE id = $1`, pick(s.chance, all...).ID)
	}
}

func (s *schedule) spoilJob() {
	if waits := s.jobs(waiting()...); len(waits) > 0 {
		s.exec(`UPDATE river_job SET state = $2::river_job_state, finalized_at = clock_timestamp() WHERE id = $1`,
			pick(s.chance, waits...).ID, pick(s.chance, "cancelled", "discarded"))
	}
}

func (s *schedule) rescue() {
	s.exec(`UPDATE river_job SET state = 'retryable', scheduled_at = clock_timestamp() WHERE state = 'running'`)
}

// sweepJobs lets so much time pass that the dead are known to be dead, and sweeps.
func (s *schedule) sweepJobs() {
	s.pass(20 * time.Second)
	s.spawn("sweeper", func(a *actor) {
		n, err := outbox.NewSweeper(s.site.pool, outbox.SweepConfig{}).Sweep(s.ctx)
		s.outcome(a, err)
		s.tell("  %d jobs revived", n)
	})
}

// reconcile does one step of one kind of the reconciler's work.
func (s *schedule) reconcile() { s.reconcileOne(pick(s.chance, s.process().Works()...)) }

func (s *schedule) reconcileOne(w payments.Work) {
	s.spawn("reconciler", func(a *actor) {
		worked, err := w.Step(s.ctx)
		s.outcome(a, err)
		s.tell("  %s: something was to be done: %t", w.Name, worked)
	})
}

// due makes an act of a piece of a kind of work whose time has come.
func due(work, sql string) func(*schedule) {
	return func(s *schedule) {
		s.exec(sql)
		for _, w := range s.process().Works() {
			if w.Name == work {
				s.reconcileOne(w)
			}
		}
	}
}

// operatorAct is something that an operator did, or may have done.
type operatorAct struct {
	action  string
	effect  *uuid.UUID
	reason  string
	done    bool // it was accepted, and changed something
	unknown bool // nobody knows
}

const operator = outbox.Actor("ops@example.org")

// operate runs an operator's act, and keeps what is known of it.
func (s *schedule) operate(action string, effect *uuid.UUID, do func(reason string) (done bool, err error)) {
	s.spawn("operator", func(a *actor) {
		act := operatorAct{action: action, effect: effect, reason: fmt.Sprintf("simulation %d", s.actors)}
		what := action
		if effect != nil {
			what += " of effect " + effect.String()
		}
		done, err := do(act.reason)
		var refused *outbox.RefusedError
		switch {
		case errors.As(err, &refused), errors.Is(err, domain.ErrNotFound):
			s.tell("%s: %s is refused: %s", a.name, what, err)
		case err != nil:
			act.unknown = true
			s.outcome(a, err)
		default:
			act.done = done
			s.tell("%s: %s is accepted, changed something: %t", a.name, what, done)
		}
		s.acted = append(s.acted, act)
	})
}

type effect struct {
	ID     uuid.UUID
	Kind   string
	Status string
}

func (s *schedule) replay() {
	all := rows[effect](s, `SELECT id, kind, status FROM outbox ORDER BY created_at, id`)
	if len(all) == 0 {
		return
	}
	e := pick(s.chance, all...)
	if s.chance.percent(60) { // what is finished is refused, which is soon known
		for _, other := range all {
			if !domain.EffectStatus(other.Status).Finished() {
				e = other
				if s.chance.percent(50) {
					break
				}
			}
		}
	}
	s.replayOne(e)
}

func (s *schedule) replayOne(e effect) {
	s.operate("replay", &e.ID, func(reason string) (bool, error) {
		_, err := outbox.Replay(s.ctx, s.site.pool, domain.EffectID{UUID: e.ID}, operator, reason)
		return err == nil, err
	})
}

func (s *schedule) pauseKind() {
	kind := pick(s.chance, domain.EffectCharge, domain.EffectCharge, domain.EffectPublish)
	s.operate("pause", nil, func(reason string) (bool, error) {
		change, err := outbox.Pause(s.ctx, s.site.pool, kind, operator, reason)
		return change != outbox.Unchanged, err
	})
}

func (s *schedule) resumeKind() {
	s.resumeOne(pick(s.chance, domain.EffectCharge, domain.EffectCharge, domain.EffectPublish))
}

func (s *schedule) resumeOne(kind domain.EffectKind) {
	s.operate("resume", nil, func(reason string) (bool, error) {
		change, err := outbox.Resume(s.ctx, s.site.pool, kind, operator, reason)
		return change != outbox.Unchanged, err
	})
}
