package paymentstest

import (
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
)

// refunds is what a refund rests on: it is made once, in full, and a listing shows it with our ids.
func refunds() []claim {
	return []claim{
		{name: "a refund in full is made once, whatever the key", prove: proveRefundOnce},
		{name: "a refund is found by our ids", prove: proveRefundListed},
		{name: "an intent that took no money has nothing to refund", prove: proveNothingToRefund},
	}
}

// refund freezes a refund of all of a charge.
func (x *exam) refund(c payments.Charge, intentID string) payments.Call {
	r := payments.Refund{
		ID: domain.NewID[domain.RefundID](), Ordinal: 1, BookingID: c.BookingID, PaymentID: c.PaymentID, IntentID: intentID, Total: c.Total,
	}
	return payments.Call{
		Operation: domain.OpRefund, IntentID: intentID, Key: domain.RefundKey(r.ID, 1), Params: x.gateway.FreezeRefund(r),
	}
}

// paid makes an intent that has succeeded.
func (x *exam) paid() (payments.Charge, string) {
	x.Helper()
	return x.paidBy(goodCard)
}

func (x *exam) paidBy(card string) (payments.Charge, string) {
	x.Helper()
	c := charge(card)
	created := x.gateway.Send(x.Context(), x.call(domain.OpCreate, c, ""))
	require.Equal(x, payments.Executed, created.Class, created.Detail)
	confirmed := x.gateway.Send(x.Context(), x.call(domain.OpConfirm, c, created.Intent.ID))
	require.Equal(x, payments.IntentSucceeded, confirmed.Intent.Status, confirmed.Detail)
	return c, created.Intent.ID
}

func proveRefundOnce(x *exam) {
	x.Helper()
	c, intent := x.paid()
	call := x.refund(c, intent)
	first := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Executed, first.Class, describe(first))
	require.Equal(x, payments.RefundSucceeded, first.Refund.Status)
	require.Equal(x, c.Total, first.Refund.Amount)
	again := x.New(x.T).Send(x.Context(), call)
	require.Equal(x, payments.Executed, again.Class, describe(again))
	require.True(x, again.Replayed)
	require.Equal(x, first.Refund.ID, again.Refund.ID)
	other := x.gateway.Send(x.Context(), x.refund(c, intent))
	require.Equal(x, payments.Rejected, other.Class, describe(other))
	require.Equal(x, "charge_already_refunded", other.Code)
	require.Nil(x, other.Refund)
}

func proveRefundListed(x *exam) {
	x.Helper()
	c, intent := x.paid()
	none, err := x.gateway.Refunds(x.Context(), intent)
	require.NoError(x, err)
	require.Empty(x, none)
	call := x.refund(c, intent)
	made := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Executed, made.Class, describe(made))
	found, err := x.gateway.Refunds(x.Context(), intent)
	require.NoError(x, err)
	require.Equal(x, []payments.ProviderRefund{*made.Refund}, found)
	require.Equal(x, call.Params["metadata[refund_id]"], found[0].RefundID)
	require.Equal(x, "1", found[0].Ordinal)
}

func proveNothingToRefund(x *exam) {
	x.Helper()
	c := charge(goodCard)
	created := x.gateway.Send(x.Context(), x.call(domain.OpCreate, c, ""))
	require.Equal(x, payments.Executed, created.Class, created.Detail)
	out := x.gateway.Send(x.Context(), x.refund(c, created.Intent.ID))
	require.Equal(x, payments.Rejected, out.Class, describe(out))
}
