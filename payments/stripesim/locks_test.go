package stripesim_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// The lock is of one object, and keeps off writes alone.
func TestALockKeepsOffWritesOfItsObjectAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.create(t, "pm_card_visa", "description=other")
	b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "delay", DelayMS: 60_000, KeyMatch: "held"})
	id := b.create(t, "pm_card_visa")
	var confirm sync.WaitGroup
	confirm.Go(func() { b.send(t.Context(), http.MethodPost, intentPath(id, "confirm"), "held", "") })
	eventually(t, func() bool { return len(b.confirms()) == 1 && b.confirms()[0].Fault == "delay" }, "the confirm is being worked on")

	for name, write := range map[string]string{"update": intentPath(id, ""), "confirm": intentPath(id, "confirm"), "cancel": intentPath(id, "cancel")} {
		eventually(t, func() bool {
			r := b.post(t, write, name, "")
			return r.status == http.StatusTooManyRequests && r.errorField("code") == "lock_timeout"
		}, name+" finds the intent busy")
	}
	require.Equal(t, "requires_confirmation", b.status(t, id), "a read does not wait")
	require.Equal(t, http.StatusOK, b.get(t, "/v1/charges?payment_intent="+id).status)
	require.Equal(t, "succeeded", b.confirm(t, other, "free").body["status"], "another intent is free")
	b.Reset()
	confirm.Wait()
}

// Who waits less than LockWait gets its turn, after the other has ended.
func TestAWaiterGetsItsTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *stripesim.Config) { c.LockWait = time.Minute })
	id := b.create(t, "pm_card_visa")
	b.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "delay", DelayMS: 100})
	var confirm sync.WaitGroup
	var confirmed response
	confirm.Go(func() { confirmed = b.send(t.Context(), http.MethodPost, intentPath(id, "confirm"), "k", "") })
	eventually(t, func() bool { return len(b.confirms()) == 1 && b.confirms()[0].Fault == "delay" }, "the confirm is being worked on")
	fence := b.post(t, intentPath(id, "cancel"), "fence", "")
	confirm.Wait()
	require.Contains(t, []string{"succeeded", "canceled"}, b.status(t, id))
	if b.status(t, id) == "succeeded" { // but for a fence that was quicker than the confirm
		require.Equal(t, "payment_intent_unexpected_state", fence.errorField("code"), "it saw what the confirm had done")
		require.Equal(t, "succeeded", confirmed.body["status"])
	}
}
