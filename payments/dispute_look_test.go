package payments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// paid books, pays, and returns the intent.
func (b *bed) paid(method string) (id domain.BookingID, intent string) {
	b.Helper()
	id = b.book(method)
	b.work(b.engine(), id, domain.EffectCharge)
	b.agree(id)
	return id, b.intent(id)
}

// dispute lets the bank do something about an intent.
func (b *bed) dispute(intent string, a stripesim.Action) {
	b.Helper()
	a.PaymentIntent = intent
	_, err := b.sim.Act(a)
	require.NoError(b, err)
}

// hearDisputes delivers everything that the provider has told of an intent's disputes so far, the newest first, and acts on it.
func (b *bed) hearDisputes(intent string) {
	b.Helper()
	for _, kind := range []string{"closed", "funds_reinstated", "funds_withdrawn", "updated", "created"} {
		for _, body := range b.told("charge.dispute."+kind, intent) {
			b.deliver(body)
		}
	}
	b.settleEvents(b.engine())
}

// disputed returns what was told of a booking's disputes, in order.
func (b *bed) disputed(id domain.BookingID) []domain.DisputeData {
	b.Helper()
	var raw []byte
	b.scan(`SELECT coalesce(jsonb_agg(payload -> 'dispute' ORDER BY event_seq), '[]') FROM outbox WHERE booking_id = $1 AND event_type = 'disputed'`, &raw, id)
	var told []domain.DisputeData
	require.NoError(b, json.Unmarshal(raw, &told))
	return told
}

func (b *bed) disputeStatuses(id domain.BookingID) []domain.DisputeStatus {
	b.Helper()
	var all []domain.DisputeStatus
	for _, t := range b.disputed(id) {
		all = append(all, t.Status)
	}
	return all
}

// shown is what the owner of a booking sees of its dispute, in a list and by itself.
func (b *bed) shown(id domain.BookingID) *domain.Dispute {
	b.Helper()
	w := payments.NewViewer(b.db.Pool)
	v, err := w.View(b.ctx, b.client, id)
	require.NoError(b, err)
	list, err := w.List(b.ctx, b.client, bookings.Filter{Limit: 100})
	require.NoError(b, err)
	require.Contains(b, list, v)
	return v.Payment.Dispute
}

// openReceipts counts the receipts that are neither settled nor could teach us nothing.
func (b *bed) openReceipts() (n int) {
	b.Helper()
	b.scan(`SELECT count(*) FROM provider_events WHERE status NOT IN ('settled', 'ignored')`, &n)
	return n
}

// Every life of a dispute, heard of step by step or all at once and backwards, is told once for each status that was seen, and
// what is left of the payment is what the provider would still give back (G6, G8).
func TestDispute_EveryLife(t *testing.T) {
	t.Parallel()
	open := stripesim.Action{Action: "open_dispute"}
	inquiry := stripesim.Action{Action: "open_dispute", Inquiry: true, Reason: "product_not_received"}
	part := stripesim.Action{Action: "open_dispute", Amount: 1000}
	closing := func(outcome string) stripesim.Action {
		return stripesim.Action{Action: "close_dispute", Outcome: outcome}
	}
	escalate := stripesim.Action{Action: "escalate_dispute"}
	type statuses = []domain.DisputeStatus
	for name, tt := range map[string]struct {
		acts []stripesim.Action
		told statuses
		left int64
	}{
		"won":                  {[]stripesim.Action{open, closing("won")}, statuses{"needs_response", "won"}, 2500},
		"lost":                 {[]stripesim.Action{open, closing("lost")}, statuses{"needs_response", "lost"}, 0},
		"open":                 {[]stripesim.Action{open}, statuses{"needs_response"}, 0},
		"lost in part":         {[]stripesim.Action{part, closing("lost")}, statuses{"needs_response", "lost"}, 1500},
		"an inquiry":           {[]stripesim.Action{inquiry}, statuses{"warning_needs_response"}, 2500},
		"an inquiry closed":    {[]stripesim.Action{inquiry, closing("")}, statuses{"warning_needs_response", "warning_closed"}, 2500},
		"an inquiry escalated": {[]stripesim.Action{inquiry, escalate, closing("lost")}, statuses{"warning_needs_response", "needs_response", "lost"}, 0},
		"won, then another":    {[]stripesim.Action{open, closing("won"), part, closing("lost")}, statuses{"needs_response", "won", "needs_response", "lost"}, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			stepwise, stepIntent := b.paid("pm_card_visa")
			atOnce, onceIntent := b.paid("pm_card_visa")
			for i, act := range tt.acts {
				b.dispute(stepIntent, act)
				b.hearDisputes(stepIntent)
				b.hearDisputes(stepIntent) // once more
				require.Equal(t, tt.told[:i+1], b.disputeStatuses(stepwise))
				b.dispute(onceIntent, act)
			}
			b.hearDisputes(onceIntent)
			b.settleEvents(b.engine())
			require.Zero(t, b.openReceipts())
			require.Equal(t, tt.told, b.disputeStatuses(stepwise))
			require.Equal(t, tt.told[len(tt.told)-1], b.disputeStatuses(atOnce)[len(b.disputeStatuses(atOnce))-1])
			for _, id := range []domain.BookingID{stepwise, atOnce} {
				b.agree(id)
				last := tt.told[len(tt.told)-1]
				balance := b.balance(id)
				require.Equal(t, tt.left, balance.Refundable, b.tale(id))
				require.Equal(t, last.Contests(), balance.Contested)
				shown, told := b.shown(id), b.disputed(id)
				require.Equal(t, last, shown.Status)
				require.Equal(t, last == domain.DisputeLost || last.Contests(), shown.Withdrawn, "where the money is")
				require.Equal(t, domain.DisputeData{DisputeID: shown.ID, Status: last, Amount: shown.Amount, Reason: shown.Reason}, told[len(told)-1])
				var opened, closed, late int
				require.NoError(t, b.db.Pool.QueryRow(b.ctx, `
					SELECT count(*) FILTER (WHERE opened_at > now() - interval '1 hour'), count(closed_at), count(*) FILTER (WHERE closed_at < opened_at)
					  FROM disputes d JOIN payments p ON p.id = d.payment_id WHERE p.booking_id = $1`, id).Scan(&opened, &closed, &late))
				require.Positive(t, opened)
				require.Zero(t, late)
				require.Equal(t, last.Final(), closed == opened, "the time of the end is known with its event")
			}
		})
	}
}

