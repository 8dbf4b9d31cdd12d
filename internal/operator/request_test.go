package operator_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/internal/testdb"
	"holdfast/outbox"
)

// onlyRefused lets pass that an act was refused.
func onlyRefused(err error) error {
	var refused *outbox.RefusedError
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// strict is a desk at which more than ten euros need two persons.
func (b *bed) strict() *operator.Desk {
	return b.deskOn(b.db.Pool, operator.Config{SecondPerson: map[string]int64{"EUR": 1000}})
}

// TestTwoPersons (G7): above the amount an act becomes a request, which somebody else approves; each step is one row of audit, and the
// act's row names both.
func TestTwoPersons(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := b.strict()
	booking, charge := b.book()
	b.put(charge, domain.EffectParked)
	v, err := desk.Preview(t.Context(), operator.Replay, operator.Target{Effect: charge}, 0)
	require.NoError(t, err)
	require.True(t, v.Allowed)
	require.True(t, v.SecondPerson)
	require.Zero(t, b.count(`SELECT count(*) FROM operator_requests`))

	order := replayOf(charge, "ada")
	order.Seen = v.Seen
	asked, err := desk.Do(t.Context(), order)
	require.NoError(t, err)
	require.NotNil(t, asked.Request)
	require.Equal(t, operator.RequestOpen, asked.Request.Status)
	require.Equal(t, domain.Money{Amount: 2500, Currency: "EUR"}, asked.Request.Money)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), time.Time(asked.Request.ExpiresAt), time.Minute)
	require.Equal(t, domain.EffectParked, b.load(charge).Status, "nothing has happened")
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE action = 'request replay' AND actor = 'ada'`))
	_, err = desk.Do(t.Context(), order) // the same page, once more
	var refused *outbox.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "asked for a second person")

	open, err := desk.Requests(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, []operator.Request{*asked.Request}, open)
	overview, err := desk.Overview(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, overview.Requests)

	_, err = desk.Approve(t.Context(), asked.Request.ID, "ada", "it is fine")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, outbox.RefusedSamePerson, refused.Code)
	require.Equal(t, domain.EffectParked, b.load(charge).Status)

	var accepted atomic.Int32
	var group errgroup.Group
	for i := range 8 {
		group.Go(func() error {
			done, err := desk.Approve(t.Context(), asked.Request.ID, outbox.Actor(fmt.Sprint("second ", i)), "looked at it")
			if err == nil {
				accepted.Add(1)
				require.Equal(t, booking, done.BookingID)
			}
			return onlyRefused(err)
		})
	}
	require.NoError(t, group.Wait())
	require.EqualValues(t, 1, accepted.Load())
	require.Equal(t, domain.EffectPending, b.load(charge).Status)
	require.Equal(t, 2, b.audits())
	require.Equal(t, 1, b.count(`
		SELECT count(*) FROM operator_actions
		 WHERE action = 'replay' AND actor LIKE 'second %' AND reason LIKE 'looked at it (asked for by ada: reason of ada)'`))
	after, err := desk.Request(t.Context(), asked.Request.ID)
	require.NoError(t, err)
	require.Equal(t, operator.RequestApproved, after.Status)
	_, err = desk.Approve(t.Context(), after.ID, "late", "me, too")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, outbox.RefusedDecided, refused.Code)
	require.Equal(t, after.DecidedBy, refused.By)
	_, err = desk.Withdraw(t.Context(), after.ID, "ada", "too late")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 2, b.audits())
}

// TestTwoPersons_NotAnyMore (G7): a request is over when its time is, when it is withdrawn, and when its effect has moved.
func TestTwoPersons_NotAnyMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := b.strict()
	for name, c := range map[string]struct {
		end  func(r operator.Request)
		code outbox.Refusal
	}{
		"expired": {func(r operator.Request) {
			b.exec(`UPDATE operator_requests SET expires_at = clock_timestamp() WHERE id = $1`, r.ID)
			after, err := desk.Withdraw(t.Context(), r.ID, "ada", "never mind")
			require.NoError(t, err)
			require.Equal(t, operator.RequestExpired, after.Status)
		}, outbox.RefusedExpired},
		"withdrawn": {func(r operator.Request) {
			for range 2 {
				after, err := desk.Withdraw(t.Context(), r.ID, "ada", "never mind")
				require.NoError(t, err)
				require.Equal(t, operator.RequestWithdrawn, after.Status)
			}
		}, outbox.RefusedDecided},
		"moved": {func(r operator.Request) { b.put(*r.EffectID, domain.EffectInDoubt) }, outbox.RefusedChanged},
		"done": {func(r operator.Request) {
			_, err := outbox.Replay(t.Context(), b.db.Pool, *r.EffectID, "carl", "at the command line")
			require.NoError(t, err)
		}, outbox.RefusedChanged},
	} {
		_, charge := b.book()
		b.put(charge, domain.EffectParked)
		asked, err := desk.Do(t.Context(), replayOf(charge, "ada"))
		require.NoError(t, err, name)
		c.end(*asked.Request)
		rows := b.audits()
		before := b.load(charge)
		_, err = desk.Approve(t.Context(), asked.Request.ID, "bob", "fine")
		var refused *outbox.RefusedError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, c.code, refused.Code, name)
		require.Equal(t, before, b.load(charge), name)
		require.Equal(t, rows, b.audits(), name)
	}
	_, err := desk.Approve(t.Context(), uuid.New(), "bob", "fine")
	require.ErrorIs(t, err, domain.ErrNotFound)
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE action = 'withdraw request'`))
}

