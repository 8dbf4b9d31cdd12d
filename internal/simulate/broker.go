package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"holdfast/outbox"
)

// station is the real stream, and the trouble on the way to it.
type station struct {
	outbox.Publisher
	s *schedule
}

var errNoAck = errors.New("the simulation lost the acknowledgement")

func (p *station) Publish(ctx context.Context, m outbox.Message) (outbox.Ack, error) {
	s := p.s
	s.apart("a publish")
	what := fmt.Sprintf("event %s %s", m.ID, m.Subject)
	s.pause("before publishing "+what, s.providerPauses/2)
	switch {
	case s.healing:
	case s.brokerAway:
		s.tell("  publishes %s: the broker is away", what)
		return outbox.Ack{}, errNoAck
	case s.unsent > 0:
		s.unsent--
		s.tell("  publishes %s: it is lost", what)
		return outbox.Ack{}, errNoAck
	}
	ack, err := p.Publisher.Publish(ctx, m)
	switch {
	case err != nil:
		s.tell("  publishes %s: %s", what, err)
	case !s.healing && s.unacked > 0:
		s.unacked--
		err = errNoAck
		s.tell("  publishes %s: the acknowledgement is lost", what)
	default:
		s.tell("  publishes %s: acknowledged, duplicate %t", what, ack.Duplicate)
	}
	s.pause("after publishing "+what, s.providerPauses/2)
	return ack, err
}

// message is an event as the stream has it.
type message struct {
	msgID   string
	subject string
	body    []byte
	id      string // the event's
	booking string
	seq     string
}

// listen reads what the stream has got since the last time.
func (s *schedule) listen() error {
	stream, err := s.site.js.Stream(s.ctx, outbox.StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the stream: %w", err)
	}
	state := stream.CachedInfo().State
	for seq := max(state.FirstSeq, s.heard+1); seq <= state.LastSeq && state.Msgs > 0; seq++ {
		raw, err := stream.GetMsg(s.ctx, seq)
		if err != nil {
			return fmt.Errorf("read message %d of the stream: %w", seq, err)
		}
		m := message{msgID: raw.Header.Get("Nats-Msg-Id"), subject: raw.Subject, body: raw.Data}
		var event struct {
			ID       string `json:"id"`
			Subject  string `json:"subject"`
			Sequence string `json:"sequence"`
		}
		if err := json.Unmarshal(raw.Data, &event); err != nil {
			return fmt.Errorf("decode message %d of the stream: %w", seq, err)
		}
		m.id, m.booking, m.seq = event.ID, event.Subject, event.Sequence
		s.told = append(s.told, m)
		s.heard = seq
	}
	return nil
}

// wipe deletes the stream with all that is in it.
func (s *schedule) wipe() error {
	if err := s.listen(); err != nil {
		return err
	}
	return s.emptyStream()
}

func (s *schedule) emptyStream() error {
	s.heard = 0
	err := s.site.js.DeleteStream(s.ctx, outbox.StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}