// A card whose payments are disputed at once: the dispute may be told before the success. Expected: both are settled, whoever
// comes first (G6).
func TestDispute_ToldBeforeTheSuccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.book("pm_card_createDispute")
	gateway := &stalled{Gateway: b.gateway, afterSend: func(c payments.Call, out payments.Outcome) payments.Outcome {
		if c.Operation == domain.OpConfirm {
			panic("the process dies")
		}
		return out
	}}
	require.Panics(t, func() { _, _ = b.engineOn(gateway).Charge(b.ctx, b.job(id)) })
	_, payment, _ := b.statuses(id)
	require.NotEqual(t, "succeeded", payment)
	b.hearDisputes(b.intent(id))
	require.Zero(t, b.openReceipts())
	require.Equal(t, []string{"held", "confirmed", "disputed"}, b.events(id))
	b.work(b.engine(), id, domain.EffectCharge)
	b.agree(id)
	require.Equal(t, "fraudulent", b.shown(id).Reason)
}

// With every delivery lost, the provider's own list of events leads to the disputes (G5).
func TestDispute_FoundWithoutAnyWebhook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.config.SweepInterval, b.config.SweepLag = time.Millisecond, time.Millisecond
	p := b.engine()
	_, err := p.SweepEvents(b.ctx) // from here on
	require.NoError(t, err)
	id, intent := b.paid("pm_card_visa")
	b.dispute(intent, stripesim.Action{Action: "open_dispute"})
	b.sweepUntil(p, func() bool { return len(b.disputed(id)) == 1 })
	b.dispute(intent, stripesim.Action{Action: "close_dispute", Outcome: "lost"})
	b.sweepUntil(p, func() bool { return len(b.disputed(id)) == 2 })
	require.Equal(t, []domain.DisputeStatus{"needs_response", "lost"}, b.disputeStatuses(id))
}

// sweepUntil reads the provider's list of events until something is so.
func (b *bed) sweepUntil(p *payments.Payments, so func() bool) {
	b.Helper()
	require.Eventually(b, func() bool {
		b.exec(`UPDATE provider_events_sweep SET due_at = clock_timestamp()`)
		_, err := p.SweepEvents(b.ctx)
		require.NoError(b, err)
		b.settleEvents(p)
		return so()
	}, time.Minute, 20*time.Millisecond)
}

// lister is a provider's gateway whose listings of disputes are changed on their way, or wait.
type lister struct {
	payments.Gateway

	change func(ctx context.Context, found []payments.ProviderDispute) []payments.ProviderDispute
}

func (l lister) Disputes(ctx context.Context, intentID string) ([]payments.ProviderDispute, error) {
	found, err := l.Gateway.Disputes(ctx, intentID)
	return l.change(ctx, found), err
}

