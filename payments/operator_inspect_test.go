package payments_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// What an operator is told of the provider's side, state by state (G7, G9). Expected of each: the words say what happened to the
// money and agree with the ledger; only reads are sent; nothing of ours moves; nothing secret is said.
func TestInspect_SaysWhatTheProviderShows(t *testing.T) {
	t.Parallel()
	confirmFault := func(b *bed, id domain.BookingID, fault string) {
		b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: fault, Times: 1})
		b.runOnceCharge(b.engine(), id)
	}
	for name, c := range map[string]struct {
		card string
		make func(b *bed, id domain.BookingID)
		says string
	}{
		"nothing was sent": {"pm_card_visa", func(*bed, domain.BookingID) {}, "Nothing was ever sent to the provider for this booking: no money was taken."},
		"a lost create": {"pm_card_visa", func(b *bed, id domain.BookingID) {
			b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "error_503_after"})
			b.runOnceCharge(b.engine(), id)
		}, "that is not taken up here"},
		"a create that never ran": {"pm_card_visa", func(b *bed, id domain.BookingID) {
			b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "error_503"})
			b.runOnceCharge(b.engine(), id)
		}, "lists nothing that could take money for this booking: none was taken so far"},
		"a lost confirm": {
			"pm_card_visa", func(b *bed, id domain.BookingID) { confirmFault(b, id, "error_503_after") },
			"The provider shows the charge succeeded: 25.00 EUR taken once. Here that is not settled yet: a replay or a resolve finds it",
		},
		"a confirm that never ran": {
			"pm_card_visa", func(b *bed, id domain.BookingID) { confirmFault(b, id, "error_503") },
			"not confirmed: no money was taken so far. A confirm may still be on its way.",
		},
		"declined": {
			"pm_card_chargeDeclined", func(b *bed, id domain.BookingID) { b.work(b.engine(), id, domain.EffectCharge) },
			"The provider shows the card declined: no money was taken.",
		},
		"an intent that was canceled": {"pm_card_chargeDeclined", func(b *bed, id domain.BookingID) {
			b.work(b.engine(), id, domain.EffectCharge)
			b.end(id)
		}, "canceled, and no charge of it"},
		"refunds": {"pm_card_visa", func(b *bed, id domain.BookingID) {
			b.work(b.engine(), id, domain.EffectCharge)
			b.perform(stripesim.Action{Action: "refund", PaymentIntent: b.intent(id), Amount: 1000})
		}, "The provider shows the charge succeeded: 25.00 EUR taken once. Of its refunds: 10.00 EUR went back."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.patient()
			id := b.book(c.card)
			c.make(b, id)
			before, sent := b.tale(id).String(), b.newest()
			side, err := b.engine().Inspect(b.ctx, id)
			require.NoError(t, err)
			require.Contains(t, side.Says, c.says)
			require.Equal(t, before, b.tale(id).String(), "something moved")
			for _, call := range b.sim.Journal(sent) {
				require.Regexp(t, `\.(retrieve|list)$`, call.Operation)
			}
			require.Equal(t, len(b.charges(id)) == 1, strings.Contains(side.Says, "taken once"), "the words disagree with the ledger")
			text, err := json.Marshal(side)
			require.NoError(t, err)
			require.NotContains(t, string(text), "_secret_")
			require.NotContains(t, string(text), "null")
		})
	}
}

// Half a reading is none: whatever of it fails, nothing was learned (G4).
func TestInspect_Unread(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id := b.paidFor()
	for operation, fault := range map[string]string{"payment_intents.retrieve": "unauthorized_401", "charges.list": "list_page_error", "refunds.list": "list_page_error"} {
		faults := b.sim.AddFault(stripesim.Fault{Operation: operation, Fault: fault, Times: -1})
		_, err := b.engine().Inspect(b.ctx, id)
		require.ErrorIs(t, err, payments.ErrUnread, operation)
		b.sim.RemoveFault(faults)
	}
	lost := b.book("pm_card_visa")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "error_503_after"})
	b.runOnceCharge(b.engine(), lost)
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.list", Fault: "list_page_error", Times: -1})
	_, err := b.engine().Inspect(b.ctx, lost)
	require.ErrorIs(t, err, payments.ErrUnread)
	_, err = b.engine().Inspect(b.ctx, domain.NewID[domain.BookingID]())
	require.ErrorIs(t, err, domain.ErrNotFound)
}
