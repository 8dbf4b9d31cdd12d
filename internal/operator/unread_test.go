package operator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// With the provider away (G4, G7): what needs a reading is not done and not recorded, a preview says so, and a replay is possible all the
// same. A preview of every act changes nothing, and says what the act then says.
func TestOperators_TheProviderIsAway(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t)
	id, e := b.chargeThat(domain.EffectInDoubt, operator.Resolve, true)
	on := operator.Target{Effect: e}
	before := b.tale(id)
	away := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.retrieve", Fault: "unauthorized_401", Times: -1})
	seen, err := b.operators().Preview(b.ctx, operator.Resolve, on, 0)
	require.NoError(t, err)
	require.False(t, seen.Allowed)
	require.Contains(t, seen.Refusal, "could not be read")
	require.Contains(t, seen.Unread, payments.ErrUnread.Error())
	order := operator.Order{Act: operator.Resolve, On: on, By: "ops@example.org", Reason: "the customer calls"}
	_, err = b.operators().Do(b.ctx, order)
	require.ErrorIs(t, err, payments.ErrUnread)
	seen, err = b.operators().Preview(b.ctx, operator.Replay, on, 0)
	require.NoError(t, err)
	require.True(t, seen.Allowed)
	require.NotEmpty(t, seen.Unread)
	require.Equal(t, before, b.tale(id))
	require.Zero(t, b.audited(id))

	b.sim.RemoveFault(away)
	seen, err = b.operators().Preview(b.ctx, operator.Resolve, on, 0)
	require.NoError(t, err)
	require.True(t, seen.Allowed)
	require.Contains(t, seen.Provider.Says, "25.00 EUR taken once")
	require.Equal(t, before, b.tale(id), "a preview changes nothing")
	order.Seen = seen.Seen
	done, err := b.operators().Do(b.ctx, order)
	require.NoError(t, err)
	require.Equal(t, seen.Would, done.Said)
	b.stands(id, "confirmed", "succeeded")
	require.Equal(t, 1, b.audited(id))
}
