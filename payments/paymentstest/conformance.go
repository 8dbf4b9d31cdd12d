package paymentstest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// Bench is a provider's account and ways to it.
type Bench struct {
	// New returns a gateway to the account. It shares no connection with the others.
	New func(t *testing.T) payments.Gateway
	// Sim is the simulator behind the account. Nil means the provider itself: claims that need faults, the journal or the
	// ledger are skipped.
	Sim *stripesim.Server
}

// Conformance runs the suite. It asks newBench for a bench per subtest, and runs them in parallel.
func Conformance(t *testing.T, newBench func(t *testing.T) Bench) {
	t.Helper()
	groups := []struct {
		name   string
		claims func() []claim
	}{{"protocol", protocol}, {"fault", faults}, {"in flight", inFlight}, {"kept alive", reused}, {"read", reads}, {"refund", refunds}, {"dispute", disputes}}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.claims() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					if b.Sim == nil && c.simulated {
						t.Skip("needs the simulator")
					}
					c.prove(&exam{T: t, Bench: b, gateway: b.New(t)})
					if b.Sim != nil {
						require.NoError(t, b.Sim.Ledger().Check())
					}
				})
			}
		})
	}
}

// claim is one statement about every gateway.
type claim struct {
	name      string
	simulated bool // needs the simulator
	prove     func(x *exam)
}

// exam is one claim's test, its bench and a gateway to it.
type exam struct {
	*testing.T
	Bench

	gateway payments.Gateway
}

// The test cards. The provider answers with an id of its own for each.
const (
	goodCard     = "pm_card_visa"
	declinedCard = "pm_card_chargeDeclinedInsufficientFunds"
	actionCard   = "pm_card_threeDSecure2Required"
)

func charge(card string) payments.Charge {
	return payments.Charge{
		BookingID:     domain.NewID[domain.BookingID](),
		PaymentID:     domain.NewID[domain.PaymentID](),
		Total:         domain.Money{Amount: 4200, Currency: "EUR"},
		PaymentMethod: card,
	}
}

// call freezes a send as the protocol would.
func (x *exam) call(op domain.Operation, c payments.Charge, intentID string) payments.Call {
	return payments.Call{
		Operation: op, IntentID: intentID, Key: domain.ProviderKey(c.PaymentID, op, 1), Params: x.gateway.Freeze(op, c),
	}
}

// prepare makes what the operation needs and returns its call.
func (x *exam) prepare(op domain.Operation, card string) payments.Call {
	x.Helper()
	c := charge(card)
	if op == domain.OpCreate {
		return x.call(op, c, "")
	}
	created := x.gateway.Send(x.Context(), x.call(domain.OpCreate, c, ""))
	require.Equal(x, payments.Executed, created.Class, created.Detail)
	return x.call(op, c, created.Intent.ID)
}

// journal returns the provider's record of the sends of one key.
func (x *exam) journal(key string) []stripesim.JournalEntry {
	var sends []stripesim.JournalEntry
	for _, e := range x.Sim.Journal(0) {
		if e.IdempotencyKey == key {
			sends = append(sends, e)
		}
	}
	return sends
}

// executions counts how often a key ran.
func (x *exam) executions(key string) int {
	n := 0
	for _, e := range x.Sim.Ledger().Executions {
		if e.Key == key {
			n++
		}
	}
	return n
}

// requireSends demands that the key was sent so often, each time the same.
func (x *exam) requireSends(key string, n int) {
	x.Helper()
	sends := x.journal(key)
	require.Len(x, sends, n)
	for _, e := range sends {
		require.Equal(x, sends[0].ParamsSHA256, e.ParamsSHA256, "every send of a key has the same parameters")
		require.Equal(x, sends[0].Path, e.Path)
	}
}

// until returns a context that ends as soon as the condition holds.
func (x *exam) until(holds func() bool) context.Context {
	ctx, cancel := context.WithCancel(x.Context())
	x.Cleanup(cancel)
	go func() {
		defer cancel()
		wait(ctx, holds)
	}()
	return ctx
}

// wait returns when the condition holds, or ctx ends, or it has taken far too long.
func wait(ctx context.Context, holds func() bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func describe(o payments.Outcome) string { return fmt.Sprintf("%s: %+v", o.Class, o) }
