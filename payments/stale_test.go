package payments_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// stalled is the real gateway, whose next answer to a read is held back while something else happens.
type stalled struct {
	payments.Gateway
	meanwhile func()
}

func (s *stalled) Intent(ctx context.Context, id string) (payments.Intent, error) {
	intent, err := s.Gateway.Intent(ctx, id)
	if happen := s.meanwhile; happen != nil {
		s.meanwhile = nil
		happen()
	}
	return intent, err
}

// An older answer never settles over a newer one (G3, G4): a read shows requires_action and is delivered only after the
// customer has failed to authenticate and somebody else has settled that. Expected: declined, told once, and not
// requires_action again.
func TestSettle_AnOldObservationIsDropped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_authenticationRequired")
	gateway := &stalled{Gateway: b.gateway}
	slow := payments.New(b.db.Pool, gateway, noWaker{}, b.config, slog.New(slog.DiscardHandler))
	fast := b.engine()
	b.work(fast, id, domain.EffectCharge)
	var intent string
	b.scan(`SELECT provider_intent_id FROM payments WHERE booking_id = $1`, &intent, id)
	gateway.meanwhile = func() {
		_, err := b.sim.Act(stripesim.Action{Action: "fail_authentication", PaymentIntent: intent})
		require.NoError(t, err)
		b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE booking_id = $1`, id)
		worked, err := fast.Watch(b.ctx)
		require.NoError(t, err)
		require.True(t, worked)
	}
	b.exec(`UPDATE payments SET watch_at = clock_timestamp() WHERE booking_id = $1`, id)
	worked, err := slow.Watch(b.ctx)
	require.NoError(t, err)
	require.True(t, worked)
	_, payment, _ := b.statuses(id)
	require.Equal(t, "declined", payment, b.story(id))
	var events []string
	b.scan(`SELECT array_agg(event_type ORDER BY event_seq) FROM outbox WHERE booking_id = $1 AND kind = 'publish'`, &events, id)
	require.Equal(t, []string{"held", "action_required", "payment_declined"}, events)
}
