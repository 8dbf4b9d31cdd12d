package outbox

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/testnats"
)

// open begins a transaction that a test holds open; it is rolled back with the test unless it was committed.
func (b *testBundle) open(t *testing.T) pgx.Tx {
	t.Helper()
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

// TestIncident24_ALateBookingIsChargedAndTold (G5, G6): a booking takes its ids and its job's number, and commits only when
// a hundred later ones have been charged and told, none of which waited for it. Then it is charged and told like them.
func TestIncident24_ALateBookingIsChargedAndTold(t *testing.T) {
	t.Parallel()
	const later = 100
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	handler := &carrier{b: b}
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
		domain.EffectCharge: handler.work, domain.EffectPublish: b.drain(js).Work,
	})
	tx := b.open(t)
	late := book(t, tx)
	require.NoError(t, appendNext(t.Context(), tx, late.booking, domain.EventConfirmed))
	b.books(t, later, domain.EventConfirmed)
	b.eventually(t, 3*later, `SELECT count(*) FROM outbox WHERE status = 'done'`)
	require.Zero(t, handler.acted(late.charge))

	require.NoError(t, tx.Commit(t.Context()))
	b.eventually(t, 3*(later+1), `SELECT count(*) FROM outbox WHERE status = 'done'`)
	require.Equal(t, 1, handler.acted(late.charge))
	requireInOrder(t, told(t, js), later+1)
	require.Zero(t, b.count(t, `
		SELECT count(*) FROM river_job mine, river_job theirs
		 WHERE mine.args ->> 'effect_id' = $1 AND theirs.id < mine.id AND theirs.kind = 'charge'`, late.charge.String()),
		"the late one was to have the lowest number")
}

// TestIncident24_ALateDoubtIsNotPassedOver (G5): one doubt is older than all others and becomes visible last, another is
// locked by who settles it. Many reconcilers take a hundred others meanwhile without waiting for either; then each of the
// two is the next.
func TestIncident24_ALateDoubtIsNotPassedOver(t *testing.T) {
	t.Parallel()
	const later = 100
	b := setup(t)
	late, settling := b.book(t), b.book(t)
	doubt := func(ctx context.Context, id domain.EffectID, tx pgx.Tx) { // due for longest
		_, err := tx.Exec(ctx, `UPDATE outbox SET status = 'in_doubt', due_at = now() - interval '2 hours' WHERE id = $1`, id)
		require.NoError(t, err)
	}
	committed := b.open(t)
	doubt(t.Context(), settling.charge, committed)
	require.NoError(t, committed.Commit(t.Context()))
	lateTx, settlingTx := b.open(t), b.open(t)
	doubt(t.Context(), late.charge, lateTx)
	_, err := settlingTx.Exec(t.Context(), `SELECT FROM outbox WHERE id = $1 FOR UPDATE`, settling.charge)
	require.NoError(t, err)
	others := map[domain.EffectID]bool{}
	for _, m := range b.books(t, later) {
		others[m.charge] = true
	}
	b.exec(t, `UPDATE outbox SET status = 'in_doubt', due_at = now() - interval '1 minute' WHERE kind = 'charge' AND id <> ALL($1)`,
		[]domain.EffectID{late.charge, settling.charge})

	var mu sync.Mutex
	var claimed []domain.EffectID
	ctx, cancel := context.WithTimeout(t.Context(), patience) // one that waits for a lock would wait for ever
	defer cancel()
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			for {
				e, ok, err := ClaimDoubt(ctx, b.pool, time.Hour)
				if err != nil || !ok {
					return err
				}
				mu.Lock()
				claimed = append(claimed, e.ID)
				mu.Unlock()
			}
		})
	}
	require.NoError(t, group.Wait())
	require.Len(t, claimed, later)
	for _, id := range claimed {
		require.True(t, others[id])
		delete(others, id) // each once
	}

	next := func() domain.EffectID {
		e, ok, err := ClaimDoubt(t.Context(), b.pool, time.Hour)
		require.NoError(t, err)
		require.True(t, ok)
		return e.ID
	}
	require.NoError(t, lateTx.Commit(t.Context()))
	require.Equal(t, late.charge, next())
	require.NoError(t, settlingTx.Rollback(t.Context()))
	require.Equal(t, settling.charge, next())
	_, ok, err := ClaimDoubt(t.Context(), b.pool, time.Hour)
	require.NoError(t, err)
	require.False(t, ok)
}

// TestIncident24_TheSweepDoesNotPassOverALateCommit (G5): the sweep remembers how far it has come. A lost effect that
// becomes visible behind that place, and one that was locked when the sweep came by, are found in the next round; while
// they are held, a hundred others are revived, and no sweep waits.
func TestIncident24_TheSweepDoesNotPassOverALateCommit(t *testing.T) {
	t.Parallel()
	const later, budget = 100, 10
	b := setup(t)
	locked := b.book(t)
	lockedTx, lateTx := b.open(t), b.open(t)
	_, err := lockedTx.Exec(t.Context(), `SELECT FROM outbox WHERE id = $1 FOR UPDATE`, locked.charge)
	require.NoError(t, err)
	late := book(t, lateTx)
	_, err = lateTx.Exec(t.Context(), `DELETE FROM river_job WHERE args ->> 'effect_id' = $1`, late.charge.String())
	require.NoError(t, err)
	_, err = lateTx.Exec(t.Context(), `DELETE FROM outbox WHERE id = $1`, late.held)
	require.NoError(t, err)
	b.books(t, later)
	b.exec(t, `DELETE FROM outbox WHERE kind = 'publish'`) // they are missed after 15 s, which a busy machine takes
	b.exec(t, `DELETE FROM river_job`)

	ctx, cancel := context.WithTimeout(t.Context(), patience) // one that waits for a lock would wait for ever
	defer cancel()
	sweeper := NewSweeper(b.pool, SweepConfig{Budget: budget})
	sweep := func(calls int) (revived int) {
		for range calls {
			n, err := sweeper.Sweep(ctx)
			require.NoError(t, err)
			require.LessOrEqual(t, n, budget)
			revived += n
		}
		return revived
	}
	const round = later/budget + 1 // how many calls look at everything
	half := sweep(round / 2)
	require.Positive(t, half)
	require.NotZero(t, sweeper.at, "the sweep was to be under way")
	require.NoError(t, lateTx.Commit(t.Context()), "older than all that the sweep has seen")
	require.Equal(t, later-half, sweep(round-round/2), "the rest of the round")
	require.NoError(t, lockedTx.Rollback(t.Context()))

	require.Equal(t, 2, sweep(round))
	for _, id := range []domain.EffectID{late.charge, locked.charge} {
		require.Equal(t, 1, b.count(t, `
			SELECT count(*) FROM river_job j JOIN outbox o ON o.job_id = j.id WHERE o.id = $1 AND j.state = 'available'`, id))
	}
	require.Zero(t, sweep(round))
}
