package payments_test

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

// sweep makes the sweep due and does it.
func (b *bed) sweep(p *payments.Payments) {
	b.Helper()
	b.exec(`UPDATE provider_events_sweep SET due_at = clock_timestamp()`)
	worked, err := p.SweepEvents(b.ctx)
	require.NoError(b, err)
	require.True(b, worked)
}

// beginSweeps lets the first sweep's cursor be where it is now.
func (b *bed) beginSweeps(p *payments.Payments) {
	b.Helper()
	worked, err := p.SweepEvents(b.ctx)
	require.NoError(b, err)
	require.False(b, worked, "the first sweep is due an interval later")
}

// Incident 23 (G5): no webhook arrives, ever, and nobody polls. Expected: the provider's own list of events brings every
// state to its end, and says that no webhook did.
func TestIncident23_WithEveryWebhookDroppedAllConverges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.Poll, b.config.SweepLag, b.config.Meter = time.Hour, time.Millisecond, payments.NewMeter()
	p := b.engine()
	b.beginSweeps(p)
	act := func(action, outcome string, id domain.BookingID) {
		_, err := b.sim.Act(stripesim.Action{Action: action, PaymentIntent: b.intent(id), Outcome: outcome})
		require.NoError(t, err)
	}
	passed, failed := b.book("pm_card_authenticationRequired"), b.book("pm_card_authenticationRequired")
	slow, refused := b.book("pm_sim_processing"), b.book("pm_sim_processing")
	paid := b.book("pm_card_visa")
	for _, id := range []domain.BookingID{passed, failed, slow, refused, paid} {
		b.work(p, id, domain.EffectCharge)
	}
	act("authenticate", "", passed)
	act("fail_authentication", "", failed)
	act("settle_processing", "", slow)
	act("settle_processing", "failed", refused)
	b.sweep(p)
	b.settleEvents(p)
	for id, want := range map[domain.BookingID][]any{
		passed: {"confirmed", "succeeded"}, slow: {"confirmed", "succeeded"}, paid: {"confirmed", "succeeded"},
		failed: {"held", "declined"}, refused: {"held", "declined"},
	} {
		booking, payment, _ := b.statuses(id)
		require.Equal(t, want, []any{booking, payment}, b.tale(id))
	}
	require.Positive(t, b.counted("holdfast_provider_events_stored_total", "payment_intent.succeeded", "sweep"))

	var before, after int
	b.scan(`SELECT count(*) FROM provider_events`, &before)
	b.sweep(p) // the overlap is read again
	b.scan(`SELECT count(*) FROM provider_events`, &after)
	require.Equal(t, before, after)
	b.scan(`SELECT count(*) FROM provider_events WHERE status = 'pending'`, &after)
	require.Zero(t, after)
}

// paged is a provider with many events, in pages of two.
type paged struct {
	payments.Gateway
	total  int
	fail   map[int]error // by number of the call, from 1
	calls  int
	window []time.Time
}

func (g *paged) Events(_ context.Context, _ []string, from, to time.Time, after string) ([]payments.Event, bool, error) {
	g.calls++
	g.window = []time.Time{from, to}
	if err := g.fail[g.calls]; err != nil {
		return nil, false, err
	}
	next := 0
	if after != "" {
		if _, err := fmt.Sscanf(after, "evt_%d", &next); err != nil {
			return nil, false, err
		}
		next++
	}
	var page []payments.Event
	for n := next; n < min(next+2, g.total); n++ {
		page = append(page, payments.Event{ID: fmt.Sprintf("evt_%03d", n), Type: "payment_intent.succeeded", Created: to})
	}
	return page, next+2 < g.total, nil
}

// The read budget (G5): ten pages a run, and the next run goes on where that one stopped. Until the window is read whole
// the cursor stays, whatever happens: a page that fails, a provider that has forgotten where we were. Expected: each event
// once, none missing.
func TestSweep_AnIncompleteWindowKeepsTheCursor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gateway := &paged{Gateway: b.gateway, total: 45, fail: map[int]error{13: errors.New("no answer"), 15: payments.ErrNoSuchEvent}}
	p := b.engineOn(gateway)
	b.beginSweeps(p)
	var cursor, now time.Time
	b.scan(`SELECT swept_to FROM provider_events_sweep`, &cursor)
	stored := func() (n int) {
		b.scan(`SELECT count(*) FROM provider_events WHERE via = 'sweep'`, &n)
		return n
	}
	for _, step := range []struct{ calls, stored int }{
		{10, 20}, // the budget
		{13, 24}, // the third page fails
		{15, 26}, // the provider does not know where we were: from the beginning
		{25, 26},
		{35, 40},
	} {
		b.sweep(p)
		require.Equal(t, step.calls, gateway.calls)
		require.Equal(t, step.stored, stored())
		b.scan(`SELECT swept_to FROM provider_events_sweep`, &now)
		require.Equal(t, cursor, now, "the cursor moved")
	}
	window := gateway.window
	b.sweep(p)
	require.Equal(t, window, gateway.window, "one window is walked to its end")
	require.Equal(t, 45, stored())
	b.scan(`SELECT swept_to FROM provider_events_sweep`, &now)
	require.Equal(t, window[1].UTC(), now.UTC())

	worked, err := p.SweepEvents(b.ctx)
	require.NoError(t, err)
	require.False(t, worked, "the next one is due an interval later")
	b.sweep(p)
	require.Equal(t, now.Add(-10*time.Minute).UTC(), gateway.window[0].UTC(), "it overlaps")
}
