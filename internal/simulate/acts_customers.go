package simulate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments"
)

// request is one intention of a customer, under one key.
type request struct {
	what  string
	key   string
	book  bool   // it asks for a booking
	audit string // the reason that the one row of the audit gives, if the answer is a 201; empty: none
	send  func(ctx context.Context) (bookings.Response, error)
	other func(ctx context.Context) (bookings.Response, error) // another meaning under the same key

	sentAt time.Duration      // for the first time
	answer *bookings.Response // the first one; nil: none so far
	over   bool               // it was told that there is nothing to decide, or that the answer is kept no more
}

const keptFor = 24 * time.Hour // a stored response

func goodCards() []string {
	return []string{"pm_card_visa", "pm_card_mastercard", "pm_card_amex", "pm_card_visa_debit"}
}

func (s *schedule) card() string {
	if s.chance.percent(45) {
		return pick(s.chance, goodCards()...)
	}
	return pick(s.chance, "pm_card_chargeDeclined", "pm_card_chargeDeclined", "pm_card_authenticationRequired", "pm_card_authenticationRequired",
		"pm_card_threeDSecureRequiredChargeDeclined", "pm_sim_processing", "pm_card_nobodyKnows", "pm_card_pendingRefund")
}

// book asks for one of a few slots, so that rivals meet.
func (s *schedule) book() {
	c := s.chance
	asked := 0
	for _, r := range s.requests {
		if r.book {
			asked++
		}
	}
	n, client, resource := len(s.requests)+1, pick(c, s.clients...), pick(c, s.resources...)
	start := s.start.Add(time.Duration(c.n(3)) * time.Hour)
	r := bookings.Request{
		ResourceID: resource.ID, Start: start, End: start.Add(time.Hour), Quantity: 1,
		CustomerName: "Ada", CustomerEmail: "ada@example.org", PaymentMethod: s.card(),
	}
	if resource.Places == 1 {
		r.End = start.Add(time.Duration(1+c.n(2)) * time.Hour) // longer ones overlap; places of several are drawn by a random id
	} else {
		r.Quantity = 1 + c.n(resource.Places)
	}
	if c.percent(4) {
		r.Expected = &domain.Money{Amount: 1, Currency: resource.Price.Currency}
	}
	if asked >= s.mostBookings {
		return
	}
	key := fmt.Sprintf("key-%d", n)
	q := &request{
		what: fmt.Sprintf("booking of the %s, hour %d to %d, %d places, %s", resource.Name, start.Hour(), r.End.Hour(), r.Quantity, r.PaymentMethod),
		key:  key, book: true, sentAt: s.elapsed,
		send: func(ctx context.Context) (bookings.Response, error) { return s.service.Accept(ctx, client, key, r) },
		other: func(ctx context.Context) (bookings.Response, error) {
			other := r
			other.PaymentMethod += "_other"
			return s.service.Accept(ctx, client, key, other)
		},
	}
	s.requests = append(s.requests, q)
	s.ask(q)
}

// show is what the desk's answers are to say.
func show(v payments.View, done bool) (int, []byte, error) {
	status := http.StatusConflict
	if done {
		status = http.StatusOK
	}
	return status, fmt.Appendf(nil, `{"id":%q,"status":%q,"payment":%q}`, v.Booking.ID, v.Booking.Status, v.Payment.Status), nil
}

// changeCard brings another card, as a rule for a booking whose card was declined: for others it is refused.
func (s *schedule) changeCard() {
	b, ok := s.some()
	if s.chance.percent(80) {
		for _, other := range s.bookings {
			if other.Paid == "declined" {
				b, ok = other, true
			}
		}
	}
	if ok {
		card := s.card()
		s.askAbout(b, "another card for "+b.ID.String()+", "+card, func(ctx context.Context, a payments.Ask, other bool) (bookings.Response, error) {
			if other {
				return s.desk.ChangeCard(ctx, a, card+"_other", show)
			}
			return s.desk.ChangeCard(ctx, a, card, show)
		})
	}
}

func (s *schedule) cancel() {
	if b, ok := s.some(); ok {
		s.askToCancel(b)
	}
}

// cancelPaid cancels a booking that stands.
func (s *schedule) cancelPaid() {
	for _, b := range s.bookings {
		if b.Status == "confirmed" {
			s.askToCancel(b)
			return
		}
	}
}

