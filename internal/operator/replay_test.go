package operator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/operator"
	"holdfast/internal/testdb"
	"holdfast/outbox"
)

func replayOf(effect domain.EffectID, by outbox.Actor) operator.Order {
	return operator.Order{Act: operator.Replay, On: operator.Target{Effect: effect}, By: by, Reason: "reason of " + string(by)}
}

// TestReplay (G7): what a preview shows is what is done then, once, with its one row of audit; a preview changes nothing.
func TestReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	booking, charge := b.book()
	b.put(charge, domain.EffectParked)
	desk := b.desk()
	before := b.load(charge)
	v, err := desk.Preview(t.Context(), operator.Replay, operator.Target{Effect: charge}, 0)
	require.NoError(t, err)
	require.True(t, v.Allowed)
	require.Contains(t, v.Would, "a worker carries it out now")
	require.Equal(t, &domain.Money{Amount: 2500, Currency: "EUR"}, v.Money)
	require.Contains(t, v.Unread, "no key for the provider")
	require.Equal(t, before, b.load(charge))
	require.Zero(t, b.audits())

	order := replayOf(charge, "ada")
	order.Seen = v.Seen
	done, err := desk.Do(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, v.Would, done.Said)
	require.Equal(t, booking, done.BookingID)
	require.Equal(t, domain.EffectPending, b.load(charge).Status)
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE id = $1 AND effect_id = $2 AND action = 'replay' AND actor = 'ada'`, done.ActionID, charge))

	order.By = "bob" // who looks at the same page
	_, err = desk.Do(t.Context(), order)
	var refused *outbox.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, outbox.Actor("ada"), refused.By)
	require.Contains(t, refused.Reason, "reason of ada")
	require.Equal(t, 1, b.audits())
}

// TestReplay_AtOnce (G7): of many who have seen the same one does it, and all others are told who did.
func TestReplay_AtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charge := b.book()
	desk := b.desk()
	v, err := desk.Preview(t.Context(), operator.Replay, operator.Target{Effect: charge}, 0)
	require.NoError(t, err)
	var accepted atomic.Int32
	var group errgroup.Group
	for i := range 16 {
		group.Go(func() error {
			order := replayOf(charge, outbox.Actor(fmt.Sprint("operator ", i)))
			order.Seen = v.Seen
			_, err := desk.Do(t.Context(), order)
			var refused *outbox.RefusedError
			if errors.As(err, &refused) && refused.By != "" && refused.Code == outbox.RefusedChanged {
				return nil
			}
			if err == nil {
				accepted.Add(1)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.EqualValues(t, 1, accepted.Load())
	require.Equal(t, 1, b.audits())
}

// TestReplay_TheCommitIsCut (G7): the connection breaks at the act's COMMIT. Expected: what was committed is told as done, what was
// not is told as not done, and there is a row of audit exactly where something was done.
func TestReplay_TheCommitIsCut(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]testdb.Cut{"after it": testdb.LoseReply, "before it": testdb.LoseIt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			_, charge := b.book()
			b.put(charge, domain.EffectParked)
			proxy := testdb.NewCutter(t, b.db)
			desk := b.deskOn(b.open(proxy.URL), operator.Config{})
			var cuts atomic.Int32
			proxy.Judge(func(m testdb.Message) testdb.Cut {
				if m.IsCommit() && cuts.CompareAndSwap(0, 1) {
					return cut
				}
				return testdb.Pass
			})
			done, err := desk.Do(t.Context(), replayOf(charge, "ada"))
			require.EqualValues(t, 1, cuts.Load())
			if cut == testdb.LoseIt {
				require.ErrorIs(t, err, domain.ErrBusy)
				require.Equal(t, domain.EffectParked, b.load(charge).Status)
				require.Zero(t, b.audits())
				return
			}
			require.NoError(t, err)
			require.Equal(t, domain.EffectPending, b.load(charge).Status)
			require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE id = $1`, done.ActionID))
		})
	}
}

