package operator_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/outbox"
)

// pairs are two acts that two people may do to one effect at once, each of them allowed by itself.
func pairs() (all []pair) {
	money := []domain.EffectKind{domain.EffectCharge, domain.EffectCancel, domain.EffectRefund}
	for _, kind := range money {
		for _, status := range []domain.EffectStatus{domain.EffectPending, domain.EffectInDoubt, domain.EffectParked} {
			for _, acts := range [][2]operator.Act{
				{operator.Replay, operator.Replay}, {operator.Replay, operator.Resolve}, {operator.Resolve, operator.Resolve},
			} {
				all = append(all, pair{kind, status, acts})
			}
		}
		for _, acts := range [][2]operator.Act{{operator.Replay, operator.Discard}, {operator.Discard, operator.Discard}} {
			all = append(all, pair{kind, domain.EffectParked, acts})
		}
	}
	return append(all,
		pair{domain.EffectPublish, domain.EffectPending, [2]operator.Act{operator.Replay, operator.Replay}},
		pair{domain.EffectPublish, domain.EffectParked, [2]operator.Act{operator.Replay, operator.Discard}},
		pair{domain.EffectPublish, domain.EffectParked, [2]operator.Act{operator.Discard, operator.Discard}},
		pair{domain.EffectPublish, domain.EffectDone, [2]operator.Act{operator.Republish, operator.Republish}})
}

type pair struct {
	kind   domain.EffectKind
	status domain.EffectStatus
	acts   [2]operator.Act
}

func (p pair) String() string {
	return fmt.Sprintf("%s %s: %s and %s", p.kind, p.status, p.acts[0], p.acts[1])
}

// Two people who have seen the same act at once (G7): one act is done, with its row; the other is told who did it. With a worker in
// between, at most one is done. The money moves at most once, and the booking ends (G3, G4).
func TestOperators_TwoAtOnce(t *testing.T) {
	t.Parallel()
	for _, with := range []string{"alone", "a worker"} {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			b := newMoneyBed(t).withBroker()
			for _, p := range pairs() {
				if with == "a worker" && p.kind == domain.EffectPublish {
					continue
				}
				b.atOnce(p, with == "a worker")
			}
			require.NoError(t, b.sim.Ledger().Check())
		})
	}
}

func (b *moneyBed) atOnce(p pair, worker bool) {
	b.Helper()
	id, e := b.effectThat(p.kind, p.status, p.acts[1], true)
	seen, err := b.operators().Preview(b.ctx, p.acts[0], operator.Target{Effect: e}, 0)
	require.NoError(b, err, p)
	rows := b.audited(id)
	people := [2]outbox.Actor{"ada", "grace"}
	var errs [2]error
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			_, errs[i] = b.operators().Do(b.ctx, operator.Order{
				Act: p.acts[i], On: operator.Target{Effect: e}, By: people[i], Reason: p.String(), Seen: seen.Seen,
			})
		})
	}
	if worker {
		all.Go(func() { b.turn(id, p.kind) })
	}
	all.Wait()
	done := 0
	for i, err := range errs {
		var refused *outbox.RefusedError
		switch {
		case err == nil:
			done++
		case errors.As(err, &refused):
			if !worker {
				require.Equal(b, people[1-i], refused.By, "%s: %s", p, refused.Reason)
			}
		default:
			require.NoError(b, err, p)
		}
	}
	if worker {
		require.LessOrEqual(b, done, 1, p)
	} else {
		require.Equal(b, 1, done, "%s: %v", p, errs)
	}
	require.Equal(b, rows+done, b.audited(id), p)
	b.afterwards(id, p.String())
}

// The process is killed in the middle of an act (G1, G3, G7): its COMMIT is carried out and nobody hears of it, or it is not carried
// out; or it dies between the reading of the provider and the COMMIT. Whoever does the act again ends with one act on record.
func TestOperators_KilledDuringTheAct(t *testing.T) {
	t.Parallel()
	b := newMoneyBed(t).withBroker()
	proxy := testdb.NewCutter(t, b.db)
	pool, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: proxy.URL, ApplicationName: "cut"})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	for _, c := range []struct {
		kind   domain.EffectKind
		status domain.EffectStatus
		act    operator.Act
	}{
		{domain.EffectCharge, domain.EffectPending, operator.Replay},
		{domain.EffectCharge, domain.EffectInDoubt, operator.Replay},
		{domain.EffectCharge, domain.EffectInDoubt, operator.Resolve},
		{domain.EffectCharge, domain.EffectParked, operator.Discard},
		{domain.EffectCancel, domain.EffectInDoubt, operator.Resolve},
		{domain.EffectRefund, domain.EffectPending, operator.Resolve},
		{domain.EffectRefund, domain.EffectParked, operator.Discard},
		{domain.EffectPublish, domain.EffectParked, operator.Discard},
		{domain.EffectPublish, domain.EffectDone, operator.Republish},
	} {
		for _, death := range []string{"reply lost", "commit lost", "before it"} {
			name := fmt.Sprint(c, " ", death)
			id, e := b.effectThat(c.kind, c.status, c.act, true)
			order := operator.Order{Act: c.act, On: operator.Target{Effect: e}, By: "ops@example.org", Reason: name}
			before, rows := b.tale(id), b.audited(id)
			var commits atomic.Int32
			proxy.Judge(func(m testdb.Message) testdb.Cut {
				switch {
				case !m.IsCommit() || commits.Add(1) > 1:
					return testdb.Pass
				case death == "reply lost":
					return testdb.LoseReply
				case death == "commit lost":
					return testdb.LoseIt
				default:
					return testdb.Pass
				}
			})
			b.gateway.dies = death == "before it"
			_, err := doOrDie(b, b.operatorsOn(pool), order)
			b.gateway.dies = false
			proxy.Judge(nil)
			if err != nil {
				var unknown *postgres.CommitError
				require.True(t, errors.Is(err, domain.ErrBusy) || errors.Is(err, errDied) || errors.As(err, &unknown), "%s: %v", name, err)
				if death != "reply lost" {
					require.Equal(t, before, b.tale(id), name)
				}
				_, err = b.operators().Do(b.ctx, order)
			}
			require.NoError(t, err, name)
			require.Equal(t, rows+1, b.audited(id), name)
			b.afterwards(id, name)
		}
	}
}

// doOrDie does an act in a process that may die of it.
func doOrDie(b *moneyBed, desk *operator.Desk, o operator.Order) (done operator.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			died, is := v.(error)
			if !is || !errors.Is(died, errDied) {
				panic(v)
			}
			err = died
		}
	}()
	return desk.Do(b.ctx, o)
}