func (s *schedule) askToCancel(b booking) {
	s.askAbout(b, "to cancel "+b.ID.String(), func(ctx context.Context, a payments.Ask, _ bool) (bookings.Response, error) {
		return s.desk.Cancel(ctx, a, nil, func(v payments.View, c payments.Cancellation) (int, []byte, error) {
			return show(v, c.Outcome != payments.CancelTooLate)
		})
	})
}

// askAbout makes and sends a keyed request about a booking of its owner.
func (s *schedule) askAbout(b booking, what string, do func(ctx context.Context, a payments.Ask, other bool) (bookings.Response, error)) {
	key := fmt.Sprintf("key-%d", len(s.requests)+1)
	a := payments.Ask{Client: domain.ClientID{UUID: b.Client}, Booking: domain.BookingID{UUID: b.ID}, Key: key}
	q := &request{
		what: what, key: key, sentAt: s.elapsed,
		send: func(ctx context.Context) (bookings.Response, error) { return do(ctx, a, false) },
	}
	s.requests = append(s.requests, q)
	s.ask(q)
}

// ask sends a request, for the first time or again.
func (s *schedule) ask(q *request) {
	s.spawn("customer", func(a *actor) {
		s.tell("%s asks under %s for %s", a.name, q.key, q.what)
		answer, err := q.send(s.ctx)
		s.answered(a, q, answer, err)
	})
}

// answered compares an answer with the first one (G1).
func (s *schedule) answered(a *actor, q *request, answer bookings.Response, err error) {
	var expired *bookings.KeyExpiredError
	var tooMany *payments.TooManyCardsError
	switch {
	case err == nil && q.answer == nil:
		q.answer = &answer
		s.tell("%s is answered %d %s", a.name, answer.Status, answer.Location)
		s.look()
	case err == nil:
		s.tell("%s is answered %d again", a.name, answer.Status)
		if answer.Status != q.answer.Status || answer.Location != q.answer.Location || string(answer.Body) != string(q.answer.Body) {
			s.fail("G1", "%s (%s) was answered %d %s first, and then %d %s", q.key, q.what, q.answer.Status, q.answer.Body, answer.Status, answer.Body)
		}
	case errors.As(err, &expired):
		s.tell("%s is told that the answer has expired", a.name)
		q.over = true
		if s.elapsed-q.sentAt < keptFor-time.Minute {
			s.fail("G1", "%s (%s): its answer has expired after %s", q.key, q.what, s.elapsed-q.sentAt)
		} else if q.answer != nil && q.answer.Location != expired.Location {
			s.fail("G1", "%s (%s): the expired answer names %q, the first named %q", q.key, q.what, expired.Location, q.answer.Location)
		}
	case errors.As(err, &tooMany), errors.Is(err, domain.ErrNotFound):
		q.over = true
		s.tell("%s is refused: %s", a.name, err)
	default:
		s.outcome(a, err)
	}
}

// repeat sends a request again whose answer may have been lost, or not.
func (s *schedule) repeat() {
	if len(s.requests) > 0 {
		s.ask(pick(s.chance, s.requests...))
	}
}

// reuse sends something else under a key that was used.
func (s *schedule) reuse() {
	if len(s.requests) == 0 {
		return
	}
	q := pick(s.chance, s.requests...)
	if q.other == nil || q.answer == nil {
		return // not decided: the key might still be free
	}
	s.spawn("customer", func(a *actor) {
		s.tell("%s asks under %s for something else", a.name, q.key)
		answer, err := q.other(s.ctx)
		switch {
		case errors.Is(err, bookings.ErrKeyReused):
			s.tell("%s is refused: the key is used", a.name)
		case err == nil:
			s.fail("G1", "%s was used for something else, and answered %d %s", q.key, answer.Status, answer.Body)
		default:
			s.outcome(a, err)
		}
	})
}

// unanswered are the requests whose senders know nothing.
func (s *schedule) unanswered() []*request {
	var open []*request
	for _, q := range s.requests {
		if q.answer == nil && !q.over {
			open = append(open, q)
		}
	}
	return open
}

// owns names what belongs to a booking in the history.
func (s *schedule) owns(b booking, n int) {
	s.names.call(b.ID.String(), fmt.Sprintf("booking-%d", n))
	s.names.call(b.Payment.String(), fmt.Sprintf("payment-%d", n))
	s.names.call(b.Intent, fmt.Sprintf("intent-%d", n))
}
