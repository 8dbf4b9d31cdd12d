package paymentstest

import (
	"net/http"
	"testing"
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

func createTakesNothing(t *testing.T, x *exam) {
	c := charge(goodCard)
	out := x.gateway.Send(t.Context(), x.call(domain.OpCreate, c, ""))
	require.Equal(t, payments.Executed, out.Class, describe(out))
	require.False(t, out.Replayed)
	require.Equal(t, http.StatusOK, out.HTTPStatus)
	require.NotEmpty(t, out.RequestID)
	require.Equal(t, payments.IntentRequiresConfirmation, out.Intent.Status)
	require.Equal(t, c.Total, out.Intent.Amount)
	require.Zero(t, out.Intent.AmountReceived)
	require.Equal(t, c.BookingID.String(), out.Intent.BookingID)
	require.Equal(t, c.PaymentID.String(), out.Intent.PaymentID)
	require.NotEmpty(t, out.Intent.PaymentMethod)
	require.NotEqual(t, goodCard, out.Intent.PaymentMethod, "the provider names the method itself")
	require.False(t, out.Intent.Livemode)

	read, err := x.gateway.Intent(t.Context(), out.Intent.ID)
	require.NoError(t, err)
	require.Equal(t, *out.Intent, read)
	charges, err := x.gateway.Charges(t.Context(), out.Intent.ID)
	require.NoError(t, err)
	require.Empty(t, charges)
}

func confirmCharges(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpConfirm, goodCard)
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Executed, out.Class, describe(out))
	require.Equal(t, payments.IntentSucceeded, out.Intent.Status)
	require.Equal(t, out.Intent.Amount.Amount, out.Intent.AmountReceived)

	charges, err := x.gateway.Charges(t.Context(), call.IntentID)
	require.NoError(t, err)
	require.Len(t, charges, 1)
	require.Equal(t, payments.ChargeSucceeded, charges[0].Status)
	require.Equal(t, out.Intent.Amount, charges[0].Amount)
}

func declineClears(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpConfirm, declinedCard)
	before, err := x.gateway.Intent(t.Context(), call.IntentID)
	require.NoError(t, err)

	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Declined, out.Class, describe(out))
	require.Equal(t, "card_declined", out.Code)
	require.Equal(t, "insufficient_funds", out.DeclineCode)
	require.NotNil(t, out.Intent)
	require.Equal(t, payments.IntentRequiresPaymentMethod, out.Intent.Status)
	require.Empty(t, out.Intent.PaymentMethod)
	require.Equal(t, &payments.LastError{
		Code: "card_declined", DeclineCode: "insufficient_funds", PaymentMethod: before.PaymentMethod,
	}, out.Intent.LastError)

	again := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Declined, again.Class, describe(again))
	require.True(t, again.Replayed)

	call.Key += "-stray"
	stray := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.KnownState, stray.Class, describe(stray))
	require.Equal(t, payments.IntentRequiresPaymentMethod, stray.Intent.Status)
	charges, err := x.gateway.Charges(t.Context(), call.IntentID)
	require.NoError(t, err)
	require.Len(t, charges, 1)
	require.Equal(t, "failed", charges[0].Status)
}

func confirmAsks(t *testing.T, x *exam) {
	out := x.gateway.Send(t.Context(), x.prepare(t, domain.OpConfirm, actionCard))
	require.Equal(t, payments.Executed, out.Class, describe(out))
	require.Equal(t, payments.IntentRequiresAction, out.Intent.Status)
	require.Zero(t, out.Intent.AmountReceived)
}

func cancelFences(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpCancel, goodCard)
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Executed, out.Class, describe(out))
	require.Equal(t, payments.IntentCanceled, out.Intent.Status)

	late := payments.Call{Operation: domain.OpConfirm, IntentID: call.IntentID, Key: call.Key + "-late", Params: payments.Params{}}
	out = x.gateway.Send(t.Context(), late)
	require.Equal(t, payments.KnownState, out.Class, describe(out))
	require.Equal(t, payments.IntentCanceled, out.Intent.Status)
	charges, err := x.gateway.Charges(t.Context(), call.IntentID)
	require.NoError(t, err)
	require.Empty(t, charges)
}

func cancelTooLate(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpConfirm, goodCard)
	require.Equal(t, payments.Executed, x.gateway.Send(t.Context(), call).Class)
	fence := payments.Call{Operation: domain.OpCancel, IntentID: call.IntentID, Key: call.Key + "-fence", Params: payments.Params{}}
	out := x.gateway.Send(t.Context(), fence)
	require.Equal(t, payments.KnownState, out.Class, describe(out))
	require.Equal(t, payments.IntentSucceeded, out.Intent.Status)
}

