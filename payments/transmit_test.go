package payments

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// counting is a gateway of which only the number of sends matters.
type counting struct {
	Gateway
	sends int
}

func (c *counting) Send(context.Context, Call) Outcome {
	c.sends++
	return Outcome{}
}

// A process may be stopped for hours between recording a send and making it (G3). Expected: a key that has come past its
// horizon meanwhile is not sent, whatever was recorded; a younger one is.
func TestTransmit_ChecksTheHorizonOnceMore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age, stalled time.Duration
		sends        int
	}{
		"fresh":                       {0, 0, 1},
		"stalled, still young enough": {18 * time.Hour, time.Hour, 1},
		"stalled past the horizon":    {18 * time.Hour, 3 * time.Hour, 0},
		"recorded too late already":   {20 * time.Hour, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway := &counting{}
			p := New(nil, gateway, nil, Config{}, slog.New(slog.DiscardHandler))
			out := p.transmit(t.Context(), send{
				call: Call{Operation: domain.OpConfirm, Key: "hf:x:confirm:1"}, age: tc.age, recordedAt: time.Now().Add(-tc.stalled),
			})
			require.Equal(t, tc.sends, gateway.sends)
			if tc.sends == 0 {
				require.Equal(t, NotExecuted, out.Class)
			}
		})
	}
}
