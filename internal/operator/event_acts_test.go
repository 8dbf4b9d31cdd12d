package operator_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// TestRepublish (G6, G7): the same event goes to the stream again; whether the stream kept or dropped it is told and on record.
func TestRepublish(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t).withBroker()
	id := b.book("pm_card_visa")
	b.work(id, domain.EffectPublish)
	held := b.effect(id, domain.EffectPublish)
	require.Equal(t, domain.EffectDone, held.Status)
	desk := b.operators()
	on := operator.Target{Effect: held.ID}
	v, err := desk.Preview(b.ctx, operator.Republish, on, 0)
	require.NoError(t, err)
	require.True(t, v.Allowed, v.Refusal)
	require.Contains(t, v.Would, "under its own id")
	require.Nil(t, v.Money)
	done, err := desk.Do(b.ctx, operator.Order{Act: operator.Republish, On: on, By: "ada", Reason: "a consumer has lost it", Seen: v.Seen})
	require.NoError(t, err)
	require.Equal(t, &operator.Ack{Stream: outbox.StreamName, Sequence: uint64(held.StreamSequence), Kept: false}, done.Ack)
	require.Contains(t, done.Said, "dropped")
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE id = $1 AND action = 'republish' AND effect_id = $2`, done.ActionID, held.ID))

	// The stream is made anew: it has nothing, and keeps the event.
	b.withBroker()
	_, err = b.operators().Do(b.ctx, operator.Order{Act: operator.Republish, On: on, By: "bob", Reason: "the store was wiped", Seen: v.Seen})
	var refused *outbox.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, outbox.Actor("ada"), refused.By)
	done, err = b.operators().Do(b.ctx, operator.Order{Act: operator.Republish, On: on, By: "bob", Reason: "the store was wiped"})
	require.NoError(t, err)
	require.True(t, done.Ack.Kept)
	require.Equal(t, 2, b.count(`SELECT count(*) FROM operator_actions`))

	// What was never told is not told again, and without a broker nothing is.
	charge := b.effect(id, domain.EffectCharge)
	for _, c := range []struct {
		effect domain.EffectID
		spoil  string
		code   outbox.Refusal
	}{
		{charge.ID, `SELECT $1::uuid`, outbox.RefusedInapplicable},
		{held.ID, `UPDATE outbox SET status = 'parked', finished_at = NULL WHERE id = $1`, outbox.RefusedInapplicable},
		{held.ID, `UPDATE outbox SET status = 'discarded', finished_at = now() WHERE id = $1`, outbox.RefusedFinished},
	} {
		b.exec(c.spoil, c.effect)
		_, err = b.operators().Do(b.ctx, operator.Order{Act: operator.Republish, On: operator.Target{Effect: c.effect}, By: "ada", Reason: "x"})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, c.code, refused.Code)
	}
	b.exec(`UPDATE outbox SET status = 'done' WHERE id = $1`, held.ID)
	b.publisher = nil
	_, err = b.operators().Do(b.ctx, operator.Order{Act: operator.Republish, On: on, By: "ada", Reason: "x"})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, outbox.RefusedUnavailable, refused.Code)
	require.Contains(t, refused.Reason, "NATS_URL")
	require.Equal(t, 2, b.count(`SELECT count(*) FROM operator_actions`))
}

// counting counts what is published.
type counting struct {
	outbox.Publisher
	n atomic.Int32
}

func (c *counting) Publish(ctx context.Context, m outbox.Message) (outbox.Ack, error) {
	c.n.Add(1)
	return c.Publisher.Publish(ctx, m)
}

// TestRepublish_OncePerKey (G1): the answer under a key is replayed without anything being published again.
func TestRepublish_OncePerKey(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t).withBroker()
	id := b.book("pm_card_visa")
	b.work(id, domain.EffectPublish)
	held := b.effect(id, domain.EffectPublish)
	counted := &counting{Publisher: b.publisher}
	b.publisher = counted
	var first []byte
	for range 3 {
		answer, err := b.operators().DoOnce(b.ctx, bookings.Keyed{Client: b.client, Route: "/v1/ops/effects/x/republish", Key: "key", Meaning: "m"},
			operator.Order{Act: operator.Republish, On: operator.Target{Effect: held.ID}, By: "ada", Reason: "a consumer has lost it"},
			func(done operator.Result, _ *outbox.RefusedError) (int, []byte, error) {
				return 200, []byte(done.ActionID.String()), nil
			})
		require.NoError(t, err)
		if first == nil {
			first = answer.Body
		}
		require.Equal(t, first, answer.Body)
	}
	require.EqualValues(t, 1, counted.n.Load())
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions`))
}

// TestDiscard_AnEvent (G6, G7): eight at once discard a poison event; one does it, the marker is told once, and the later event goes on.
func TestDiscard_AnEvent(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t).withBroker()
	id := b.confirmed()
	var held domain.EffectID
	b.scan(`UPDATE outbox SET status = 'parked', last_error = 'too large' WHERE booking_id = $1 AND event_type = 'held' RETURNING id`, &held, id)
	v, err := b.operators().Preview(b.ctx, operator.Discard, operator.Target{Effect: held}, 0)
	require.NoError(t, err)
	require.True(t, v.Allowed, v.Refusal)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			done, err := b.operators().Do(b.ctx, operator.Order{
				Act: operator.Discard, On: operator.Target{Effect: held}, By: "ada", Reason: "it never fits", Seen: v.Seen,
			})
			if err == nil {
				require.Equal(t, v.Would, done.Said)
			}
			return onlyRefused(err)
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions`))
	b.work(id, domain.EffectPublish)
	var told []string
	b.scan(`SELECT array_agg(event_type ORDER BY stream_sequence) FROM outbox WHERE booking_id = $1 AND kind = 'publish' AND status = 'done'`, &told, id)
	require.Equal(t, []string{"skipped", "confirmed"}, told)
	require.Equal(t, 1, b.count(`SELECT count(*) FROM outbox WHERE id = $1 AND status = 'discarded'`, held))
}

// TestDiscard_ARefresh: what only asked a person to look is closed.
func TestDiscard_ARefresh(t *testing.T) {
	t.Parallel()
	b := setup(t)
	booking, _ := b.book()
	id := domain.NewID[domain.EffectID]()
	b.exec(`INSERT INTO outbox (id, booking_id, kind, status, last_error, due_at, created_at) VALUES ($1, $2, 'refresh', 'parked', 'look at it', now(), now())`, id, booking)
	done, err := b.desk().Do(t.Context(), operator.Order{Act: operator.Discard, On: operator.Target{Effect: id}, By: "ada", Reason: "looked at"})
	require.NoError(t, err)
	require.Equal(t, domain.EffectDiscarded, b.load(id).Status)
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE id = $1`, done.ActionID))
}
