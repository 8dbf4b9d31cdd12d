package paymentstest

import (
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
)

// protocol is what the provider does in health.
func protocol() []claim {
	return []claim{
		{name: "a created intent carries amount, method and our ids, and has taken nothing", prove: createTakesNothing},
		{name: "a confirm charges", prove: confirmCharges},
		{name: "a decline clears the method, so that a stray confirm charges nothing", prove: declineClears},
		{name: "an update brings another card to the same intent, and moves no money", prove: updateBringsACard},
		{name: "an update of what succeeded says so", prove: updateTooLate},
		{name: "a confirm may ask for the customer", prove: confirmAsks},
		{name: "a cancelled intent can take no money", prove: cancelFences},
		{name: "a cancel of what succeeded says so", prove: cancelTooLate},
		{name: "the same key is executed once and answered again", prove: sameKeyOnce},
		{name: "a replayed answer is a snapshot", prove: replayIsSnapshot},
		{name: "a forgotten key moves no money twice", simulated: true, prove: forgottenKey},
		{name: "a key with other parameters is a mismatch", prove: otherParameters},
		{name: "a key on another intent is a mismatch", prove: otherIntent},
		{name: "an intent that nobody knows is rejected", prove: unknownIntent},
		{name: "an amount that the provider refuses is rejected", prove: refusedAmount},
		{name: "an amount that cannot be said in the provider's units is rejected unsent", prove: unsayableAmount},
		{name: "without a key nothing is sent", prove: nothingWithoutKey},
		{name: "frozen parameters are equal whenever they are frozen", prove: frozenEqual},
	}
}

func createTakesNothing(x *exam) {
	c := charge(goodCard)
	out := x.gateway.Send(x.Context(), x.call(domain.OpCreate, c, ""))
	require.Equal(x, payments.Executed, out.Class, describe(out))
	require.False(x, out.Replayed)
	require.Equal(x, http.StatusOK, out.HTTPStatus)
	require.NotEmpty(x, out.RequestID)
	require.Equal(x, payments.IntentRequiresConfirmation, out.Intent.Status)
	require.Equal(x, c.Total, out.Intent.Amount)
	require.Zero(x, out.Intent.AmountReceived)
	require.Equal(x, c.BookingID.String(), out.Intent.BookingID)
	require.Equal(x, c.PaymentID.String(), out.Intent.PaymentID)
	require.NotEmpty(x, out.Intent.PaymentMethod)
	require.NotEqual(x, goodCard, out.Intent.PaymentMethod, "the provider names the method itself")
	require.False(x, out.Intent.Livemode)

	read, err := x.gateway.Intent(x.Context(), out.Intent.ID)
	require.NoError(x, err)
	require.Equal(x, *out.Intent, read)
	charges, err := x.gateway.Charges(x.Context(), out.Intent.ID)
	require.NoError(x, err)
	require.Empty(x, charges)
}

func confirmCharges(x *exam) {
	call := x.prepare(domain.OpConfirm, goodCard)
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Executed, out.Class, describe(out))
	require.Equal(x, payments.IntentSucceeded, out.Intent.Status)
	require.Equal(x, out.Intent.Amount.Amount, out.Intent.AmountReceived)

	charges, err := x.gateway.Charges(x.Context(), call.IntentID)
	require.NoError(x, err)
	require.Len(x, charges, 1)
	require.Equal(x, payments.ChargeSucceeded, charges[0].Status)
	require.Equal(x, out.Intent.Amount, charges[0].Amount)
}

func declineClears(x *exam) {
	call := x.prepare(domain.OpConfirm, declinedCard)
	before, err := x.gateway.Intent(x.Context(), call.IntentID)
	require.NoError(x, err)

	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Declined, out.Class, describe(out))
	require.Equal(x, "card_declined", out.Code)
	require.Equal(x, "insufficient_funds", out.DeclineCode)
	require.NotNil(x, out.Intent)
	require.Equal(x, payments.IntentRequiresPaymentMethod, out.Intent.Status)
	require.Empty(x, out.Intent.PaymentMethod)
	require.Equal(x, &payments.LastError{
		Code: "card_declined", DeclineCode: "insufficient_funds", PaymentMethod: before.PaymentMethod,
	}, out.Intent.LastError)

	again := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Declined, again.Class, describe(again))
	require.True(x, again.Replayed)

	call.Key += "-stray"
	stray := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.KnownState, stray.Class, describe(stray))
	require.Equal(x, payments.IntentRequiresPaymentMethod, stray.Intent.Status)
	charges, err := x.gateway.Charges(x.Context(), call.IntentID)
	require.NoError(x, err)
	require.Len(x, charges, 1)
	require.Equal(x, "failed", charges[0].Status)
}

