package paymentstest

import (
	"context"
	"errors"
	"fmt"
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
		{name: "what a customer has to do is read with the client secret, and nothing where nobody waits", prove: readAction},
		{name: "a read survives one bad moment", simulated: true, prove: readRetries},
	}
	for _, fault := range []stripesim.Fault{
		{Fault: "unauthorized_401"},
		{Fault: "rate_limit_429"},
		{Fault: "error_503"},
		{Fault: "html_502"},
		{Fault: "reset_before"},
		{Fault: "bad_body", Body: "invalid"},
		{Fault: "bad_body", Body: "empty"},
		{Fault: "bad_body", Body: "no_error"},
		{Fault: "bad_body", Body: "truncated"},
	} {
		fault.Operation, fault.Times = "*", -1
		claims = append(claims, claim{
			name: fmt.Sprintf("%s %s is an error of every read, and never a missing intent", fault.Fault, fault.Body), simulated: true,
			prove: func(x *exam) { readFails(x, fault) },
		})
	}
	for _, name := range []string{"list_page_error", "list_page_empty"} {
		claims = append(claims, claim{
			name: name + " on the second page makes a listing an error", simulated: true,
			prove: func(x *exam) { pageFails(x, name) },
		})
	}
	return claims
}

func isNoIntent(err error) bool { return errors.Is(err, payments.ErrNoIntent) }

func noSuchIntent(x *exam) {
	_, err := x.gateway.Intent(x.Context(), "pi_3NobodyKnowsThisOne")
	require.ErrorIs(x, err, payments.ErrNoIntent)
}

func malformedID(x *exam) {
	for _, id := range []string{"", "..", "pi_1/confirm", "pi_1?expand=x", "pi 1"} {
		_, err := x.gateway.Intent(x.Context(), id)
		require.Error(x, err)
		require.NotErrorIs(x, err, payments.ErrNoIntent)
		_, err = x.gateway.Charges(x.Context(), id)
		require.Error(x, err)
	}
	x.requireUnsent()
}

// createIntents makes n intents and returns their ids, newest first.
func (x *exam) createIntents(n int) []string {
	x.Helper()
	ids := make([]string, n)
	for i := range ids {
		out := x.gateway.Send(x.Context(), x.call(domain.OpCreate, charge(goodCard), ""))
		require.Equal(x, payments.Executed, out.Class, describe(out))
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

func createdWindow(x *exam) {
	older := x.createIntents(2)
	boundary := x.Sim.Advance(time.Hour)
	newer := x.createIntents(2)
	x.Sim.Advance(time.Hour)

	all, err := x.gateway.IntentsCreated(x.Context(), boundary.Add(-2*time.Hour), x.Sim.Now())
	require.NoError(x, err)
	require.Equal(x, append(newer, older...), ids(all))
	first, err := x.gateway.IntentsCreated(x.Context(), boundary.Add(-2*time.Hour), boundary.Add(-time.Minute))
	require.NoError(x, err)
	require.Equal(x, older, ids(first))
	none, err := x.gateway.IntentsCreated(x.Context(), boundary.Add(30*time.Minute), x.Sim.Now())
	require.NoError(x, err)
	require.Empty(x, none)
}

// window is around all that the bench has made.
func (x *exam) window() (from, to time.Time) {
	return x.Sim.Now().Add(-time.Hour), x.Sim.Now().Add(time.Hour)
}

func allPages(x *exam) {
	want := x.createIntents(201) // three pages of a hundred
	from, to := x.window()
	got, err := x.gateway.IntentsCreated(x.Context(), from, to)
	require.NoError(x, err)
	require.Equal(x, want, ids(got))
}

func pageFails(x *exam, fault string) {
	x.Helper()
	x.createIntents(101)
	x.Sim.AddFault(stripesim.Fault{Fault: fault, Operation: "payment_intents.list", Nth: 2, Times: -1})
	from, to := x.window()
	got, err := x.gateway.IntentsCreated(x.Context(), from, to)
	require.Error(x, err)
	require.Nil(x, got)
}

func readAbandoned(x *exam) {
	call := x.prepare(domain.OpConfirm, goodCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "hang_after", Operation: "payment_intents.retrieve", Times: -1})
	before := len(x.Sim.Journal(0))
	ctx := x.until(func() bool { return len(x.Sim.Journal(0)) > before })
	_, err := x.gateway.Intent(ctx, call.IntentID)
	require.ErrorIs(x, err, context.Canceled)
	require.NotErrorIs(x, err, payments.ErrNoIntent)
}

func readRetries(x *exam) {
	call := x.prepare(domain.OpConfirm, goodCard)
	x.Sim.AddFault(stripesim.Fault{Fault: "error_503", Operation: "payment_intents.retrieve"})
	intent, err := x.gateway.Intent(x.Context(), call.IntentID)
	require.NoError(x, err)
	require.Equal(x, call.IntentID, intent.ID)
}

func readFails(x *exam, fault stripesim.Fault) {
	x.Helper()
	call := x.prepare(domain.OpConfirm, goodCard)
	require.Equal(x, payments.Executed, x.gateway.Send(x.Context(), call).Class)
	x.Sim.AddFault(fault)
	from, to := x.window()

	_, err := x.gateway.Intent(x.Context(), call.IntentID)
	require.Error(x, err)
	require.NotErrorIs(x, err, payments.ErrNoIntent)
	_, err = x.gateway.Action(x.Context(), call.IntentID)
	require.Error(x, err)
	require.NotErrorIs(x, err, payments.ErrNoAction)
	charges, err := x.gateway.Charges(x.Context(), call.IntentID)
	require.Error(x, err)
	require.Nil(x, charges)
	intents, err := x.gateway.IntentsCreated(x.Context(), from, to)
	require.Error(x, err)
	require.Nil(x, intents)
}

func readAction(x *exam) {
	call := x.prepare(domain.OpConfirm, actionCard)
	_, err := x.gateway.Action(x.Context(), call.IntentID)
	require.ErrorIs(x, err, payments.ErrNoAction)
	for name, value := range map[string]string{"": "", "return_url": "https://shop.example/paid"} {
		call := x.prepare(domain.OpConfirm, actionCard)
		want := payments.ActionSDK
		if name != "" {
			call.Params[name], want = value, payments.ActionRedirect
		}
		out := x.gateway.Send(x.Context(), call)
		require.Equal(x, payments.Executed, out.Class, describe(out))
		next, err := x.gateway.Action(x.Context(), call.IntentID)
		require.NoError(x, err)
		require.Equal(x, want, next.Type)
		require.Equal(x, name != "", next.URL != "")
		require.Contains(x, next.ClientSecret.Reveal(), call.IntentID+"_secret_")
	}
}
