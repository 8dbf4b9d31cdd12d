package stripesim_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

func TestAKeyAnswersTheSameForItsWholeLife(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, method string
		status       int
		prepare      func(t *testing.T, b *testBundle, id string)
	}{
		{"success", "pm_card_visa", http.StatusOK, nil},
		{"decline", "pm_card_chargeDeclined", http.StatusPaymentRequired, nil},
		{"executed 400", "pm_card_visa", http.StatusBadRequest, func(t *testing.T, b *testBundle, id string) {
			t.Helper()
			b.post(t, "/v1/payment_intents/"+id+"/cancel", "cancel", "")
		}},
		{"500", "pm_card_visa", http.StatusInternalServerError, func(t *testing.T, b *testBundle, _ string) {
			t.Helper()
			b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_500_after"})
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create(t, tc.method)
			if tc.prepare != nil {
				tc.prepare(t, b, id)
			}
			first := b.confirm(t, id, "k")
			again := b.confirm(t, id, "k")
			require.Equal(t, tc.status, first.status, first.raw)
			require.Equal(t, tc.status, again.status)
			require.Equal(t, first.raw, again.raw)

			require.Empty(t, first.header.Get("Idempotent-Replayed"))
			require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
			require.NotEqual(t, first.header.Get("Request-Id"), again.header.Get("Request-Id"))
			require.Equal(t, first.header.Get("Request-Id"), first.header.Get("Original-Request"))
			require.Equal(t, first.header.Get("Request-Id"), again.header.Get("Original-Request"))
			require.Equal(t, "k", again.header.Get("Idempotency-Key"))

			sends := b.confirms()
			require.Equal(t, []bool{true, false}, []bool{sends[0].Executed, sends[1].Executed})
			require.Equal(t, []bool{false, true}, []bool{sends[0].Replayed, sends[1].Replayed})
			require.NoError(t, b.Ledger().Check())
		})
	}
}

func TestARefusedRequestLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.post(t, "/v1/payment_intents", "k", "amount=0&currency=eur&payment_method_types[]=card")
	require.Equal(t, http.StatusBadRequest, r.status)
	require.False(t, b.Journal(0)[0].Executed)
	r = b.post(t, "/v1/payment_intents", "k", cardIntent)
	require.Equal(t, http.StatusOK, r.status, "the same key with corrected parameters")
	require.Empty(t, r.header.Get("Idempotent-Replayed"))
}

func TestAKeyBelongsToItsParametersAndEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	require.Equal(t, http.StatusOK, b.post(t, "/v1/payment_intents/"+id, "k", "metadata[a]=1&metadata[b]=2").status)
	reordered := b.post(t, "/v1/payment_intents/"+id, "k", "metadata[b]=2&metadata%5Ba%5D=1")
	require.Equal(t, "true", reordered.header.Get("Idempotent-Replayed"), "parameters are compared parsed")

	for _, r := range []response{
		b.post(t, "/v1/payment_intents/"+id, "k", "metadata[a]=2"),
		b.post(t, "/v1/payment_intents/"+id+"/confirm", "k", ""),
	} {
		require.Equal(t, http.StatusBadRequest, r.status)
		require.Equal(t, "idempotency_error", r.errorField("type"))
		require.Nil(t, r.errorField("code"))
		require.Nil(t, r.errorField("param"))
	}
	require.Empty(t, b.charges())
}

func TestAForgottenKeyExecutesAsNew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.post(t, "/v1/payment_intents", "k", cardIntent)
	b.Advance(24*time.Hour - time.Minute)
	require.Equal(t, first.id(), b.post(t, "/v1/payment_intents", "k", cardIntent).id())
	b.Advance(2 * time.Minute)
	fresh := b.post(t, "/v1/payment_intents", "k", cardIntent)
	require.NotEqual(t, first.id(), fresh.id())
	require.Empty(t, fresh.header.Get("Idempotent-Replayed"))
	require.NoError(t, b.Ledger().Check(), "outside its retention a key may run again")
}

func TestOfManyConcurrentSendsOneExecutes(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *stripesim.Config) { c.LockWait = 10 * time.Second })
	id := b.create(t, "pm_card_visa")
	for name, key := range map[string]func(i int) string{
		"one key":   func(int) string { return "one" },
		"many keys": func(i int) string { return strings.Repeat("k", i+1) },
	} {
		var sends sync.WaitGroup
		for i := range 20 {
			sends.Go(func() {
				r := b.send(t.Context(), http.MethodPost, "/v1/payment_intents/"+id+"/confirm", key(i), "")
				if r.err != nil {
					t.Errorf("%s: %v", name, r.err)
				}
			})
		}
		sends.Wait()
	}
	require.Equal(t, []string{"succeeded"}, b.charges())
	require.NoError(t, b.Ledger().Check())
}

func TestAKeyInFlightIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "delay", DelayMS: 60_000})
	var first sync.WaitGroup
	first.Go(func() { b.send(t.Context(), http.MethodPost, "/v1/payment_intents/"+id+"/confirm", "k", "") })
	eventually(t, func() bool { return len(b.confirms()) == 1 && b.confirms()[0].Fault == "delay" }, "the first is being worked on")

	busy := func() bool {
		r := b.post(t, "/v1/payment_intents/"+id+"/cancel", "other", "")
		return r.status == http.StatusTooManyRequests && r.errorField("code") == "lock_timeout"
	}
	eventually(t, busy, "another key finds the intent busy")
	again := b.confirm(t, id, "k")
	require.Equal(t, http.StatusConflict, again.status)
	require.Equal(t, "idempotency_key_in_use", again.errorField("code"))
	require.Empty(t, again.header.Get("Idempotent-Replayed"))

	b.Reset() // ends the held request
	first.Wait()
	require.Empty(t, b.charges())
}

func TestAKeylessWriteExecutesEveryTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.post(t, "/v1/payment_intents", "", cardIntent), b.post(t, "/v1/payment_intents", "", cardIntent)
	require.NotEqual(t, first.id(), second.id())
	require.Empty(t, first.header.Get("Original-Request"))
	require.ErrorContains(t, b.Ledger().Check(), "without an idempotency key")
}

func TestAKeyIsAtMost255Long(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, http.StatusBadRequest, b.post(t, "/v1/payment_intents", strings.Repeat("k", 256), cardIntent).status)
	require.Equal(t, http.StatusOK, b.post(t, "/v1/payment_intents", strings.Repeat("k", 255), cardIntent).status)
}