// A listing that was made before another one, and arrives after it, changes nothing, and is made again: a dispute never goes
// back (G4, G8).
func TestDispute_AnOldListingIsDropped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, intent := b.paid("pm_card_visa")
	b.dispute(intent, stripesim.Action{Action: "open_dispute", Inquiry: true})
	made, release, first := make(chan struct{}), make(chan struct{}), true
	slow := b.engineOn(lister{b.gateway, func(ctx context.Context, found []payments.ProviderDispute) []payments.ProviderDispute {
		if first {
			first = false
			close(made)
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return found
	}})
	event := b.deliver(b.told("charge.dispute.created", intent)[0])
	settled := make(chan error, 1)
	go func() {
		_, err := slow.SettleEvent(b.ctx)
		settled <- err
	}()
	<-made
	b.dispute(intent, stripesim.Action{Action: "escalate_dispute"})
	b.deliver(b.told("charge.dispute.updated", intent)[0])
	b.exec(`UPDATE provider_events SET due_at = clock_timestamp() + interval '1 hour' WHERE id = $1`, event) // the other one's turn
	b.settleEventsBut(b.engine(), event)
	require.Equal(t, []domain.DisputeStatus{"needs_response"}, b.disputeStatuses(id))
	close(release)
	require.NoError(t, <-settled)
	status, why := b.receipt(event)
	require.Equal(t, []string{"pending", "something moved while we looked"}, []string{status, why})
	require.Equal(t, domain.DisputeNeedsResponse, b.shown(id).Status)
	b.exec(`UPDATE provider_events SET due_at = clock_timestamp()`)
	b.settleEvents(b.engine())
	require.Zero(t, b.openReceipts())
	require.Equal(t, []domain.DisputeStatus{"needs_response"}, b.disputeStatuses(id))
	require.True(t, b.balance(id).Contested)
}

// settleEventsBut acts on every receipt that is due, and leaves one alone.
func (b *bed) settleEventsBut(p *payments.Payments, event string) {
	b.Helper()
	for worked := true; worked; {
		var err error
		worked, err = p.SettleEvent(b.ctx)
		require.NoError(b, err)
	}
	status, _ := b.receipt(event)
	require.Equal(b, "pending", status)
}

// Everybody at once, about every event of a dispute, each delivered twice and under a second id. Expected: each status is told at
// most once, the last is the provider's, and no receipt stays open (G3, G6).
func TestDispute_EverybodyAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, intent := b.paid("pm_card_visa")
	acts := []stripesim.Action{
		{Action: "open_dispute", Inquiry: true}, {Action: "escalate_dispute"}, {Action: "close_dispute", Outcome: "lost"},
	}
	together(6, func(i int) {
		if i == 0 {
			for _, a := range acts {
				b.dispute(intent, a)
				for _, kind := range []string{"created", "updated", "funds_withdrawn", "closed"} {
					for _, body := range b.told("charge.dispute."+kind, intent) {
						b.deliver(body)
						b.deliver(bytes.Replace(body, []byte(`"id":"evt_`), []byte(`"id":"evt_2`), 1))
					}
				}
			}
			return
		}
		for range 8 {
			_, err := b.engine().SettleEvent(b.ctx)
			require.NoError(b, err)
			b.pause(5 * time.Millisecond)
		}
	})
	for range 4 {
		b.exec(`UPDATE provider_events SET due_at = clock_timestamp() WHERE status = 'pending'`)
		b.settleEvents(b.engine())
	}
	require.Zero(t, b.openReceipts())
	told := b.disputeStatuses(id)
	require.Subset(t, []domain.DisputeStatus{"warning_needs_response", "needs_response", "lost"}, told)
	require.Equal(t, domain.DisputeLost, told[len(told)-1])
	seen := map[domain.DisputeStatus]bool{}
	for _, s := range told {
		require.False(t, seen[s], "%s was told twice", s)
		seen[s] = true
	}
	require.Equal(t, domain.DisputeLost, b.shown(id).Status)
}

// claimDispute is an event that claims anything of a dispute.
func (b *bed) claimDispute(event, kind, dispute, intent, status string) []byte {
	b.Helper()
	body, err := json.Marshal(map[string]any{
		"id": event, "object": "event", "type": "charge.dispute." + kind, "created": time.Now().Unix(), "livemode": false,
		"data": map[string]any{"object": map[string]any{
			"id": dispute, "object": "dispute", "status": status, "payment_intent": intent, "amount": 1, "currency": "eur", "metadata": map[string]string{},
		}},
	})
	require.NoError(b, err)
	return body
}

