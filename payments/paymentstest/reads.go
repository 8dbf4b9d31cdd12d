package paymentstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// reads is what a read says: the provider's word, whole, or an error.
func reads() []claim {
	claims := []claim{
		{name: "an intent that the account does not know has its own error", prove: noSuchIntent},
		{name: "a malformed id is not asked for", prove: malformedID},
		{name: "intents are listed by the time of their creation, newest first", simulated: true, prove: createdWindow},
		{name: "a listing is walked to its last page", simulated: true, prove: allPages},
		{name: "a caller who leaves is told so", simulated: true, prove: readAbandoned},
		{name: "a read survives one bad moment", simulated: true, prove: readRetries},
	}
	for _, fault := range []stripesim.Fault{
		{Fault: "unauthorized_401"}, {Fault: "rate_limit_429"}, {Fault: "error_503"}, {Fault: "html_502"}, {Fault: "reset_before"},
		{Fault: "bad_body", Body: "invalid"}, {Fault: "bad_body", Body: "empty"}, {Fault: "bad_body", Body: "no_error"},
		{Fault: "bad_body", Body: "truncated"},
	} {
		fault.Operation, fault.Times = "*", -1
		claims = append(claims, claim{
			name: fmt.Sprintf("%s %s is an error of every read, and never a missing intent", fault.Fault, fault.Body), simulated: true,
			prove: func(t *testing.T, x *exam) { readFails(t, x, fault) },
		})
	}
	for _, name := range []string{"list_page_error", "list_page_empty"} {
		claims = append(claims, claim{
			name: name + " on the second page makes a listing an error", simulated: true,
			prove: func(t *testing.T, x *exam) { pageFails(t, x, name) },
		})
	}
	return claims
}

func isNoIntent(err error) bool { return errors.Is(err, payments.ErrNoIntent) }

func noSuchIntent(t *testing.T, x *exam) {
	_, err := x.gateway.Intent(t.Context(), "pi_3NobodyKnowsThisOne")
	require.ErrorIs(t, err, payments.ErrNoIntent)
}

func malformedID(t *testing.T, x *exam) {
	for _, id := range []string{"", "..", "pi_1/confirm", "pi_1?expand=x", "pi 1"} {
		_, err := x.gateway.Intent(t.Context(), id)
		require.Error(t, err)
		require.NotErrorIs(t, err, payments.ErrNoIntent)
		_, err = x.gateway.Charges(t.Context(), id)
		require.Error(t, err)
	}
	x.requireUnsent(t)
}

// createIntents makes n intents and returns their ids, newest first.
func (x *exam) createIntents(t *testing.T, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		out := x.gateway.Send(t.Context(), x.call(domain.OpCreate, charge(goodCard), ""))
		require.Equal(t, payments.Executed, out.Class, describe(out))
		ids[n-1-i] = out.Intent.ID
	}
	return ids
}

func ids(intents []payments.Intent) []string {
	all := make([]string, 0, len(intents))
	for _, i := range intents {
		all = append(all, i.ID)
	}
	return all
}

func createdWindow(t *testing.T, x *exam) {
	older := x.createIntents(t, 2)
	boundary := x.Sim.Advance(time.Hour)
	newer := x.createIntents(t, 2)
	x.Sim.Advance(time.Hour)

	all, err := x.gateway.IntentsCreated(t.Context(), boundary.Add(-2*time.Hour), x.Sim.Now())
	require.NoError(t, err)
	require.Equal(t, append(newer, older...), ids(all))
	first, err := x.gateway.IntentsCreated(t.Context(), boundary.Add(-2*time.Hour), boundary.Add(-time.Minute))
	require.NoError(t, err)
	require.Equal(t, older, ids(first))
	none, err := x.gateway.IntentsCreated(t.Context(), boundary.Add(30*time.Minute), x.Sim.Now())
	require.NoError(t, err)
	require.Empty(t, none)
}

// window is around all that the bench has made.
func (x *exam) window() (from, to time.Time) {
	return x.Sim.Now().Add(-time.Hour), x.Sim.Now().Add(time.Hour)
}

func allPages(t *testing.T, x *exam) {
	want := x.createIntents(t, 201) // three pages of a hundred
	from, to := x.window()
	got, err := x.gateway.IntentsCreated(t.Context(), from, to)
	require.NoError(t, err)
	require.Equal(t, want, ids(got))
}

func pageFails(t *testing.T, x *exam, fault string) {
	t.Helper()
	x.createIntents(t, 101)
	x.Sim.AddFault(stripesim.Fault{Fault: fault, Operation: "payment_intents.list", Nth: 2, Times: -1})
	from, to := x.window()
	got, err := x.gateway.IntentsCreated(t.Context(), from, to)
	require.Error(t, err)
	require.Nil(t, got)
}

func readAbandoned(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpConfirm, goodCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "hang_after", Operation: "payment_intents.retrieve", Times: -1})
	before := len(x.Sim.Journal(0))
	ctx := until(t, func() bool { return len(x.Sim.Journal(0)) > before })
	_, err := x.gateway.Intent(ctx, call.IntentID)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, payments.ErrNoIntent)
}

func readRetries(t *testing.T, x *exam) {
	call := x.prepare(t, domain.OpConfirm, goodCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "error_503", Operation: "payment_intents.retrieve"})
	intent, err := x.gateway.Intent(t.Context(), call.IntentID)
	require.NoError(t, err)
	require.Equal(t, call.IntentID, intent.ID)
}

func readFails(t *testing.T, x *exam, fault stripesim.Fault) {
	t.Helper()
	call := x.prepare(t, domain.OpConfirm, goodCard)
	require.Equal(t, payments.Executed, x.gateway.Send(t.Context(), call).Class)
	x.Sim.AddFault(fault)
	from, to := x.window()

	_, err := x.gateway.Intent(t.Context(), call.IntentID)
	require.Error(t, err)
	require.NotErrorIs(t, err, payments.ErrNoIntent)
	charges, err := x.gateway.Charges(t.Context(), call.IntentID)
	require.Error(t, err)
	require.Nil(t, charges)
	intents, err := x.gateway.IntentsCreated(t.Context(), from, to)
	require.Error(t, err)
	require.Nil(t, intents)
}