// TestTwoPersons_WhoseMoneyIsLittle: below the amount, in another currency, and where no money moves, one person is enough.
func TestTwoPersons_WhoseMoneyIsLittle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	booking, charge := b.book()
	for name, config := range map[string]operator.Config{
		"as much as one may": {SecondPerson: map[string]int64{"EUR": 2500}}, "another currency": {SecondPerson: map[string]int64{"USD": 1}}, "no rule": {},
	} {
		done, err := b.deskOn(b.db.Pool, config).Do(t.Context(), replayOf(charge, "ada"))
		require.NoError(t, err, name)
		require.Nil(t, done.Request, name)
	}
	done, err := b.strict().Do(t.Context(), replayOf(b.effect(booking, domain.EffectPublish), "ada"))
	require.NoError(t, err)
	require.Nil(t, done.Request)
}

// TestTwoPersons_Refund (G3, G7): money goes back once, after the second person, and is told to whoever was too late.
func TestTwoPersons_Refund(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t)
	b.desk = operator.Config{SecondPerson: map[string]int64{"EUR": 1000}}
	desk := b.operators()
	id := b.confirmed()
	order := operator.Order{Act: operator.Refund, On: operator.Target{Booking: id}, By: "ada", Reason: "it rained", Amount: 500}
	small, err := desk.Do(b.ctx, order)
	require.NoError(t, err)
	require.Nil(t, small.Request)
	require.Equal(t, int64(500), small.Refund.Refund.Amount.Amount)
	b.heal(id)
	order.Amount = 0 // all that is left: 2000
	v, err := desk.Preview(b.ctx, operator.Refund, order.On, 0)
	require.NoError(t, err)
	require.True(t, v.SecondPerson)
	require.Equal(t, &domain.Money{Amount: 2000, Currency: "EUR"}, v.Money)
	asked, err := desk.Do(b.ctx, order)
	require.NoError(t, err)
	require.NotNil(t, asked.Request)
	require.Equal(t, int64(2000), asked.Request.Money.Amount)
	require.Equal(t, 1, b.count(`SELECT count(*) FROM refunds`))
	done, err := desk.Approve(b.ctx, asked.Request.ID, "bob", "so it did")
	require.NoError(t, err)
	require.NotNil(t, done.EffectID)
	b.heal(id)
	var gone int64
	b.scan(`SELECT refunded FROM payment_balances WHERE booking_id = $1`, &gone, id)
	require.Equal(t, int64(2500), gone)
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE action = 'refund' AND actor = 'bob' AND reason LIKE '%asked for by ada: it rained%'`))
	_, err = desk.Do(b.ctx, order)
	var refused *outbox.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, outbox.RefusedRefund, refused.Code)
	order.Seen = v.Seen
	_, err = desk.Do(b.ctx, order)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, outbox.Actor("bob"), refused.By)
}

// TestTwoPersons_NoSumInParts (G7): what needs a second person in one piece needs one in parts; what has failed does not count, and what was
// approved is not asked for twice.
func TestTwoPersons_NoSumInParts(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t)
	b.desk = operator.Config{SecondPerson: map[string]int64{"EUR": 1000}}
	desk := b.operators()
	id := b.confirmed()
	refund := func(amount int64) operator.Result {
		done, err := desk.Do(b.ctx, operator.Order{Act: operator.Refund, On: operator.Target{Booking: id}, By: "ada", Reason: "it rained", Amount: amount})
		require.NoError(t, err)
		return done
	}
	require.Nil(t, refund(600).Request)
	require.Nil(t, refund(400).Request)
	asked := refund(1)
	require.NotNil(t, asked.Request)
	require.Equal(t, int64(1), asked.Request.Money.Amount)
	require.Contains(t, asked.Said, "10.01 EUR")
	b.exec(`UPDATE refunds SET status = 'failed', failure_code = 'lost_or_stolen_card', settled_at = now(), watch_at = NULL WHERE amount = 600`)
	require.Nil(t, refund(600).Request)
	asked = refund(100)
	require.NotNil(t, asked.Request)
	done, err := desk.Approve(b.ctx, asked.Request.ID, "bob", "so it did")
	require.NoError(t, err)
	require.Equal(t, int64(100), done.Refund.Refund.Amount.Amount)
	require.Equal(t, 4, b.count(`SELECT count(*) FROM refunds`))
}

// TestTwoPersons_TheCommitIsCut (G7): the answer to the approval's COMMIT is lost. It is told as what it is, and done once.
func TestTwoPersons_TheCommitIsCut(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]testdb.Cut{"after it": testdb.LoseReply, "before it": testdb.LoseIt} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			_, charge := b.book()
			b.put(charge, domain.EffectParked)
			asked, err := b.strict().Do(t.Context(), replayOf(charge, "ada"))
			require.NoError(t, err)
			proxy := testdb.NewCutter(t, b.db)
			desk := b.deskOn(b.open(proxy.URL), operator.Config{SecondPerson: map[string]int64{"EUR": 1000}})
			var cuts atomic.Int32
			proxy.Judge(func(m testdb.Message) testdb.Cut {
				if m.IsCommit() && cuts.CompareAndSwap(0, 1) {
					return cut
				}
				return testdb.Pass
			})
			_, err = desk.Approve(t.Context(), asked.Request.ID, "bob", "fine")
			if cut == testdb.LoseIt {
				require.ErrorIs(t, err, domain.ErrBusy)
				require.Equal(t, 1, b.audits())
				_, err = desk.Approve(t.Context(), asked.Request.ID, "bob", "fine")
			}
			require.NoError(t, err)
			require.Equal(t, 2, b.audits())
			require.Equal(t, domain.EffectPending, b.load(charge).Status)
		})
	}
}

// TestTwoPersons_NoMoreThanApproved (G3): all that was left when it was asked for is what the second person has approved, although more
// is left by then.
func TestTwoPersons_NoMoreThanApproved(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t)
	b.desk = operator.Config{SecondPerson: map[string]int64{"EUR": 1000}}
	desk := b.operators()
	id := b.confirmed()
	order := operator.Order{Act: operator.Refund, On: operator.Target{Booking: id}, By: "ada", Reason: "it rained", Amount: 500}
	_, err := desk.Do(b.ctx, order)
	require.NoError(t, err)
	order.Amount = 0
	asked, err := desk.Do(b.ctx, order)
	require.NoError(t, err)
	require.Equal(t, int64(2000), asked.Request.Money.Amount)
	b.exec(`UPDATE refunds SET status = 'failed', failure_code = 'lost_or_stolen_card', settled_at = now(), watch_at = NULL WHERE amount = 500`)
	done, err := desk.Approve(b.ctx, asked.Request.ID, "bob", "so it did")
	require.NoError(t, err)
	require.Equal(t, int64(2000), done.Refund.Refund.Amount.Amount)
}