func updateBringsACard(x *exam) {
	call := x.prepare(domain.OpConfirm, declinedCard)
	require.Equal(x, payments.Declined, x.gateway.Send(x.Context(), call).Class)
	update := x.call(domain.OpUpdate, charge(goodCard), call.IntentID)
	out := x.gateway.Send(x.Context(), update)
	require.Equal(x, payments.Executed, out.Class, describe(out))
	require.Equal(x, payments.IntentRequiresConfirmation, out.Intent.Status)
	require.NotEmpty(x, out.Intent.PaymentMethod)
	require.NotEqual(x, goodCard, out.Intent.PaymentMethod, "the provider names the method itself")
	read, err := x.gateway.Intent(x.Context(), call.IntentID)
	require.NoError(x, err)
	require.Equal(x, out.Intent.PaymentMethod, read.PaymentMethod)
	require.Zero(x, read.AmountReceived)

	again := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Declined, again.Class, "the first card's key is spent: "+describe(again))
	confirm := x.call(domain.OpConfirm, charge(goodCard), call.IntentID)
	confirm.Key = call.Key + "-second"
	paid := x.gateway.Send(x.Context(), confirm)
	require.Equal(x, payments.Executed, paid.Class, describe(paid))
	require.Equal(x, payments.IntentSucceeded, paid.Intent.Status)
}

func updateTooLate(x *exam) {
	call := x.prepare(domain.OpConfirm, goodCard)
	require.Equal(x, payments.Executed, x.gateway.Send(x.Context(), call).Class)
	out := x.gateway.Send(x.Context(), x.call(domain.OpUpdate, charge(declinedCard), call.IntentID))
	require.Equal(x, payments.KnownState, out.Class, describe(out))
	require.Equal(x, payments.IntentSucceeded, out.Intent.Status)
}

func confirmAsks(x *exam) {
	out := x.gateway.Send(x.Context(), x.prepare(domain.OpConfirm, actionCard))
	require.Equal(x, payments.Executed, out.Class, describe(out))
	require.Equal(x, payments.IntentRequiresAction, out.Intent.Status)
	require.Zero(x, out.Intent.AmountReceived)
}

func cancelFences(x *exam) {
	call := x.prepare(domain.OpCancel, goodCard)
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Executed, out.Class, describe(out))
	require.Equal(x, payments.IntentCanceled, out.Intent.Status)

	late := payments.Call{Operation: domain.OpConfirm, IntentID: call.IntentID, Key: call.Key + "-late", Params: payments.Params{}}
	out = x.gateway.Send(x.Context(), late)
	require.Equal(x, payments.KnownState, out.Class, describe(out))
	require.Equal(x, payments.IntentCanceled, out.Intent.Status)
	charges, err := x.gateway.Charges(x.Context(), call.IntentID)
	require.NoError(x, err)
	require.Empty(x, charges)
}

func cancelTooLate(x *exam) {
	call := x.prepare(domain.OpConfirm, goodCard)
	require.Equal(x, payments.Executed, x.gateway.Send(x.Context(), call).Class)
	fence := payments.Call{Operation: domain.OpCancel, IntentID: call.IntentID, Key: call.Key + "-fence", Params: payments.Params{}}
	out := x.gateway.Send(x.Context(), fence)
	require.Equal(x, payments.KnownState, out.Class, describe(out))
	require.Equal(x, payments.IntentSucceeded, out.Intent.Status)
}

func sameKeyOnce(x *exam) {
	for _, op := range operations() {
		call := x.prepare(op, goodCard)
		first, second := x.gateway.Send(x.Context(), call), x.New(x.T).Send(x.Context(), call)
		require.Equal(x, payments.Executed, first.Class, describe(first))
		require.Equal(x, payments.Executed, second.Class, describe(second))
		require.True(x, second.Replayed)
		require.Equal(x, first.Intent, second.Intent)
		require.NotEqual(x, first.RequestID, second.RequestID)
		if x.Sim != nil {
			require.Equal(x, 1, x.executions(call.Key))
			x.requireSends(call.Key, 2)
		}
	}
}

