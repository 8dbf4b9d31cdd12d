package payments_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// G3, G6: expected: one confirmed booking, one succeeded charge of 2500 EUR, events held and confirmed.
func TestCharge_SucceedsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id := b.book("pm_card_visa")
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	b.work(p, id, domain.EffectCharge) // a duplicate, late job
	b.agree(id)
	booking, _, _ := b.statuses(id)
	require.Equal(t, "confirmed", booking)
	charge := b.charges(id)[0]
	require.Equal(t, int64(2500), charge.Amount)
	require.Equal(t, "eur", charge.Currency)
	require.Len(t, b.sim.Journal(0), 2, "create and confirm, and nothing for the duplicate")
}
