package payments_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// view reads a booking as its owner does.
func (b *bed) view(id domain.BookingID) payments.View {
	b.Helper()
	v, err := payments.NewViewer(b.db.Pool).View(b.ctx, b.client, id)
	require.NoError(b, err)
	return v
}

// What the customer has to do is the provider's word of this moment, and nothing is asked of the provider where nobody
// has to act. Expected: before the charge, after the check and after the hold: none, and no read.
func TestActions_TellWhatTheProviderSaysNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	actions := payments.NewActions(b.gateway)
	none := func(id domain.BookingID, reads int) {
		t.Helper()
		before := b.sent("payment_intents.retrieve")
		_, err := actions.Next(b.ctx, b.view(id))
		require.ErrorIs(t, err, payments.ErrNoAction)
		require.Equal(t, reads, b.sent("payment_intents.retrieve")-before)
	}
	passed, abandoned := b.book("pm_card_threeDSecure2Required"), b.book("pm_card_threeDSecure2Required")
	none(passed, 0)
	for _, id := range []domain.BookingID{passed, abandoned} {
		b.work(b.engine(), id, domain.EffectCharge)
		next, err := actions.Next(b.ctx, b.view(id))
		require.NoError(t, err)
		require.Equal(t, payments.ActionSDK, next.Type)
		require.Contains(t, next.ClientSecret.Reveal(), b.intent(id)+"_secret_")
	}
	b.act("authenticate", passed)
	none(passed, 1) // nobody has noticed yet
	b.watch()
	none(passed, 0)
	b.expire(abandoned)
	worked, err := b.engine().SweepHold(b.ctx)
	require.NoError(t, err)
	require.True(t, worked)
	none(abandoned, 0)
}

// A provider that does not answer keeps nobody waiting for long (G5). Expected: one try, and then "not in time", with
// nothing secret in it.
func TestActions_AProviderThatHangs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	id := b.book("pm_card_threeDSecure2Required")
	b.work(b.engine(), id, domain.EffectCharge)
	for _, fault := range []string{"hang_after", "error_503", "reset_before", "unauthorized_401"} {
		armed := b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.retrieve", Fault: fault, Times: -1})
		_, err := payments.NewActions(b.gateway).Next(b.ctx, b.view(id))
		require.ErrorIs(t, err, payments.ErrActionUnknown, fault)
		require.NotContains(t, err.Error(), "_secret_")
		require.True(t, b.sim.RemoveFault(armed))
		_, err = payments.NewActions(b.gateway).Next(b.ctx, b.view(id))
		require.NoError(t, err, "the next one who asks is told")
	}
}

// hanging is a provider that answers nobody.
type hanging struct {
	mu          sync.Mutex
	asked, most int
}

func (h *hanging) Action(ctx context.Context, _ string) (payments.NextAction, error) {
	h.mu.Lock()
	h.asked++
	h.most = max(h.most, h.asked)
	h.mu.Unlock()
	<-ctx.Done()
	h.mu.Lock()
	h.asked--
	h.mu.Unlock()
	return payments.NextAction{}, ctx.Err()
}

// However many look at once, each has an answer within three seconds, and the provider is asked by a few at a time: those
// who look never use up what those who charge need.
func TestActions_ManyAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_threeDSecure2Required")
	b.work(b.engine(), id, domain.EffectCharge)
	v := b.view(id)
	synctest.Test(t, func(t *testing.T) {
		provider := &hanging{}
		actions := payments.NewActions(provider)
		began := time.Now()
		together(100, func(int) {
			_, err := actions.Next(t.Context(), v)
			require.ErrorIs(t, err, payments.ErrActionUnknown)
		})
		require.Less(t, time.Since(began), 3*time.Second)
		require.Equal(t, 16, provider.most)
		require.Zero(t, provider.asked)
	})
}

// The return URL is frozen with its confirm (G3): a deployment that sets another, or none, sends what was recorded again.
// Expected: two sends of one key with equal parameters, and the customer is sent to the bank's page; a new booking takes
// the new setting.
func TestCharge_TheReturnURLIsFrozen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.gatewayTo("https://shop.example/before")
	id := b.book("pm_card_threeDSecure2Required")
	b.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_503"})
	p := b.engineOn(before)
	b.runOnceCharge(p, id) // creates, and loses its confirm
	require.Equal(t, 1, b.sent("payment_intents.confirm"), b.tale(id))
	b.work(b.engine(), id, domain.EffectCharge) // no return URL
	_, payment, _ := b.statuses(id)
	require.Equal(t, "requires_action", payment, b.tale(id))
	sums := map[string]bool{}
	for _, e := range b.sim.Journal(0) {
		if e.Operation == "payment_intents.confirm" {
			sums[e.ParamsSHA256] = true
		}
	}
	require.Equal(t, 2, b.sent("payment_intents.confirm"))
	require.Len(t, sums, 1)
	next, err := payments.NewActions(b.gateway).Next(b.ctx, b.view(id))
	require.NoError(t, err)
	require.Equal(t, payments.ActionRedirect, next.Type)
	require.NotEmpty(t, next.URL)

	later := b.book("pm_card_threeDSecure2Required")
	b.work(b.engine(), later, domain.EffectCharge)
	next, err = payments.NewActions(b.gateway).Next(b.ctx, b.view(later))
	require.NoError(t, err)
	require.Equal(t, payments.ActionSDK, next.Type)
}
