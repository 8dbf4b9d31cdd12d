package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// message is an event as the stream holds it.
type message struct {
	sequence uint64
	msgID    string // what the broker drops duplicates by
	subject  string
	event    event
	raw      string // headers and data
}

type event struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Subject  string `json:"subject"`
	Sequence string `json:"sequence"`
	Data     struct {
		BookingID string `json:"booking_id"`
		Status    string `json:"status"`
	} `json:"data"`
}

// stream reads all events in the order of the stream, over the broker's own API: what is on the wire, whatever the
// library that wrote it makes of it.
func (b *bed) stream() []message {
	b.Helper()
	conn := b.nats.Connect(b.T)
	defer conn.Close()
	ask := func(subject, question string, answer any) {
		reply, err := conn.Request(subject, []byte(question), 5*time.Second)
		require.NoError(b, err, subject)
		require.NoError(b, json.Unmarshal(reply.Data, answer), "%s", reply.Data)
	}
	var info struct {
		State struct {
			First uint64 `json:"first_seq"`
			Last  uint64 `json:"last_seq"`
		} `json:"state"`
		Error any `json:"error"`
	}
	ask("$JS.API.STREAM.INFO.BOOKINGS", "", &info)
	require.Nil(b, info.Error)
	var messages []message
	for n := info.State.First; n <= info.State.Last; n++ {
		var stored struct {
			Message struct {
				Subject string `json:"subject"`
				Header  []byte `json:"hdrs"`
				Data    []byte `json:"data"`
			} `json:"message"`
			Error any `json:"error"`
		}
		ask("$JS.API.STREAM.MSG.GET.BOOKINGS", fmt.Sprintf(`{"seq":%d}`, n), &stored)
		require.Nil(b, stored.Error)
		m := message{raw: string(stored.Message.Header) + string(stored.Message.Data), sequence: n, subject: stored.Message.Subject, msgID: header(string(stored.Message.Header), "Nats-Msg-Id")}
		require.NoError(b, json.Unmarshal(stored.Message.Data, &m.event), "%s", stored.Message.Data)
		messages = append(messages, m)
	}
	return messages
}

func header(lines, name string) string {
	for line := range strings.SplitSeq(lines, "\r\n") {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return value
		}
	}
	return ""
}

// told sorts the stream's events by booking and keeps their order.
func (b *bed) told() map[string][]message {
	b.Helper()
	told := map[string][]message{}
	for _, m := range b.stream() {
		told[m.event.Data.BookingID] = append(told[m.event.Data.BookingID], m)
	}
	return told
}
