package stripesim_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// Each fault on a confirm: what the client gets, whether it was executed, and what the same key gets afterwards.
func TestFaultsOnConfirm(t *testing.T) {
	t.Parallel()
	const none = 0 // no answer at all
	cases := []struct {
		fault    stripesim.Fault
		status   int
		executed bool
		again    int  // the status of a re-send
		replayed bool // whether the re-send is a replay
		code     any
	}{
		{fault: stripesim.Fault{Fault: "reset_before"}, status: none, again: 200},
		{fault: stripesim.Fault{Fault: "reset_after"}, status: none, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "error_500_before"}, status: 500, again: 500, replayed: true},
		{fault: stripesim.Fault{Fault: "error_500_after"}, status: 500, executed: true, again: 500, replayed: true},
		{fault: stripesim.Fault{Fault: "error_424"}, status: 424, again: 200},
		{fault: stripesim.Fault{Fault: "error_502"}, status: 502, again: 200},
		{fault: stripesim.Fault{Fault: "error_503"}, status: 503, again: 200},
		{fault: stripesim.Fault{Fault: "error_504"}, status: 504, again: 200},
		{fault: stripesim.Fault{Fault: "error_424_after"}, status: 424, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "error_502_after"}, status: 502, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "error_503_after"}, status: 503, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "error_504_after"}, status: 504, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "html_502"}, status: 502, again: 200},
		{fault: stripesim.Fault{Fault: "html_502_after"}, status: 502, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "bad_body"}, status: 200, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "bad_body", Body: "empty"}, status: 200, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "bad_body", Body: "truncated"}, status: 200, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "bad_body", Body: "no_error"}, status: 500, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "in_use_409"}, status: 409, again: 200, code: "idempotency_key_in_use"},
		{fault: stripesim.Fault{Fault: "lock_timeout_429"}, status: 429, again: 200, code: "lock_timeout"},
		{fault: stripesim.Fault{Fault: "rate_limit_429"}, status: 429, again: 200, code: "rate_limit"},
		{fault: stripesim.Fault{Fault: "unauthorized_401"}, status: 401, again: 200},
		{fault: stripesim.Fault{Fault: "delay", DelayMS: 20}, status: 200, executed: true, again: 200, replayed: true},
		{fault: stripesim.Fault{Fault: "hang_after", DelayMS: 20}, status: 200, executed: true, again: 200, replayed: true},
	}
	for _, tc := range cases {
		t.Run(tc.fault.Fault+tc.fault.Body, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create(t, "pm_card_visa")
			tc.fault.Operation = "payment_intents.confirm"
			b.AddFault(tc.fault)

			first := b.confirm(t, id, "k")
			require.Equal(t, tc.status, first.status)
			if tc.status == none {
				require.ErrorIs(t, first.err, syscall.ECONNRESET)
			}
			require.Equal(t, tc.code, first.errorField("code"))
			entry := b.confirms()[0]
			require.Equal(t, tc.fault.Fault, entry.Fault)
			require.Equal(t, tc.executed, entry.Executed)
			require.Equal(t, tc.status, entry.Status)
			require.False(t, entry.Open)
			if tc.executed {
				require.Equal(t, []string{"succeeded"}, b.charges())
			} else {
				require.Empty(t, b.charges())
			}

			again := b.confirm(t, id, "k")
			require.NoError(t, again.err)
			require.Equal(t, tc.again, again.status, again.raw)
			require.Equal(t, tc.replayed, b.confirms()[1].Replayed)
			require.Empty(t, b.confirms()[1].Fault)
			require.NoError(t, b.Ledger().Check())
			require.LessOrEqual(t, len(b.charges()), 1)
		})
	}
}

func TestHangAfterHoldsTheAnswerUntilTheClientLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "hang_after"})
	ctx, leave := context.WithCancel(t.Context())
	var client sync.WaitGroup
	client.Go(func() {
		if r := b.send(ctx, http.MethodPost, "/v1/payment_intents/"+id+"/confirm", "k", ""); r.err == nil {
			t.Error("the hanging request was answered")
		}
	})
	eventually(t, func() bool { return len(b.confirms()) == 1 && b.confirms()[0].Executed }, "executed")
	require.True(t, b.confirms()[0].Open)
	require.Equal(t, []string{"succeeded"}, b.charges())
	require.Equal(t, "succeeded", b.confirm(t, id, "k").body["status"], "nothing else hangs, the same key included")
	leave()
	client.Wait()
	eventually(t, func() bool { return !b.confirms()[0].Open }, "closed")
	require.Zero(t, b.confirms()[0].Status)
}

func TestCloseEndsWhatHangs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.AddFault(stripesim.Fault{Fault: "hang_after"})
	var client sync.WaitGroup
	client.Go(func() { b.send(t.Context(), http.MethodPost, "/v1/payment_intents", "k", cardIntent) })
	eventually(t, func() bool { return len(b.Journal(0)) == 1 && b.Journal(0)[0].Executed }, "executed")
	b.Simulator.Close()
	client.Wait()
}

