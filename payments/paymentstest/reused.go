package paymentstest

import (
	"fmt"

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
		add := func(what string, prove func(*exam, payments.Call)) {
			claims = append(claims, claim{
				name: fmt.Sprintf("%s: %s", op, what), simulated: true,
				prove: func(x *exam) {
					call := x.prepare(op, goodCard)
					x.warm()
					prove(x, call)
				},
			})
		}
		add("a reset before it ran is sent again by net/http, and runs once", replayRuns)
		add("a reset after it ran is sent again by net/http, and answered from the key", replayAnswers)
		add("executed, reset, and then no connection: unknown, though the last error is a dial error", dialTrap)
		for _, second := range []string{"rate_limit_429", "unauthorized_401"} {
			add("executed, reset, then "+second+": unknown, since the answer is about the second send",
				func(x *exam, call payments.Call) { replayRefused(x, call, second) })
		}
		add("executed, reset, then in_use_409: busy", replayBusy)
	}
	return claims
}

// warm leaves one connection open and idle.
func (x *exam) warm() {
	x.Helper()
	_, err := x.gateway.Intent(x.Context(), "pi_3NobodyKnowsThisOne")
	require.ErrorIs(x, err, payments.ErrNoIntent)
}

func replayRuns(x *exam, call payments.Call) {
	x.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_before", KeyMatch: call.Key})
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Executed, out.Class, describe(out))
	require.False(x, out.Replayed)
	require.Equal(x, 1, x.executions(call.Key))
	x.requireSends(call.Key, 2)
}

func replayAnswers(x *exam, call payments.Call) {
	x.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after_reused", KeyMatch: call.Key})
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Executed, out.Class, describe(out))
	require.True(x, out.Replayed)
	require.Equal(x, 1, x.executions(call.Key))
	x.requireSends(call.Key, 2)
}

func dialTrap(x *exam, call payments.Call) {
	x.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after_reused", KeyMatch: call.Key, CloseListenerMS: 1000})
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Unknown, out.Class, describe(out))
	require.Zero(x, out.HTTPStatus)
	require.Equal(x, 1, x.executions(call.Key))
	x.requireSends(call.Key, 1)

	wait(x.Context(), func() bool { return x.listens() })
	again := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Executed, again.Class, describe(again))
	require.True(x, again.Replayed)
	if call.Operation == domain.OpConfirm {
		require.Len(x, x.Sim.Ledger().Succeeded(""), 1)
	}
}

func replayRefused(x *exam, call payments.Call, second string) {
	x.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after_reused", KeyMatch: call.Key})
	x.Sim.AddFault(stripesim.Fault{Fault: second, KeyMatch: call.Key, Nth: 2})
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Unknown, out.Class, describe(out))
	require.NotZero(x, out.HTTPStatus)
	require.Equal(x, 1, x.executions(call.Key))
	x.requireSends(call.Key, 2)
}

func replayBusy(x *exam, call payments.Call) {
	x.Helper()
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after_reused", KeyMatch: call.Key})
	x.Sim.AddFault(stripesim.Fault{Fault: "in_use_409", KeyMatch: call.Key, Nth: 2})
	out := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Busy, out.Class, describe(out))
	require.Equal(x, 1, x.executions(call.Key))
}
