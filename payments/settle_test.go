package payments_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/outbox"
)

// A settlement commits with its event, or neither exists (G6): the transaction that settles the success fails at its
// last step. Expected: the booking is as it was and nothing is told; the next job settles and tells it once.
func TestSettle_TheEventCommitsWithItsCause(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	_, err := b.engine().Charge(b.ctx, outbox.Job{
		Effect: b.effect(id, domain.EffectCharge), Complete: func(q *pgx.Batch) { q.Queue(`SELECT 1 / 0`) },
	})
	require.ErrorContains(t, err, "division by zero")
	booking, payment, _ := b.statuses(id)
	require.Equal(t, []any{"held", "pending"}, []any{booking, payment}, b.tale(id))
	require.Equal(t, []string{"held"}, b.events(id), "an event tells of what was never committed")
	require.Len(t, b.charges(id), 1, "the money was taken all the same")
	b.work(b.engine(), id, domain.EffectCharge)
	b.agree(id)
	require.Equal(t, []string{"held", "confirmed"}, b.events(id))
}