// What an event says of a dispute is not believed: not that there is one, nor that it is over (G4).
func TestDispute_EventsAreNeverBelieved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, intent := b.paid("pm_card_visa")
	none := b.deliver(b.claimDispute("evt_none", "created", "dp_none", intent, "needs_response"))
	b.settleEvents(b.engine())
	require.Nil(t, b.shown(id))
	b.dispute(intent, stripesim.Action{Action: "open_dispute"})
	b.hearDisputes(intent)
	over := b.deliver(b.claimDispute("evt_over", "closed", b.shown(id).ID, intent, "won"))
	foreign := b.deliver(b.claimDispute("evt_foreign", "created", "dp_foreign", "pi_foreign", "needs_response"))
	b.settleEvents(b.engine())
	for event, want := range map[string][]string{
		none:    {"pending", "it tells of a dispute that the provider does not show yet"},
		over:    {"pending", "it tells of an end that the provider does not show yet"},
		foreign: {"foreign", "of another application on the account"},
	} {
		status, why := b.receipt(event)
		require.Equal(t, want, []string{status, why}, event)
	}
	require.Equal(t, []domain.DisputeStatus{"needs_response"}, b.disputeStatuses(id))
	var closed int
	b.scan(`SELECT count(closed_at) FROM disputes`, &closed)
	require.Zero(t, closed)
}

// A dispute that opens is a warning in the log; one in a status that nobody has heard of is an error, counts as open and is
// counted; one that was over and is open again changes nothing and is left to a person (G5).
func TestDispute_WhatNobodyUnderstands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, intent := b.paid("pm_card_visa")
	var log bytes.Buffer
	as := func(status domain.DisputeStatus) *payments.Payments {
		g := lister{b.gateway, func(_ context.Context, found []payments.ProviderDispute) []payments.ProviderDispute {
			for i := range found {
				found[i].Status = status
			}
			return found
		}}
		log.Reset()
		return payments.New(b.db.Pool, g, noWaker{}, b.config, slog.New(slog.NewTextHandler(&log, nil)))
	}
	b.dispute(intent, stripesim.Action{Action: "open_dispute"})
	b.deliver(b.told("charge.dispute.created", intent)[0])
	b.settleEvents(as("needs_response"))
	require.Contains(t, log.String(), `level=WARN msg="a dispute was opened`)

	b.deliver(b.claimDispute("evt_1", "updated", b.shown(id).ID, intent, ""))
	b.settleEvents(as("on_the_moon"))
	require.Contains(t, log.String(), `level=ERROR msg="a dispute has a status that is not known here`)
	require.True(t, b.balance(id).Contested)
	collector := payments.NewOverdueCollector(b.db.Pool, time.Hour, slog.New(slog.DiscardHandler))
	require.InDelta(t, 1, b.gathered(collector)["disputes_open unknown"], 0)

	b.deliver(b.claimDispute("evt_2", "updated", b.shown(id).ID, intent, ""))
	b.settleEvents(as("lost"))
	require.Contains(t, log.String(), `level=INFO msg="a dispute has moved on"`)
	again := b.deliver(b.claimDispute("evt_3", "updated", b.shown(id).ID, intent, ""))
	b.settleEvents(as("needs_response"))
	require.Contains(t, log.String(), `level=ERROR msg="the provider takes back the end of a dispute`)
	status, _ := b.receipt(again)
	require.Equal(t, "parked", status)
	require.Equal(t, []domain.DisputeStatus{"needs_response", "on_the_moon", "lost"}, b.disputeStatuses(id))
	for name, n := range b.gathered(collector) {
		if len(name) > 14 && name[:14] == "disputes_open " {
			require.Zero(t, n, name)
		}
	}
}

// A listing of disputes that fails, or ends half way, teaches nothing: the event waits (G5).
func TestDispute_ListingsThatFail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, intent := b.paid("pm_card_visa")
	b.dispute(intent, stripesim.Action{Action: "open_dispute"})
	event := b.deliver(b.told("charge.dispute.created", intent)[0])
	for _, fault := range []string{"list_page_error", "list_page_empty", "unauthorized_401"} {
		b.sim.AddFault(stripesim.Fault{Operation: "disputes.list", Fault: fault, Times: -1})
		b.settleEvents(b.engine())
		status, _ := b.receipt(event)
		require.Equal(t, "pending", status, fault)
		b.sim.ClearFaults()
	}
	require.Empty(t, b.disputed(id))
	b.settleEvents(b.engine())
	require.Equal(t, []domain.DisputeStatus{"needs_response"}, b.disputeStatuses(id))
}
