package stripesim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/payments/stripesim"
)

// Many clients send anything at a few intents, with anything going wrong: the promises hold all the same.
func TestNoSequenceOfFaultsChargesTwice(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	b := setup(t)
	faults := []string{
		"reset_before", "reset_after", "hang_after", "slow", "delay", "error_500_before", "error_500_after", "partial_500",
		"error_503", "error_503_after", "bad_body", "in_use_409", "lock_timeout_429",
	}
	intents := make([]string, 3)
	for i := range intents {
		intents[i] = b.create(t, "pm_card_visa", fmt.Sprintf("description=%d", i), fmt.Sprintf("metadata[booking_id]=b%d", i))
	}
	var clients sync.WaitGroup
	for client := range 8 {
		random := rand.New(rand.NewPCG(seed, uint64(client)))
		clients.Go(func() {
			for range 40 {
				id := intents[random.IntN(len(intents))]
				key := fmt.Sprintf("%s:%d", id, random.IntN(12))
				ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
				switch random.IntN(10) {
				case 0:
					b.send(ctx, http.MethodPost, "/v1/payment_intents/"+id+"/cancel", key+":cancel", "")
				case 1, 2:
					cards := []string{"pm_card_visa", "pm_card_chargeDeclined", "pm_card_threeDSecure2Required"}
					card := cards[random.IntN(len(cards))]
					b.send(ctx, http.MethodPost, "/v1/payment_intents/"+id, key+":update", "payment_method="+card)
				case 3:
					_, _ = b.Act(stripesim.Action{Action: "customer_confirm", PaymentIntent: id})
				case 4:
					_, _ = b.Act(stripesim.Action{Action: "authenticate", PaymentIntent: id})
				case 5:
					b.Advance(time.Duration(random.IntN(10)) * time.Hour)
				default:
					b.AddFault(stripesim.Fault{KeyMatch: ":", Fault: faults[random.IntN(len(faults))], DelayMS: random.IntN(30)})
					b.send(ctx, http.MethodPost, "/v1/payment_intents/"+id+"/confirm", key+":confirm", "")
				}
				leave()
			}
		})
	}
	clients.Wait()
	b.Advance(time.Hour) // whatever is half-done goes through
	require.NoError(t, b.Ledger().Check())
}
