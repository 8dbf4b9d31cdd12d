package paymentstest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// failure is one fault on a fresh connection, with what a send must say of it and what is true at the provider.
type failure struct {
	fault    stripesim.Fault
	class    payments.Class
	executed bool // the send ran at the provider
	stored   bool // its 500 is what the key answers for ever after
	silent   bool // there is no answer
	leaves   bool // the client has to leave before the provider goes on
}

func failures() []failure {
	lost := func(name string) failure {
		return failure{fault: stripesim.Fault{Fault: name}, class: payments.Unknown}
	}
	lostAfter := func(name string) failure { f := lost(name); f.executed = true; return f }
	body := func(kind string) failure { f := lostAfter("bad_body"); f.fault.Body = kind; return f }
	silent := func(f failure) failure { f.silent = true; return f }
	leaves := func(f failure) failure { f.silent, f.leaves = true, true; return f }
	stored := func(f failure) failure { f.stored = true; return f }
	says := func(name string, class payments.Class) failure {
		return failure{fault: stripesim.Fault{Fault: name}, class: class}
	}
	advice := func(f failure, retry bool) failure { f.fault.ShouldRetry = &retry; return f }
	return []failure{
		silent(lost("reset_before")), silent(lostAfter("reset_after")),
		leaves(lostAfter("hang_after")), leaves(lostAfter("slow")),
		stored(lost("error_500_before")), stored(lostAfter("error_500_after")), stored(lostAfter("partial_500")),
		lost("html_502"), lostAfter("html_502_after"), lost("error_424"), lostAfter("error_424_after"),
		lost("error_502"), lostAfter("error_502_after"), lost("error_503"), lostAfter("error_503_after"),
		lost("error_504"), lostAfter("error_504_after"),
		body("invalid"), body("empty"), body("truncated"), body("no_error"),
		says("in_use_409", payments.Busy), says("lock_timeout_429", payments.Busy),
		says("rate_limit_429", payments.NotExecuted), says("unauthorized_401", payments.NotExecuted),
		// The provider's advice to retry is not followed by a send, and says nothing about what happened.
		advice(lost("error_503"), true), advice(lost("error_500_after"), true).ran().kept(),
		advice(says("in_use_409", payments.Busy), true), advice(says("rate_limit_429", payments.NotExecuted), true),
	}
}

func (f failure) ran() failure  { f.executed = true; return f }
func (f failure) kept() failure { f.stored = true; return f }

func (f failure) name(op domain.Operation) string {
	name := fmt.Sprintf("%s of %s is %s", f.fault.Fault, op, f.class)
	if f.fault.Body != "" {
		name += " with body " + f.fault.Body
	}
	if f.fault.ShouldRetry != nil {
		name += " whatever it advises"
	}
	return name
}

// faults is every operation under every failure.
func faults() []claim {
	var claims []claim
	for _, op := range operations() {
		for _, f := range failures() {
			claims = append(claims, claim{name: f.name(op), simulated: true, prove: func(t *testing.T, x *exam) {
				proveFailure(t, x, op, f)
			}})
		}
		claims = append(claims, claim{
			name: fmt.Sprintf("a refused connection leaves %s not executed", op), simulated: true,
			prove: func(t *testing.T, x *exam) { proveRefused(t, x, op) },
		})
	}
	return append(claims, claim{
		name: "a lost decline is still a decline when asked again", simulated: true, prove: proveLostDecline,
	})
}

func proveFailure(t *testing.T, x *exam, op domain.Operation, f failure) {
	t.Helper()
	call := x.prepare(t, op, goodCard)
	f.fault.KeyMatch = call.Key
	x.Sim.AddFault(f.fault)

	ctx := t.Context()
	if f.leaves { // as soon as the provider has it
		ctx = until(t, func() bool { return len(x.journal(call.Key)) == 1 && x.hasReached(call.Key, f) })
	}
	out := x.New(t).Send(ctx, call)
	require.Equal(t, f.class, out.Class, describe(out))
	require.Equal(t, f.stored, out.Stored, describe(out))
	require.Equal(t, f.silent, out.HTTPStatus == 0, describe(out))
	require.Nil(t, out.Intent)
	require.False(t, out.Replayed)
	require.NotEmpty(t, out.Detail)
	x.requireSends(t, call.Key, 1) // one Send is one send

	executed := 0
	if f.executed {
		executed = 1
	}
	wait(t.Context(), func() bool { return x.executions(call.Key) >= executed })
	require.Equal(t, executed, x.executions(call.Key))
	if !f.executed {
		require.Empty(t, x.Sim.Ledger().Charges)
	}
	proveSameKeyEnds(t, x, call, f)
}

// hasReached tells whether the provider has come as far as it will before the client leaves.
func (x *exam) hasReached(key string, f failure) bool {
	return f.fault.Fault == "slow" || x.executions(key) == 1
}

// proveSameKeyEnds sends the key again in good weather: the doubt ends, except for a stored 500, and nothing ran twice.
func proveSameKeyEnds(t *testing.T, x *exam, call payments.Call, f failure) {
	t.Helper()
	again := x.gateway.Send(t.Context(), call)
	if f.stored {
		require.Equal(t, payments.Unknown, again.Class, describe(again))
		require.True(t, again.Stored)
		require.True(t, again.Replayed)
		return
	}
	require.Equal(t, payments.Executed, again.Class, describe(again))
	require.Equal(t, f.executed, again.Replayed)
	require.Equal(t, 1, x.executions(call.Key))
	x.requireSends(t, call.Key, 2)
	if call.Operation == domain.OpConfirm {
		require.Len(t, x.Sim.Ledger().Succeeded(""), 1)
	}
}

func proveRefused(t *testing.T, x *exam, op domain.Operation) {
	t.Helper()
	call := x.prepare(t, op, goodCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "refuse", DelayMS: 200})
	out := x.New(t).Send(t.Context(), call)
	require.Equal(t, payments.NotExecuted, out.Class, describe(out))
	require.Zero(t, out.HTTPStatus)
	require.Zero(t, x.executions(call.Key))
	x.requireSends(t, call.Key, 0)

	wait(t.Context(), func() bool { return x.listens(t) })
	require.Equal(t, payments.Executed, x.New(t).Send(t.Context(), call).Class)
}

// listens tells whether the provider's address is open, by a read.
func (x *exam) listens(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := x.New(t).Intent(ctx, "pi_3NobodyKnowsThisOne")
	return err != nil && isNoIntent(err)
}

func proveLostDecline(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpConfirm, declinedCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after", KeyMatch: call.Key})
	require.Equal(t, payments.Unknown, x.New(t).Send(t.Context(), call).Class)
	out := x.New(t).Send(t.Context(), call)
	require.Equal(t, payments.Declined, out.Class, describe(out))
	require.True(t, out.Replayed)
	require.Equal(t, 1, x.executions(call.Key))
	require.Empty(t, x.Sim.Ledger().Succeeded(""))
}