func sameKeyOnce(t *testing.T, x *exam) {
	for _, op := range operations() {
		call := x.prepare(t, op, goodCard)
		first, second := x.gateway.Send(t.Context(), call), x.New(t).Send(t.Context(), call)
		require.Equal(t, payments.Executed, first.Class, describe(first))
		require.Equal(t, payments.Executed, second.Class, describe(second))
		require.True(t, second.Replayed)
		require.Equal(t, first.Intent, second.Intent)
		require.NotEqual(t, first.RequestID, second.RequestID)
		if x.Sim != nil {
			require.Equal(t, 1, x.executions(call.Key))
			x.requireSends(t, call.Key, 2)
		}
	}
}

func replayIsSnapshot(t *testing.T, x *exam) {
	c := charge(goodCard)
	create := x.call(domain.OpCreate, c, "")
	created := x.gateway.Send(t.Context(), create)
	require.Equal(t, payments.Executed, created.Class, describe(created))
	require.Equal(t, payments.Executed, x.gateway.Send(t.Context(), x.call(domain.OpConfirm, c, created.Intent.ID)).Class)

	out := x.gateway.Send(t.Context(), create)
	require.Equal(t, payments.Executed, out.Class, describe(out))
	require.True(t, out.Replayed)
	require.Equal(t, payments.IntentRequiresConfirmation, out.Intent.Status, "as it was, not as it is")
}

func forgottenKey(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpConfirm, goodCard)
	require.Equal(t, payments.Executed, x.gateway.Send(t.Context(), call).Class)
	x.Sim.Advance(25 * time.Hour)
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.KnownState, out.Class, describe(out))
	require.Equal(t, payments.IntentSucceeded, out.Intent.Status)
	require.Len(t, x.Sim.Ledger().Succeeded(""), 1)
}

func otherParameters(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpCreate, goodCard)
	require.Equal(t, payments.Executed, x.gateway.Send(t.Context(), call).Class)
	call.Params["amount"] = "4300"
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.KeyMismatch, out.Class, describe(out))
	require.Nil(t, out.Intent)
}

func otherIntent(t *testing.T, x *exam) {
	call, other := x.prepare(t, domain.OpConfirm, goodCard), x.prepare(t, domain.OpConfirm, goodCard)
	require.Equal(t, payments.Executed, x.gateway.Send(t.Context(), call).Class)
	call.IntentID = other.IntentID
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.KeyMismatch, out.Class, describe(out))
}

func unknownIntent(t *testing.T, x *exam) {
	for _, op := range []domain.Operation{domain.OpConfirm, domain.OpCancel} {
		out := x.gateway.Send(t.Context(), x.call(op, charge(goodCard), "pi_3NobodyKnowsThisOne"))
		require.Equal(t, payments.Rejected, out.Class, describe(out))
		require.Equal(t, http.StatusNotFound, out.HTTPStatus)
		require.Equal(t, "resource_missing", out.Code)
	}
}

func refusedAmount(t *testing.T, x *exam) {
	c := charge(goodCard)
	c.Total.Amount = 1
	out := x.gateway.Send(t.Context(), x.call(domain.OpCreate, c, ""))
	require.Equal(t, payments.Rejected, out.Class, describe(out))
	require.Equal(t, "amount_too_small", out.Code)
}

func unsayableAmount(t *testing.T, x *exam) {
	c := charge(goodCard)
	c.Total = domain.Money{Amount: 12_345, Currency: "KWD"}
	call := x.call(domain.OpCreate, c, "")
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Rejected, out.Class, describe(out))
	require.Zero(t, out.HTTPStatus)
	x.requireUnsent(t)
}

func nothingWithoutKey(t *testing.T, x *exam) {
	for _, op := range operations() {
		for _, key := range []string{"", " ", "\t\n", "with space", "ümlaut"} {
			call := x.call(op, charge(goodCard), "")
			if op != domain.OpCreate {
				call.IntentID = "pi_3NobodyKnowsThisOne"
			}
			call.Key = key
			out := x.gateway.Send(t.Context(), call)
			require.Equal(t, payments.NotExecuted, out.Class, describe(out))
			require.Zero(t, out.HTTPStatus)
		}
	}
	x.requireUnsent(t)
}

func frozenEqual(t *testing.T, x *exam) {
	c := charge(goodCard)
	for _, op := range operations() {
		frozen := x.gateway.Freeze(op, c)
		require.NotNil(t, frozen)
		require.Equal(t, frozen, x.New(t).Freeze(op, c))
	}
	frozen := x.gateway.Freeze(domain.OpCreate, c)
	require.Equal(t, "4200", frozen["amount"])
	require.NotContains(t, x.gateway.Freeze(domain.OpConfirm, c), "payment_method", "a stray confirm must find no method")
}

func operations() []domain.Operation {
	return []domain.Operation{domain.OpCreate, domain.OpConfirm, domain.OpCancel}
}

func (x *exam) requireUnsent(t *testing.T) {
	t.Helper()
	if x.Sim != nil {
		require.Empty(t, x.Sim.Journal(0))
	}
}
