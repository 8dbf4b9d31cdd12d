package simulate

import (
	"time"

	"holdfast/domain"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// rounds are how much time passes before each round of the healing. Together they are longer than any promise: keys are
// sent again within their horizon first, then the horizon, holds and the provider's memory of keys end.
func rounds() []time.Duration {
	few := []time.Duration{0, 2 * time.Second, 30 * time.Second, 4 * time.Minute, 20 * time.Minute, 50 * time.Minute, 3 * time.Hour, 9 * time.Hour}
	for range 10 {
		few = append(few, 6*time.Hour)
	}
	return few
}

// watched is for how long after all is over the provider is still looked at, in steps.
const (
	watched      = 3
	watchedEvery = 20 * time.Hour
)

// heal lets everybody finish and everything work again, and everybody work until nothing is left to do (G5).
func (s *schedule) heal() {
	s.tell("from here on nothing goes wrong any more")
	s.healing = true
	s.site.sim.ClearFaults()
	s.slow, s.lostReads, s.cutIn, s.brokerAway, s.unsent, s.unacked = 0, 0, 0, false, 0, 0
	for len(s.late) > 0 {
		s.arrive(0)
	}
	for len(s.live) > 0 {
		s.turn(s.live[0], true)
	}
	s.checkCarried()
	s.resumeOne(domain.EffectCharge)
	s.resumeOne(domain.EffectPublish)
	s.collect()
	for _, m := range s.mail { // the rest is lost: everything must converge without
		if s.chance.percent(40) {
			s.post(m)
		}
	}
	s.mail = nil
	rest := watched
	for _, d := range rounds() {
		if d > 0 {
			s.pass(d)
		}
		if s.round(); len(s.violations) > 0 {
			return
		}
		if s.open() == 0 {
			break
		}
	}
	for ; rest > 0 && len(s.violations) == 0; rest-- { // an intent is watched beyond its booking's end
		s.pass(watchedEvery)
		s.round()
	}
	if n := s.open(); n > 0 && len(s.violations) == 0 {
		s.fail("G5", "%d doubts, holds or requests never end: %s", n, s.unfinished())
	}
}

// round lets everybody do what is due.
func (s *schedule) round() {
	for _, q := range s.unanswered() {
		s.ask(q)
	}
	s.look()
	for _, b := range s.bookings {
		if b.Intent != "" {
			s.happen(b, stripesim.Action{Action: "settle_processing"})
			s.happen(b, stripesim.Action{Action: "settle_refund"})
		}
	}
	s.closeDisputes()
	for _, w := range s.process().Works() {
		s.exhaust(w)
	}
	s.spawn("sweeper", func(a *actor) {
		_, err := outbox.NewSweeper(s.site.pool, outbox.SweepConfig{}).Sweep(s.ctx)
		s.outcome(a, err)
	})
	for range 3 {
		due := rows[job](s, `SELECT `+jobColumns+` FROM river_job
			WHERE state IN ('available', 'retryable', 'scheduled') AND scheduled_at <= clock_timestamp()`+jobsInOrder)
		for _, j := range due {
			s.take(j)
		}
		if len(due) == 0 {
			break
		}
	}
	for _, e := range rows[effect](s, `SELECT id, kind, status FROM outbox WHERE status = 'parked' ORDER BY created_at, id`) {
		s.replayOne(e)
	}
}

// exhaust takes steps of a kind of work until there is none left.
func (s *schedule) exhaust(w payments.Work) {
	const most = 50
	s.spawn("reconciler", func(a *actor) {
		for range most {
			worked, err := w.Step(s.ctx)
			if err != nil {
				s.outcome(a, err)
			}
			if err != nil || !worked {
				return
			}
		}
	})
}

// open counts what is not finished.
func (s *schedule) open() int {
	return len(s.unanswered()) + scalar[int](s, `
		SELECT (SELECT count(*) FROM outbox WHERE status IN ('pending', 'in_doubt', 'parked'))
		     + (SELECT count(*) FROM bookings WHERE status IN ('held', 'ending'))`)
}

// unfinished tells what is not.
func (s *schedule) unfinished() string {
	return scalar[string](s, `
		SELECT concat_ws('; ',
		  (SELECT string_agg(format('%s of %s is %s (%s)', kind, booking_id, status, last_error), '; ') FROM outbox WHERE status IN ('pending', 'in_doubt', 'parked')),
		  (SELECT string_agg(format('booking %s is %s', id, status), '; ') FROM bookings WHERE status IN ('held', 'ending')))`)
}