func TestSlowExecutesAfterTheClientHasGone(t *testing.T) {
	t.Parallel()
	// arrive sends a confirm that is held back, and returns how its client leaves.
	arrive := func(t *testing.T, b *testBundle, id string) (leave func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		var client sync.WaitGroup
		client.Go(func() { b.send(ctx, http.MethodPost, "/v1/payment_intents/"+id+"/confirm", "k", "") })
		eventually(t, func() bool { return len(b.confirms()) == 1 && b.confirms()[0].Fault == "slow" }, "arrived")
		require.Equal(t, http.StatusConflict, b.confirm(t, id, "k").status, "the key is in flight")
		require.Empty(t, b.charges())
		return func() {
			cancel()
			client.Wait()
		}
	}
	t.Run("and charges behind its back", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := b.create(t, "pm_card_visa")
		const delay = 200 * time.Millisecond
		b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "slow", DelayMS: int(delay.Milliseconds())})
		began := time.Now()
		arrive(t, b, id)()
		eventually(t, func() bool { return b.status(t, id) == "succeeded" }, "charged")
		require.GreaterOrEqual(t, time.Since(began), delay)
		require.Equal(t, []string{"succeeded"}, b.charges())
		require.Equal(t, "true", b.confirm(t, id, "k").header.Get("Idempotent-Replayed"))
	})
	t.Run("and finds the fence", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		id := b.create(t, "pm_card_visa")
		b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "slow"})
		leave := arrive(t, b, id)
		require.Equal(t, "canceled", b.post(t, "/v1/payment_intents/"+id+"/cancel", "cancel", "").body["status"])
		leave()
		eventually(t, func() bool { return !b.confirms()[0].Open }, "executed at last")
		require.True(t, b.confirms()[0].Executed)
		require.Zero(t, b.confirms()[0].Status, "there was nobody left to tell")
		require.Empty(t, b.charges())
		again := b.confirm(t, id, "k")
		require.Equal(t, "payment_intent_unexpected_state", again.errorField("code"))
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"), "the refusal is the key's answer from now on")
	})
}

func TestPartial500RollsForward(t *testing.T) {
	t.Parallel()
	half := func(t *testing.T, delayMS int) (*testBundle, string) {
		t.Helper()
		b := setup(t)
		id := b.create(t, "pm_card_visa")
		b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "partial_500", DelayMS: delayMS})
		require.Equal(t, http.StatusInternalServerError, b.confirm(t, id, "k").status)
		return b, id
	}
	t.Run("when the clock moves", func(t *testing.T) {
		t.Parallel()
		b, id := half(t, 0)
		require.Equal(t, []string{"pending"}, b.charges())
		require.Equal(t, "requires_confirmation", b.status(t, id), "the intent does not show it")
		other := b.confirm(t, id, "k2")
		require.Equal(t, "lock_timeout", other.errorField("code"), "no second charge beside the pending one")
		b.Advance(time.Minute)
		require.Equal(t, "succeeded", b.status(t, id))
		require.Equal(t, []string{"succeeded"}, b.charges())
		require.Equal(t, http.StatusInternalServerError, b.confirm(t, id, "k").status, "the stored answer never changes")
		require.Equal(t, "payment_intent_unexpected_state", b.confirm(t, id, "k2").errorField("code"), "429 left the key free")
	})
	t.Run("by itself after delay_ms", func(t *testing.T) {
		t.Parallel()
		b, id := half(t, 20)
		eventually(t, func() bool { return b.status(t, id) == "succeeded" }, "rolled forward")
	})
	t.Run("or back", func(t *testing.T) {
		t.Parallel()
		b, id := half(t, 0)
		status, err := b.Act(stripesim.Action{Action: "roll_forward", PaymentIntent: id, Outcome: "failed"})
		require.NoError(t, err)
		require.Equal(t, "requires_payment_method", status)
		require.Equal(t, []string{"failed"}, b.charges())
	})
	t.Run("even after the intent was canceled", func(t *testing.T) {
		t.Parallel()
		b, id := half(t, 0)
		require.Equal(t, "canceled", b.post(t, "/v1/payment_intents/"+id+"/cancel", "cancel", "").body["status"])
		list := b.get(t, "/v1/charges?"+query("payment_intent", id))
		data, _ := list.body["data"].([]any)
		require.Len(t, data, 1, "the pending charge is listed: the cancel proves nothing yet")
		b.Advance(time.Minute)
		require.Equal(t, "canceled", b.status(t, id))
		require.Equal(t, []string{"succeeded"}, b.charges())
	})
}

func TestTheDialTrap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	transport := &http.Transport{} // keeps connections
	t.Cleanup(transport.CloseIdleConnections)
	b.client = &http.Client{Transport: b.inspect(t, transport)}
	b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after_reused", CloseListenerMS: 1500})

	require.Equal(t, "requires_confirmation", b.status(t, id)) // the connection is now a used one
	r := b.confirm(t, id, "k")
	var dial *net.OpError
	require.ErrorAs(t, r.err, &dial)
	require.Equal(t, "dial", dial.Op, "net/http sent again, and only its dial error came back")
	require.Equal(t, []string{"succeeded"}, b.charges(), "yet it was executed")
	eventually(t, func() bool { return b.confirm(t, id, "k").status == http.StatusOK }, "the address opens again")
}

func TestResetAfterReusedSparesAFreshConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "reset_after_reused"})
	require.Equal(t, http.StatusOK, b.confirm(t, id, "k").status)
	require.Len(t, b.Faults(), 1, "still armed")
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	t.Run("the whole address, at once", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.AddFault(stripesim.Fault{Operation: "*", Fault: "refuse", CloseListenerMS: 1500})
		r := b.post(t, "/v1/payment_intents", "k", cardIntent)
		require.ErrorIs(t, r.err, syscall.ECONNREFUSED)
		require.Empty(t, b.Journal(0))
		eventually(t, func() bool { return b.post(t, "/v1/payment_intents", "k", cardIntent).status == http.StatusOK }, "open again")
	})
	t.Run("from one request on", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.AddFault(stripesim.Fault{Operation: "payment_intents.create", Fault: "refuse", CloseListenerMS: 1500})
		require.ErrorIs(t, b.post(t, "/v1/payment_intents", "k", cardIntent).err, syscall.ECONNRESET)
		require.ErrorIs(t, b.post(t, "/v1/payment_intents", "k", cardIntent).err, syscall.ECONNREFUSED)
		require.False(t, b.Journal(0)[0].Executed)
		eventually(t, func() bool { return b.post(t, "/v1/payment_intents", "k", cardIntent).status == http.StatusOK }, "open again")
	})
}

func TestListFaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create(t, "pm_card_visa")
	b.AddFault(stripesim.Fault{Operation: "*", Nth: 2, Fault: "list_page_error"})
	b.AddFault(stripesim.Fault{Operation: "payment_intents.list", Nth: 3, Fault: "list_page_empty"})
	require.Equal(t, http.StatusOK, b.get(t, "/v1/payment_intents").status)
	require.Equal(t, http.StatusOK, b.get(t, "/v1/payment_intents/"+id).status, "no list, not counted")
	require.Equal(t, http.StatusInternalServerError, b.get(t, "/v1/payment_intents").status)
	empty := b.get(t, "/v1/payment_intents")
	require.Empty(t, empty.body["data"])
	require.Equal(t, false, empty.body["has_more"])
	require.Len(t, b.get(t, "/v1/payment_intents").body["data"], 1)
}

func TestAFaultCountsWhatMatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.AddFault(stripesim.Fault{KeyMatch: "order-7", Nth: 2, Times: 2, Fault: "error_503"})
	statuses := func(keys ...string) (got []int) {
		for _, key := range keys {
			got = append(got, b.post(t, "/v1/payment_intents", key, cardIntent).status)
		}
		return got
	}
	require.Equal(t, []int{200, 200, 503, 200, 503, 200}, statuses("order-7:a", "order-8:a", "order-7:b", "order-8:b", "order-7:b", "order-7:b"))
	require.Empty(t, b.Faults(), "spent")

	id := b.AddFault(stripesim.Fault{Operation: "payment_intents.*", KeyMatch: "hf:*:create:*", Times: -1, Fault: "rate_limit_429"})
	require.Equal(t, []int{429, 429, 200}, statuses("hf:1:create:1", "hf:1:create:1", "x-hf:1:create:1"))
	require.True(t, b.RemoveFault(id))
	require.Equal(t, []int{200}, statuses("hf:1:create:1"))
}

func TestShouldRetryAsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, told := range []bool{true, false} {
		b.AddFault(stripesim.Fault{Fault: "error_503", ShouldRetry: &told})
		r := b.post(t, "/v1/payment_intents", "k", cardIntent)
		require.Equal(t, map[bool]string{true: "true", false: "false"}[told], r.header.Get("Stripe-Should-Retry"))
	}
	b.AddFault(stripesim.Fault{Fault: "error_503"})
	require.Empty(t, b.post(t, "/v1/payment_intents", "k", cardIntent).header.Get("Stripe-Should-Retry"))
}

// A half body must look like a broken connection, and not like the end of the text.
func TestATruncatedBodyIsAReset(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.AddFault(stripesim.Fault{Fault: "bad_body", Body: "truncated"})
	r := b.post(t, "/v1/payment_intents", "k", cardIntent)
	require.True(t, errors.Is(r.err, io.ErrUnexpectedEOF) || errors.Is(r.err, syscall.ECONNRESET), "%v", r.err)
}

func TestFaultsWorkBehindAnyServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sim := stripesim.New(stripesim.Config{})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: sim, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { sim.Close(); _ = server.Close() })
	sim.AddFault(stripesim.Fault{Fault: "reset_after"})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, (&url.URL{
		Scheme: "http", Host: listener.Addr().String(), Path: "/v1/payment_intents",
	}).String(), strings.NewReader(cardIntent))
	require.NoError(t, err)
	req.SetBasicAuth("sk_test_simulator", "")
	req.Header.Set("Idempotency-Key", "k")
	require.ErrorIs(t, b.do(req).err, syscall.ECONNRESET)
	require.True(t, sim.Journal(0)[0].Executed)
}
