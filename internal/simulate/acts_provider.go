package simulate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"holdfast/payments/stripesim"
)

// failSends arms a fault for sends, of some booking or of all.
func (s *schedule) failSends() {
	c := s.chance
	f := stripesim.Fault{
		Operation: pick(c, "payment_intents.create", "payment_intents.update", "payment_intents.confirm", "payment_intents.confirm",
			"payment_intents.confirm", "payment_intents.cancel", "payment_intents.cancel", "refunds.create", "*"),
		Fault: pick(c, "reset_before", "reset_after", "reset_after", "reset_after_reused", "error_500_before", "error_500_after", "partial_500",
			"error_502", "error_503_after", "error_504_after", "error_424", "html_502_after", "bad_body", "in_use_409", "lock_timeout_429",
			"rate_limit_429", "unauthorized_401"),
		Times: 1 + c.n(4), Nth: c.n(2),
	}
	if f.Operation == "*" {
		// Reads are tried again by the library, which waits between its tries: their answers are lost in another way.
		f.KeyMatch = "hf:"
	}
	if b, ok := s.some(); ok && f.Operation != "refunds.create" && c.percent(60) {
		f.KeyMatch = b.Payment.String()
	}
	s.arm(f)
}

// leaveHalf lets a confirm end half-way: its charge is pending, and nobody is told.
func (s *schedule) leaveHalf() {
	s.arm(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "partial_500", Times: 1})
}

func (s *schedule) arm(f stripesim.Fault) {
	s.tell("  %s from the %dth on, %d times, for %s of %q", f.Fault, max(f.Nth, 1), f.Times, f.Operation, f.KeyMatch)
	s.site.sim.AddFault(f)
}

// failRefund takes back a refund that we made, days after it had succeeded maybe.
func (s *schedule) failRefund() {
	for _, f := range s.site.sim.Ledger().Refunds {
		if f.IdempotencyKey != "" && (f.Status == "succeeded" || f.Status == "pending") {
			_, err := s.site.sim.Act(stripesim.Action{Action: "fail_refund", Refund: f.ID, PaymentIntent: f.PaymentIntent})
			s.tell("  refund %s fails: done %t", f.ID, err == nil)
			return
		}
	}
}

// refundByHand gives back a part of what was paid for a booking that stands, or all of it, past us.
func (s *schedule) refundByHand() {
	b, ok := s.some()
	part := pick(s.chance, int64(0), 100, 700)
	if ok && b.Intent != "" && b.Status == "confirmed" {
		s.happen(b, stripesim.Action{Action: "refund", Amount: part})
	}
}

// closeDisputes decides every dispute and inquiry for us.
func (s *schedule) closeDisputes() {
	for _, d := range s.site.sim.Ledger().Disputes {
		outcome := "won"
		if strings.HasPrefix(d.Status, "warning_") {
			outcome = "warning_closed"
		}
		if _, err := s.site.sim.Act(stripesim.Action{Action: "close_dispute", Dispute: d.ID, PaymentIntent: d.PaymentIntent, Outcome: outcome}); err == nil {
			s.tell("  dispute %s is %s", d.ID, outcome)
		}
	}
}

func (s *schedule) arriveAny() {
	if len(s.late) > 0 {
		s.arrive(s.chance.n(len(s.late)))
	}
}

// collect takes what the provider has told since the last time.
func (s *schedule) collect() {
	fresh, err := s.site.mail.take(s.site.sim.ReleaseWebhooks())
	if err != nil {
		s.broken(err)
	}
	s.mail = append(s.mail, fresh...)
}

// deliver delivers one of the provider's events, or loses it. It may come late, before older ones, and again.
func (s *schedule) deliver() {
	s.collect()
	if len(s.mail) == 0 {
		return
	}
	i := s.chance.n(len(s.mail))
	m := s.mail[i]
	if s.chance.percent(70) {
		s.mail = append(s.mail[:i:i], s.mail[i+1:]...)
	}
	if s.chance.percent(15) {
		return
	}
	s.post(m)
}

func (s *schedule) post(m mail) {
	s.spawn("webhook", func(a *actor) {
		var event struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(m.body, &event) // only for the history
		s.tell("%s brings %s", a.name, event.Type)
		_, err := s.inbox.Receive(s.ctx, m.signature, m.body)
		s.outcome(a, err)
	})
}

// tellLies delivers an event that claims anything of an intent: weeks old, doubled or untrue.
func (s *schedule) tellLies() {
	b, ok := s.some()
	if !ok || b.Intent == "" {
		return
	}
	s.lies++
	kind := pick(s.chance, "succeeded", "payment_failed", "requires_action", "processing", "canceled")
	body, err := json.Marshal(map[string]any{
		"id": fmt.Sprintf("evt_untrue%d", s.lies), "object": "event", "type": "payment_intent." + kind, "created": time.Now().Unix(),
		"livemode": false, "api_version": "2020-08-27",
		"data": map[string]any{"object": map[string]any{
			"id": b.Intent, "object": "payment_intent", "status": kind, "metadata": map[string]string{"booking_id": b.ID.String()},
		}},
	})
	if err != nil {
		s.broken(err)
	}
	at := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(webhookSecret.Reveal()))
	_, _ = fmt.Fprintf(mac, "%d.%s", at, body)
	s.post(mail{signature: fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil))), body: body})
}

func (s *schedule) deleteStream() {
	if err := s.wipe(); err != nil {
		s.broken(err)
	}
}

func (s *schedule) cutCommit() {
	s.cutIn, s.cutAs = 1+s.chance.n(5), pick(s.chance, cutBefore, cutAfter)
	s.tell("  the %dth from now on: %s", s.cutIn, s.cutAs)
}
