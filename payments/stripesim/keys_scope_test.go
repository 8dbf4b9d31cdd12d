package stripesim_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// A key means something in the account, whichever of its API keys is used, and to writes alone.
func TestWhereAKeyMeansSomething(t *testing.T) {
	t.Parallel()
	const path = "/v1/payment_intents"
	t.Run("in the account, not to an API key", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		first := b.as(t, "sk_test_one", http.MethodPost, path, "k", cardIntent)
		second := b.as(t, "rk_test_two", http.MethodPost, path, "k", cardIntent)
		require.Equal(t, "true", second.header.Get("Idempotent-Replayed"))
		require.Equal(t, first.id(), second.id())
	})
	t.Run("not to reads", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := b.create(t, "pm_card_visa")
		for _, want := range []string{"requires_confirmation", "succeeded"} {
			r := b.as(t, "sk_test_x", http.MethodGet, intentPath(id, ""), "k", "")
			require.Equal(t, want, r.body["status"], "a read under a key is a read")
			require.Empty(t, r.header.Get("Idempotent-Replayed"))
			b.confirm(t, id, "k") // nor has the read taken the key
		}
		require.Equal(t, []string{"succeeded"}, b.charges())
	})
	t.Run("not to whom the account does not know", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		require.Equal(t, http.StatusUnauthorized, b.as(t, "nonsense", http.MethodPost, path, "k", cardIntent).status)
		require.Equal(t, http.StatusOK, b.post(t, path, "k", cardIntent+"&description=other").status, "the key is free")
	})
}

func TestAMismatchEchoesTheKeyAndRunsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.post(t, "/v1/payment_intents", "the-key", cardIntent)
	r := b.post(t, "/v1/payment_intents", "the-key", cardIntent+"&description=other")
	require.Equal(t, http.StatusBadRequest, r.status)
	require.Contains(t, r.errorField("message"), "the-key")
	require.Len(t, b.Ledger().Executions, 1)
	require.Len(t, ids(b.get(t, "/v1/payment_intents")), 1)
}

// The control surface's clock makes keys forgotten, from outside the process, and to the very end of their day.
func TestTheClockForgetsKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	require.Equal(t, http.StatusOK, b.confirm(t, id, "k").status)
	advance := func(by string) {
		t.Helper()
		require.Equal(t, http.StatusOK, b.control(t, http.MethodPost, "/_sim/clock", map[string]string{"advance": by}, nil))
	}
	advance("23h59m")
	require.Equal(t, "true", b.confirm(t, id, "k").header.Get("Idempotent-Replayed"))
	advance("2m")
	fresh := b.confirm(t, id, "k")
	require.Equal(t, "payment_intent_unexpected_state", fresh.errorField("code"), "executed anew: the intent guards the money")
	require.Equal(t, fresh.header.Get("Request-Id"), fresh.header.Get("Original-Request"))
	require.Equal(t, []string{"succeeded"}, b.charges())
	require.NoError(t, b.Ledger().Check())
}

// A day may pass while a request is being worked on: its key is not forgotten, or two would run at once.
func TestAKeyInFlightIsNeverForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "delay", DelayMS: 60_000})
	var first sync.WaitGroup
	first.Go(func() { b.send(t.Context(), http.MethodPost, intentPath(id, "confirm"), "k", "") })
	eventually(t, func() bool { return len(b.confirms()) == 1 && b.confirms()[0].Fault == "delay" }, "the first is being worked on")
	eventually(t, func() bool { return b.confirm(t, id, "k").status == http.StatusConflict }, "in flight")
	b.Advance(48 * time.Hour)
	require.Equal(t, http.StatusConflict, b.confirm(t, id, "k").status)
	b.Reset()
	first.Wait()
}

// A refusal of a re-send says nothing about the first send, and takes nothing from what its key remembers.
func TestARefusedResendLeavesTheMemory(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"unauthorized_401", "rate_limit_429", "lock_timeout_429", "in_use_409", "error_503", "html_502", "reset_before"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create(t, "pm_card_visa")
			b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Nth: 2, Fault: fault})
			require.Equal(t, http.StatusOK, b.confirm(t, id, "k").status)
			require.NotEqual(t, http.StatusOK, b.confirm(t, id, "k").status)
			require.False(t, b.confirms()[1].Executed)
			again := b.confirm(t, id, "k")
			require.Equal(t, "succeeded", again.body["status"])
			require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
			require.NoError(t, b.Ledger().Check())
		})
	}
}

// A fault that changes how a request executes has nothing to change in a replay, and is spent on it.
func TestAReplayExecutesNothing(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"error_500_before", "error_500_after", "partial_500", "slow", "delay"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create(t, "pm_card_visa")
			require.Equal(t, http.StatusOK, b.confirm(t, id, "k").status)
			b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: fault, DelayMS: 60_000})
			again := b.confirm(t, id, "k")
			require.Equal(t, http.StatusOK, again.status, again.raw)
			require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
			require.Empty(t, b.confirms()[1].Fault)
			require.Empty(t, b.Faults())
			require.Equal(t, []string{"succeeded"}, b.charges())
		})
	}
}
