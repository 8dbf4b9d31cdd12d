package simulate

import (
	"time"

	"holdfast/domain"
	"holdfast/payments/stripesim"
)

// act is one thing that happens. It may be anything that can happen at any time: what makes no sense at the moment does nothing.
type act struct {
	name   string
	weight int
	do     func(s *schedule)
}

// acts is everything that can happen. A new thing is one line here; what it may do to a booking has to be known to the checker.
func acts() []act {
	return []act{
		// Customers, and their clients' retries.
		{"somebody books", 9, (*schedule).book},
		{"somebody sends a request again", 4, (*schedule).repeat},
		{"somebody uses a key again for something else", 1, (*schedule).reuse},
		{"a customer brings another card", 5, (*schedule).changeCard},
		{"a customer cancels", 2, (*schedule).cancel},
		{"a customer cancels what is paid", 2, (*schedule).cancelPaid},
		{"a customer authenticates", 3, happens(stripesim.Action{Action: "authenticate"})},
		{"a customer fails to authenticate", 2, happens(stripesim.Action{Action: "fail_authentication"})},
		{"a customer pays with the browser", 2, happens(stripesim.Action{Action: "customer_confirm", PaymentMethod: "pm_card_mastercard"})},
		{"a customer tries a bad card in the browser", 1, happens(stripesim.Action{Action: "customer_confirm", PaymentMethod: "pm_card_chargeDeclined"})},

		// Workers. River may lose, delay, double and rescue what it carries.
		{"a worker takes a job", 22, (*schedule).takeAny},
		{"a worker takes a charge", 8, takeA(domain.EffectCharge)},
		{"a worker takes a cancel", 5, takeA(domain.EffectCancel)},
		{"a worker takes a refund", 4, takeA(domain.EffectRefund)},
		{"a job runs twice", 5, (*schedule).runTwin},
		{"a job's row is lost", 2, (*schedule).loseJob},
		{"a job is cancelled or discarded", 1, (*schedule).spoilJob},
		{"River rescues what runs for too long", 2, (*schedule).rescue},
		{"lost jobs are swept up", 3, (*schedule).sweepJobs},

		// Reconcilers.
		{"a reconciler does a piece of its work", 12, (*schedule).reconcile},
		{"doubts are due, and one is resolved", 8, due("doubts", `UPDATE outbox SET due_at = clock_timestamp() WHERE status = 'in_doubt'`)},
		{"intents are due to be watched, and one is", 4, due("watches", `UPDATE payments SET watch_at = clock_timestamp() WHERE watch_at IS NOT NULL`)},
		{"receipts are due, and one is heeded", 3, due("events", `UPDATE provider_events SET due_at = clock_timestamp() WHERE status = 'pending'`)},

		// Time.
		{"a moment passes", 3, passes(2 * time.Second)},
		{"some minutes pass", 3, passes(3 * time.Minute)},
		{"every hold ends", 3, passes(13 * time.Hour)},
		{"the horizon passes", 1, passes(20*time.Hour + time.Minute)},
		{"a day passes", 1, passes(25 * time.Hour)},

		// The provider and the bank.
		{"sends will fail", 10, (*schedule).failSends},
		{"half a charge will be left", 2, (*schedule).leaveHalf},
		{"a send will be slow", 2, func(s *schedule) { s.slow++ }},
		{"a slow send arrives", 2, (*schedule).arriveAny},
		{"answers to reads will be lost", 2, func(s *schedule) { s.lostReads += 1 + s.chance.n(3) }},
		{"the provider heals", 2, func(s *schedule) { s.site.sim.ClearFaults() }},
		{"the bank takes it", 2, happens(stripesim.Action{Action: "settle_processing"})},
		{"the bank refuses", 2, happens(stripesim.Action{Action: "settle_processing", Outcome: "failed"})},
		{"the bank refuses a refund", 1, happens(stripesim.Action{Action: "settle_refund", Outcome: "failed"})},
		{"a refund of ours fails late", 2, (*schedule).failRefund},
		{"somebody refunds at the dashboard", 2, (*schedule).refundByHand},
		{"a bank disputes a charge", 1, happens(stripesim.Action{Action: "open_dispute"})},
		{"a bank asks about a charge", 1, happens(stripesim.Action{Action: "open_dispute", Inquiry: true})},
		{"a bank gives way", 1, (*schedule).closeDisputes},
		{"the provider tells", 4, (*schedule).deliver},
		{"somebody tells what is untrue", 1, (*schedule).tellLies},

		// Operators.
		{"an operator replays", 5, (*schedule).replay},
		{"somebody of finance gives money back", 4, (*schedule).refund},
		{"an operator pauses", 1, (*schedule).pauseKind},
		{"an operator resumes", 1, (*schedule).resumeKind},

		// The broker and the database.
		{"the broker goes away", 1, func(s *schedule) { s.brokerAway = true }},
		{"the broker comes back", 1, func(s *schedule) { s.brokerAway = false }},
		{"an event will be lost on its way", 1, func(s *schedule) { s.unsent++ }},
		{"an acknowledgement will be lost", 2, func(s *schedule) { s.unacked++ }},
		{"the stream is deleted", 1, (*schedule).deleteStream},
		{"a COMMIT will be cut", 3, (*schedule).cutCommit},
	}
}

func takeA(kind domain.EffectKind) func(*schedule) {
	return func(s *schedule) { s.takeOne(string(kind)) }
}

func passes(d time.Duration) func(*schedule) { return func(s *schedule) { s.pass(d) } }

// happens makes an act of what is done at the provider, past us, to some booking's intent.
func happens(a stripesim.Action) func(*schedule) {
	return func(s *schedule) {
		b, ok := s.some()
		if !ok || b.Intent == "" {
			return
		}
		s.happen(b, a)
	}
}

func (s *schedule) happen(b booking, a stripesim.Action) {
	a.PaymentIntent = b.Intent
	status, err := s.site.sim.Act(a)
	if err != nil { // at the wrong moment it is refused
		return
	}
	s.tell("  %s of %s: the intent is %s", a.Action, b.ID, status)
}