func replayIsSnapshot(x *exam) {
	c := charge(goodCard)
	create := x.call(domain.OpCreate, c, "")
	created := x.gateway.Send(x.Context(), create)
	require.Equal(x, payments.Executed, created.Class, describe(created))
	require.Equal(x, payments.Executed, x.gateway.Send(x.Context(), x.call(domain.OpConfirm, c, created.Intent.ID)).Class)

	out := x.gateway.Send(x.Context(), create)
	require.Equal(x, payments.Executed, out.Class, describe(out))
	require.True(x, out.Replayed)
	require.Equal(x, payments.IntentRequiresConfirmation, out.Intent.Status, "as it was, not as it is")
}

func forgottenKey(x *exam) {
	call := x.prepare(domain.OpConfirm, goodCard)
	require.Equal(x, payments.Executed, x.gateway.Send(x.Context(), call).Class)
	x.Sim.Advance(25 * time.Hour)
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.KnownState, out.Class, describe(out))
	require.Equal(x, payments.IntentSucceeded, out.Intent.Status)
	require.Len(x, x.Sim.Ledger().Succeeded(""), 1)
}

func otherParameters(x *exam) {
	call := x.prepare(domain.OpCreate, goodCard)
	require.Equal(x, payments.Executed, x.gateway.Send(x.Context(), call).Class)
	call.Params["amount"] = "4300"
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.KeyMismatch, out.Class, describe(out))
	require.Nil(x, out.Intent)
}

func otherIntent(x *exam) {
	call, other := x.prepare(domain.OpConfirm, goodCard), x.prepare(domain.OpConfirm, goodCard)
	require.Equal(x, payments.Executed, x.gateway.Send(x.Context(), call).Class)
	call.IntentID = other.IntentID
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.KeyMismatch, out.Class, describe(out))
}

func unknownIntent(x *exam) {
	for _, op := range []domain.Operation{domain.OpUpdate, domain.OpConfirm, domain.OpCancel} {
		out := x.gateway.Send(x.Context(), x.call(op, charge(goodCard), "pi_3NobodyKnowsThisOne"))
		require.Equal(x, payments.Rejected, out.Class, describe(out))
		require.Equal(x, http.StatusNotFound, out.HTTPStatus)
		require.Equal(x, "resource_missing", out.Code)
	}
}

func refusedAmount(x *exam) {
	c := charge(goodCard)
	c.Total.Amount = 1
	out := x.gateway.Send(x.Context(), x.call(domain.OpCreate, c, ""))
	require.Equal(x, payments.Rejected, out.Class, describe(out))
	require.Equal(x, "amount_too_small", out.Code)
}

func unsayableAmount(x *exam) {
	c := charge(goodCard)
	c.Total = domain.Money{Amount: 12_345, Currency: "KWD"}
	call := x.call(domain.OpCreate, c, "")
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Rejected, out.Class, describe(out))
	require.Zero(x, out.HTTPStatus)
	x.requireUnsent()
}

func nothingWithoutKey(x *exam) {
	for _, op := range operations() {
		for _, key := range []string{"", " ", "\t\n", "with space", "ümlaut"} {
			call := x.call(op, charge(goodCard), "")
			if op != domain.OpCreate {
				call.IntentID = "pi_3NobodyKnowsThisOne"
			}
			call.Key = key
			out := x.gateway.Send(x.Context(), call)
			require.Equal(x, payments.NotExecuted, out.Class, describe(out))
			require.Zero(x, out.HTTPStatus)
		}
	}
	x.requireUnsent()
}

func frozenEqual(x *exam) {
	c := charge(goodCard)
	for _, op := range operations() {
		frozen := x.gateway.Freeze(op, c)
		require.NotNil(x, frozen)
		require.Equal(x, frozen, x.New(x.T).Freeze(op, c))
	}
	frozen := x.gateway.Freeze(domain.OpCreate, c)
	require.Equal(x, "4200", frozen["amount"])
	require.NotContains(x, x.gateway.Freeze(domain.OpConfirm, c), "payment_method", "a stray confirm must find no method")
}

func operations() []domain.Operation {
	return []domain.Operation{domain.OpCreate, domain.OpUpdate, domain.OpConfirm, domain.OpCancel}
}

func (x *exam) requireUnsent() {
	x.Helper()
	if x.Sim != nil {
		require.Empty(x, x.Sim.Journal(0))
	}
}