// TestReplay_CutAnywhere (G7): the connection breaks at any statement of the act. Expected: done with its row of audit, or not done and
// without one, and told as what it is.
func TestReplay_CutAnywhere(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]testdb.Cut{"after it": testdb.LoseReply, "before it": testdb.LoseIt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			proxy := testdb.NewCutter(t, b.db)
			desk := b.deskOn(b.open(proxy.URL), operator.Config{})
			for at, whole := int32(1), false; !whole; at++ {
				_, charge := b.book()
				b.put(charge, domain.EffectParked)
				var statements atomic.Int32
				proxy.Judge(func(m testdb.Message) testdb.Cut {
					if (m.Type == 'E' || m.Type == 'Q') && statements.Add(1) == at {
						return cut
					}
					return testdb.Pass
				})
				done, err := desk.Do(t.Context(), replayOf(charge, "ada"))
				proxy.Judge(nil)
				whole = statements.Load() < at
				moved := b.load(charge).Status == domain.EffectPending
				require.Equal(t, err == nil, moved, "statement %d: %v", at, err)
				require.Equal(t, moved, b.count(`SELECT count(*) FROM operator_actions WHERE effect_id = $1`, charge) == 1)
				if err != nil {
					require.ErrorIs(t, err, domain.ErrBusy, "statement %d", at)
				} else {
					require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE id = $1`, done.ActionID))
				}
				require.Less(t, at, int32(100))
			}
		})
	}
}

// TestDoOnce (G1, G7): an act under a key is done once, its answer and its refusal are replayed byte for byte, and two at once do one.
func TestDoOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charge := b.book()
	_, paid := b.book()
	b.put(paid, domain.EffectDone)
	desk := b.desk()
	once := func(key string, effect domain.EffectID) (bookings.Response, error) {
		return desk.DoOnce(t.Context(), bookings.Keyed{Client: b.client, Route: "/v1/ops/effects/x/replay", Key: key, Meaning: effect.String()},
			replayOf(effect, "ada"), func(done operator.Result, refused *outbox.RefusedError) (int, []byte, error) {
				if refused != nil {
					return 409, []byte(refused.Reason), nil //nolint:nilerr // the refusal is the answer
				}
				body, err := json.Marshal(done)
				return 200, body, err
			})
	}
	var group errgroup.Group
	var fresh atomic.Int32
	answers := make([]string, 8)
	for i := range answers {
		group.Go(func() error {
			answer, err := once("key", charge)
			answers[i] = string(answer.Body)
			if err == nil && !answer.Replayed {
				fresh.Add(1)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.EqualValues(t, 1, fresh.Load())
	for _, body := range answers {
		require.Equal(t, answers[0], body)
	}
	require.Equal(t, 1, b.audits())

	refusal, err := once("other", paid)
	require.NoError(t, err)
	require.Equal(t, 409, refusal.Status)
	require.Contains(t, string(refusal.Body), "never done again")
	b.put(paid, domain.EffectParked)
	again, err := once("other", paid)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, refusal.Body, again.Body)
	require.Equal(t, 1, b.audits())

	_, err = once("key", paid)
	require.ErrorIs(t, err, bookings.ErrKeyReused)
	_, err = once("third", domain.NewID[domain.EffectID]())
	require.ErrorIs(t, err, domain.ErrNotFound)
}

// TestDesk_Incomplete (G7): an act needs somebody, a reason and something to act on.
func TestDesk_Incomplete(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charge := b.book()
	desk := b.desk()
	var refused *outbox.RefusedError
	_, err := desk.Do(t.Context(), operator.Order{Act: operator.Replay, On: operator.Target{Effect: charge}, By: "ada", Reason: " \n"})
	require.ErrorAs(t, err, &refused)
	_, err = desk.Do(t.Context(), operator.Order{Act: operator.Replay, On: operator.Target{Effect: charge}, Reason: "because"})
	require.ErrorAs(t, err, &refused)
	var invalid *domain.ValidationError
	_, err = desk.Do(t.Context(), operator.Order{Act: operator.Replay, By: "ada", Reason: "because"})
	require.ErrorAs(t, err, &invalid)
	_, err = desk.Do(t.Context(), operator.Order{Act: "dance", On: operator.Target{Effect: charge}, By: "ada", Reason: "because"})
	require.ErrorAs(t, err, &invalid)
	_, err = desk.Do(t.Context(), replayOf(domain.NewID[domain.EffectID](), "ada"))
	require.ErrorIs(t, err, domain.ErrNotFound)
	require.Zero(t, b.audits())
}

// TestReplay_WhileItIsLocked: somebody holds the effect for longer than an act waits. It is busy, and nothing happened.
func TestReplay_WhileItIsLocked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, charge := b.book()
	tx, err := b.db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM outbox WHERE id = $1 FOR UPDATE`, charge)
	require.NoError(t, err)
	hasty := b.open(b.db.URL + "&lock_timeout=50ms")
	_, err = b.deskOn(hasty, operator.Config{}).Do(t.Context(), replayOf(charge, "ada"))
	require.ErrorIs(t, err, domain.ErrBusy)
	require.Zero(t, b.audits())
}
