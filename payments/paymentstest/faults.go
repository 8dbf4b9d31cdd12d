package paymentstest

import (
	"context"
	"fmt"

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
	body := func(kind string) failure {
		f := lost("bad_body").after()
		f.fault.Body = kind
		return f
	}
	says := func(name string, class payments.Class) failure {
		return failure{fault: stripesim.Fault{Fault: name}, class: class}
	}
	return []failure{
		lost("reset_before").unanswered(), lost("reset_after").unanswered().after(),
		lost("hang_after").unanswered().after().left(), lost("slow").unanswered().after().left(),
		lost("error_500_before").kept(), lost("error_500_after").after().kept(), lost("partial_500").after().kept(),
		lost("html_502"), lost("html_502_after").after(), lost("error_424"), lost("error_424_after").after(),
		lost("error_502"), lost("error_502_after").after(), lost("error_503"), lost("error_503_after").after(),
		lost("error_504"), lost("error_504_after").after(),
		body("invalid"), body("empty"), body("truncated"), body("no_error"),
		says("in_use_409", payments.Busy), says("lock_timeout_429", payments.Busy),
		says("rate_limit_429", payments.NotExecuted), says("unauthorized_401", payments.NotExecuted),
		// The provider's advice to retry brings no second send, and says nothing about what happened.
		lost("error_503").advised(), lost("error_500_after").after().kept().advised(),
		says("in_use_409", payments.Busy).advised(), says("rate_limit_429", payments.NotExecuted).advised(),
	}
}

func (f failure) after() failure      { f.executed = true; return f }
func (f failure) kept() failure       { f.stored = true; return f }
func (f failure) unanswered() failure { f.silent = true; return f }
func (f failure) left() failure       { f.leaves = true; return f }
func (f failure) advised() failure    { f.fault.ShouldRetry = new(true); return f }

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
			claims = append(claims, claim{name: f.name(op), simulated: true, prove: func(x *exam) {
				proveFailure(x, op, f)
			}})
		}
		claims = append(claims, claim{
			name: fmt.Sprintf("a refused connection leaves %s not executed", op), simulated: true,
			prove: func(x *exam) {
				proveRefused(x, op)
			},
		})
	}
	return append(claims, claim{
		name: "a lost decline is still a decline when asked again", simulated: true, prove: proveLostDecline,
	})
}

func proveFailure(x *exam, op domain.Operation, f failure) {
	x.Helper()
	call := x.prepare(op, goodCard)
	f.fault.KeyMatch = call.Key
	x.Sim.AddFault(f.fault)

	ctx := x.Context()
	if f.leaves { // as soon as the provider has it
		ctx = x.until(func() bool { return len(x.journal(call.Key)) == 1 && x.hasReached(call.Key, f) })
	}
	out := x.New(x.T).Send(ctx, call)
	require.Equal(x, f.class, out.Class, describe(out))
	require.Equal(x, f.stored, out.Stored, describe(out))
	require.Equal(x, f.silent, out.HTTPStatus == 0, describe(out))
	require.Nil(x, out.Intent)
	require.False(x, out.Replayed)
	require.NotEmpty(x, out.Detail)
	x.requireSends(call.Key, 1) // one Send is one send

	executed := 0
	if f.executed {
		executed = 1
	}
	wait(x.Context(), func() bool { return x.executions(call.Key) >= executed })
	require.Equal(x, executed, x.executions(call.Key))
	if !f.executed {
		require.Empty(x, x.Sim.Ledger().Charges)
	}
	proveSameKeyEnds(x, call, f)
}

// hasReached tells whether the provider has come as far as it will before the client leaves.
func (x *exam) hasReached(key string, f failure) bool {
	return f.fault.Fault == "slow" || x.executions(key) == 1
}

// proveSameKeyEnds sends the key again in good weather: the doubt ends, except for a stored 500, and nothing ran twice.
func proveSameKeyEnds(x *exam, call payments.Call, f failure) {
	x.Helper()
	again := x.gateway.Send(x.Context(), call)
	if f.stored {
		require.Equal(x, payments.Unknown, again.Class, describe(again))
		require.True(x, again.Stored)
		require.True(x, again.Replayed)
		return
	}
	require.Equal(x, payments.Executed, again.Class, describe(again))
	require.Equal(x, f.executed, again.Replayed)
	require.Equal(x, 1, x.executions(call.Key))
	x.requireSends(call.Key, 2)
	if call.Operation == domain.OpConfirm {
		require.Len(x, x.Sim.Ledger().Succeeded(""), 1)
	}
}

func proveRefused(x *exam, op domain.Operation) {
	x.Helper()
	call := x.prepare(op, goodCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "refuse", DelayMS: 1000})
	out := x.New(x.T).Send(x.Context(), call)
	require.Equal(x, payments.NotExecuted, out.Class, describe(out))
	require.Zero(x, out.HTTPStatus)
	require.Zero(x, x.executions(call.Key))
	x.requireSends(call.Key, 0)

	wait(x.Context(), func() bool { return x.listens() })
	require.Equal(x, payments.Executed, x.New(x.T).Send(x.Context(), call).Class)
}

// listens tells whether the provider's address is open, by a read.
func (x *exam) listens() bool {
	x.Helper()
	ctx, cancel := context.WithCancel(x.Context())
	defer cancel()
	_, err := x.New(x.T).Intent(ctx, "pi_3NobodyKnowsThisOne")
	return err != nil && isNoIntent(err)
}

func proveLostDecline(x *exam) {
	x.Helper()
	call := x.prepare(domain.OpConfirm, declinedCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "reset_after", KeyMatch: call.Key})
	require.Equal(x, payments.Unknown, x.New(x.T).Send(x.Context(), call).Class)
	out := x.New(x.T).Send(x.Context(), call)
	require.Equal(x, payments.Declined, out.Class, describe(out))
	require.True(x, out.Replayed)
	require.Equal(x, 1, x.executions(call.Key))
	require.Empty(x, x.Sim.Ledger().Succeeded(""))
}
