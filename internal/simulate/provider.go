package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/payments"
)

// crossing is the real gateway, and what may happen before and after each of its calls.
type crossing struct {
	payments.Gateway
	s *schedule
}

var errReadLost = errors.New("the simulation lost the answer to a read")

func (c *crossing) Send(ctx context.Context, call payments.Call) payments.Outcome {
	s := c.s
	s.apart("a send")
	what := fmt.Sprintf("%s %s", call.Operation, call.Key)
	s.pause("before the send of "+what, s.providerPauses)
	if s.slow > 0 && !s.healing {
		s.slow--
		s.late = append(s.late, call)
		s.tell("  sends %s: no answer, and it has not arrived yet", what)
		return payments.Outcome{Detail: "no answer"}
	}
	out := c.Gateway.Send(ctx, call)
	s.tell("  sends %s: %s", what, answer(out))
	s.noteCharges()
	s.pause("after the send of "+what, s.providerPauses)
	return out
}

// answer is an outcome in a line.
func answer(out payments.Outcome) string {
	text := fmt.Sprintf("%s, HTTP %d", out.Class, out.HTTPStatus)
	if out.Code != "" {
		text += ", " + out.Code
	}
	if out.Replayed {
		text += ", replayed"
	}
	if out.Intent != nil {
		text += ", intent is " + string(out.Intent.Status)
	}
	if out.Refund != nil {
		text += ", refund is " + out.Refund.Status
	}
	return text
}

// arrive lets a send that was under way for long reach the provider at last. Nobody hears the answer.
func (s *schedule) arrive(i int) {
	call := s.late[i]
	s.late = append(s.late[:i:i], s.late[i+1:]...)
	out := s.site.gateway.Send(s.ctx, call)
	s.tell("  the send of %s %s arrives at last: %s", call.Operation, call.Key, answer(out))
	s.noteCharges()
}

// read is the frame of every read.
func read[T any](s *schedule, what string, get func() (T, error)) (T, error) {
	s.apart("a read")
	s.pause("before reading "+what, s.providerPauses/2)
	var got T
	err := errReadLost
	if !s.healing && s.lostReads > 0 {
		s.lostReads--
		s.tell("  reads %s: the answer is lost", what)
	} else if got, err = get(); err != nil {
		s.tell("  reads %s: %s", what, err)
	} else {
		s.tell("  reads %s: %s", what, seen(got))
	}
	s.pause("after reading "+what, s.providerPauses)
	return got, err
}

// seen is what a read has shown, in a line.
func seen(got any) string {
	switch x := got.(type) {
	case payments.Intent:
		text := string(x.Status)
		if x.LastError != nil {
			text += ", " + x.LastError.Code
		}
		return text
	case []payments.ProviderCharge:
		text := fmt.Sprintf("%d", len(x))
		for _, charge := range x {
			text += ", " + charge.Status
		}
		return text
	case []payments.Intent:
		return fmt.Sprintf("%d", len(x))
	case []payments.ProviderRefund:
		text := fmt.Sprintf("%d", len(x))
		for _, refund := range x {
			text += ", " + refund.Status
		}
		return text
	default:
		return "read"
	}
}

func (c *crossing) Intent(ctx context.Context, id string) (payments.Intent, error) {
	return read(c.s, "intent "+id, func() (payments.Intent, error) { return c.Gateway.Intent(ctx, id) })
}

func (c *crossing) Charges(ctx context.Context, intentID string) ([]payments.ProviderCharge, error) {
	return read(c.s, "the charges of "+intentID, func() ([]payments.ProviderCharge, error) { return c.Gateway.Charges(ctx, intentID) })
}

func (c *crossing) IntentsCreated(ctx context.Context, from, to time.Time) ([]payments.Intent, error) {
	return read(c.s, "the list of intents", func() ([]payments.Intent, error) { return c.Gateway.IntentsCreated(ctx, from, to) })
}

func (c *crossing) Refunds(ctx context.Context, intentID string) ([]payments.ProviderRefund, error) {
	return read(c.s, "the refunds of "+intentID, func() ([]payments.ProviderRefund, error) { return c.Gateway.Refunds(ctx, intentID) })
}

func (c *crossing) Events(
	ctx context.Context, types []string, from, to time.Time, after string,
) (page []payments.Event, more bool, err error) {
	page, err = read(c.s, "the list of events", func() ([]payments.Event, error) {
		var err error
		page, more, err = c.Gateway.Events(ctx, types, from, to, after)
		return page, err
	})
	return page, more && err == nil, err
}

// apart makes sure that nobody asks the network while a transaction is open.
func (s *schedule) apart(what string) {
	if s.current != nil && s.current.inTx {
		s.fail("transactions", "%s makes %s while a transaction of it is open", s.current.name, what)
	}
}
