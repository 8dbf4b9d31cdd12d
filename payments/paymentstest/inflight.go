package paymentstest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// inFlight is what twins get while the provider is still at work on the first of them, and afterwards.
func inFlight() []claim {
	var claims []claim
	for _, op := range operations() {
		claims = append(claims, claim{
			name: fmt.Sprintf("twins of a long %s are busy, and then get its answer", op), simulated: true,
			prove: func(x *exam) { twinsAreBusy(x, op) },
		})
	}
	return claims
}

func twinsAreBusy(x *exam, op domain.Operation) {
	x.Helper()
	call := x.prepare(op, goodCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "delay", KeyMatch: call.Key, DelayMS: 500})
	ended := make(chan struct{})
	var first payments.Outcome
	var group sync.WaitGroup
	group.Go(func() {
		defer close(ended)
		first = x.New(x.T).Send(x.Context(), call)
	})
	wait(x.Context(), func() bool { sends := x.journal(call.Key); return len(sends) > 0 && sends[0].Fault != "" })

	busy := 0
	for running := true; running; {
		select {
		case <-ended:
			running = false
		default:
			twin := x.gateway.Send(x.Context(), call)
			if twin.Class == payments.Busy {
				busy++
				continue
			}
			require.Equal(x, payments.Executed, twin.Class, describe(twin)) // the first has ended just now
			require.True(x, twin.Replayed, describe(twin))
		}
	}
	group.Wait()
	require.Equal(x, payments.Executed, first.Class, describe(first))
	require.False(x, first.Replayed)
	require.Positive(x, busy, "no twin met the first at work")
	again := x.gateway.Send(x.Context(), call)
	require.Equal(x, payments.Executed, again.Class, describe(again))
	require.True(x, again.Replayed)
	require.Equal(x, first.Intent, again.Intent)
	require.Equal(x, 1, x.executions(call.Key))
	if op == domain.OpConfirm {
		require.Len(x, x.Sim.Ledger().Succeeded(""), 1)
	}
}
