package paymentstest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// reused is what happens on a connection that has been used before: if it breaks, net/http sends the same bytes again by
// itself, and what comes back speaks of that second send alone.
func reused() []claim {
	var claims []claim
	for _, op := range operations() {
		add := func(what string, prove func(*testing.T, *exam, payments.Call)) {
			claims = append(claims, claim{
				name: fmt.Sprintf("%s: %s", op, what), simulated: true,
				prove: func(t *testing.T, x *exam) {
					call := x.prepare(t, op, goodCard)
					x.warm(t)
					prove(t, x, call)
				},
			})
		}
		add("a reset before it ran is sent again by net/http, and runs once", replayRuns)
		add("a reset after it ran is sent again by net/http, and answered from the key", replayAnswers)
		add("executed, reset, and then no connection: unknown, though the last error is a dial error", dialTrap)
		for _, second := range []string{"rate_limit_429", "unauthorized_401"} {
			add("executed, reset, then "+second+": unknown, since the answer is about the second send",
				func(t *testing.T, x *exam, call payments.Call) { replayRefused(t, x, call, second) })
		}
		add("executed, reset, then in_use_409: busy", replayBusy)
	}
	return claims
}

// warm leaves one connection open and idle.
func (x *exam) warm(t *testing.T) {
	t.Helper()
	_, err := x.gateway.Intent(t.Context(), "pi_3NobodyKnowsThisOne")
	require.ErrorIs(t, err, payments.ErrNoIntent)
}

func replayRuns(t *testing.T, x *exam, call payments.Call) {
	t.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_before", KeyMatch: call.Key})
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Executed, out.Class, describe(out))
	require.False(t, out.Replayed)
	require.Equal(t, 1, x.executions(call.Key))
	x.requireSends(t, call.Key, 2)
}

func replayAnswers(t *testing.T, x *exam, call payments.Call) {
	t.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after_reused", KeyMatch: call.Key})
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Executed, out.Class, describe(out))
	require.True(t, out.Replayed)
	require.Equal(t, 1, x.executions(call.Key))
	x.requireSends(t, call.Key, 2)
}

func dialTrap(t *testing.T, x *exam, call payments.Call) {
	t.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after_reused", KeyMatch: call.Key, CloseListenerMS: 200})
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Unknown, out.Class, describe(out))
	require.Zero(t, out.HTTPStatus)
	require.Equal(t, 1, x.executions(call.Key))
	x.requireSends(t, call.Key, 1)

	wait(t.Context(), func() bool { return x.listens(t) })
	again := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Executed, again.Class, describe(again))
	require.True(t, again.Replayed)
	if call.Operation == domain.OpConfirm {
		require.Len(t, x.Sim.Ledger().Succeeded(""), 1)
	}
}

func replayRefused(t *testing.T, x *exam, call payments.Call, second string) {
	t.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after_reused", KeyMatch: call.Key})
	x.Sim.AddFault(stripesim.Fault{Fault: second, KeyMatch: call.Key, Nth: 2})
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Unknown, out.Class, describe(out))
	require.NotZero(t, out.HTTPStatus)
	require.Equal(t, 1, x.executions(call.Key))
	x.requireSends(t, call.Key, 2)
}

func replayBusy(t *testing.T, x *exam, call payments.Call) {
	t.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after_reused", KeyMatch: call.Key})
	x.Sim.AddFault(stripesim.Fault{Fault: "in_use_409", KeyMatch: call.Key, Nth: 2})
	out := x.gateway.Send(t.Context(), call)
	require.Equal(t, payments.Busy, out.Class, describe(out))
	require.Equal(t, 1, x.executions(call.Key))
}
