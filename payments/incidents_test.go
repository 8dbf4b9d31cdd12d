package payments_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/outbox"
	"holdfast/payments/stripesim"
)

// Incident 03 (G3, G4, G5): the provider takes the money, then no confirm and no read is ever answered, until the
// attempts are spent. Expected: held, in doubt, the slot not sold to anybody else; once the provider answers, one round
// of the reconciler confirms it, without another create or confirm.
func TestIncident03_SpentAttemptsAreADoubt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_visa")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after", Times: -1})
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.retrieve", Fault: "reset_before", Times: -1})
	p := b.engine()
	b.work(p, id, domain.EffectCharge)
	for range 3 {
		_, err := b.reconciler(p).Once(b.ctx)
		require.NoError(t, err)
		b.exec(`UPDATE outbox SET due_at = clock_timestamp() WHERE booking_id = $1 AND status = 'in_doubt'`, id)
	}
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"held", "in_doubt", true}, []any{booking, payment, taken}, b.tale(id))
	rival, err := b.bookings.Accept(b.ctx, b.client, "rival", bookings.Request{
		ResourceID: b.resource, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Eve", CustomerEmail: "eve@example.org", PaymentMethod: "pm_card_visa",
	})
	require.NoError(t, err)
	require.Equal(t, 409, rival.Status)

	b.sim.ClearFaults()
	creates, confirms := b.sent("payment_intents.create"), b.sent("payment_intents.confirm")
	_, err = b.reconciler(p).Once(b.ctx)
	require.NoError(t, err)
	b.agree(id)
	booking, _, _ = b.statuses(id)
	require.Equal(t, "confirmed", booking)
	require.Equal(t, []int{creates, confirms}, []int{b.sent("payment_intents.create"), b.sent("payment_intents.confirm")})
}

// Incident 04 (G3, G5): the money moves, and the database refuses to write it down for several rounds, while new
// bookings arrive. Expected: at most one charge per booking and one key each, whatever is retried; afterwards all end
// confirmed.
func TestIncident04_TheOutcomeCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$`)
	b.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON payments FOR EACH ROW WHEN (NEW.status = 'succeeded') EXECUTE FUNCTION refuse()`)
	var ids []domain.BookingID
	for range 5 {
		ids = append(ids, b.book("pm_card_visa"))
		for _, id := range ids {
			for range 2 {
				_, _ = b.engine().Charge(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectCharge)})
				require.LessOrEqual(t, len(b.charges(id)), 1)
			}
		}
	}
	require.Len(t, b.sim.Ledger().Succeeded(""), 5)
	b.exec(`DROP TRIGGER refuse ON payments`)
	for _, id := range ids {
		b.work(b.engine(), id, domain.EffectCharge)
		b.reconcile(b.engine(), id)
		b.agree(id)
		booking, _, _ := b.statuses(id)
		require.Equal(t, "confirmed", booking)
	}
}
