package outbox

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

// TestAppendCommitsWithItsCause (G6): effect and job exist together, or neither does.
func TestAppendCommitsWithItsCause(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	var id domain.EffectID
	appendCancel := func(tx pgx.Tx) error {
		return write(t.Context(), tx, func(q *pgx.Batch) error {
			id = Append(q, made.booking, domain.EffectCancel)
			return nil
		})
	}
	require.ErrorIs(t, postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		require.NoError(t, appendCancel(tx))
		return domain.ErrBusy
	}), domain.ErrBusy)
	_, err := Load(t.Context(), b.pool, id)
	require.ErrorIs(t, err, domain.ErrNotFound)
	require.Zero(t, b.count(t, `SELECT count(*) FROM river_job WHERE kind = 'cancel'`))

	require.NoError(t, postgres.InTx(t.Context(), b.pool, appendCancel))
	e := b.load(t, id)
	require.Equal(t, domain.EffectPending, e.Status)
	require.Equal(t, 1, b.count(t, `
		SELECT count(*) FROM river_job WHERE id = $1 AND state = 'available' AND args ->> 'effect_id' = $2`, e.JobID, id.String()))
}

// TestEffectMoves is the whole from × move matrix of what payments may do to an effect. G4 rests on it: a doubt that is
// ended stays ended, and a finished effect is never opened again.
func TestEffectMoves(t *testing.T) {
	t.Parallel()
	const (
		pending, doubt, parked  = domain.EffectPending, domain.EffectInDoubt, domain.EffectParked
		done, unneeded, discard = domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded
	)
	finish := func(to domain.EffectStatus) func(*pgx.Batch, booked) error {
		return func(q *pgx.Batch, made booked) error { return Finish(q, made.booking, domain.EffectCharge, to) }
	}
	from := []domain.EffectStatus{pending, doubt, parked, done, unneeded, discard}
	for name, test := range map[string]struct {
		move func(*pgx.Batch, booked) error
		to   []domain.EffectStatus
	}{
		"done":       {finish(done), []domain.EffectStatus{done, done, done, done, unneeded, discard}},
		"not_needed": {finish(unneeded), []domain.EffectStatus{unneeded, unneeded, unneeded, done, unneeded, discard}},
		"in_doubt":   {finish(doubt), []domain.EffectStatus{doubt, doubt, doubt, done, unneeded, discard}},
		"Doubt": {func(q *pgx.Batch, made booked) error {
			Doubt(q, made.charge, "why", time.Minute)
			return nil
		}, []domain.EffectStatus{doubt, doubt, parked, done, unneeded, discard}},
		"Park": {func(q *pgx.Batch, made booked) error {
			Park(q, made.charge, "why")
			return nil
		}, []domain.EffectStatus{parked, parked, parked, done, unneeded, discard}},
		"Note": {func(q *pgx.Batch, made booked) error {
			Note(q, made.charge, "why", time.Minute)
			return nil
		}, from},
	} {
		for i, status := range from {
			t.Run(string(status)+" "+name, func(t *testing.T) {
				t.Parallel()
				tx := testdb.Tx(t)
				made := book(t, tx)
				_, err := tx.Exec(t.Context(), `
					UPDATE outbox SET status = $2, finished_at = CASE WHEN $3 THEN now() END WHERE id = $1`,
					made.charge, status, status.Finished())
				require.NoError(t, err)
				require.NoError(t, write(t.Context(), tx, func(q *pgx.Batch) error { return test.move(q, made) }))
				e, err := Load(t.Context(), tx, made.charge)
				require.NoError(t, err)
				require.Equal(t, test.to[i], e.Status)
				require.Equal(t, e.Status.Finished(), e.FinishedAt != nil)
				held, err := Load(t.Context(), tx, made.held)
				require.NoError(t, err)
				require.Equal(t, pending, held.Status, "other kinds are left alone")
			})
		}
	}
}

// TestFinishKeepsALease: handing a doubt to the reconciler again must not make it due while one looks at it.
func TestFinishKeepsALease(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	made := book(t, tx)
	require.NoError(t, write(t.Context(), tx, func(q *pgx.Batch) error {
		Doubt(q, made.charge, "why", time.Hour)
		return Finish(q, made.booking, domain.EffectCharge, domain.EffectInDoubt)
	}))
	e, err := Load(t.Context(), tx, made.charge)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), e.DueAt, time.Minute)
	require.Equal(t, "why", e.LastError)
}

// TestFinishRefusesWhatIsNoEnd: a move that means nothing is a bug of the caller, and says so.
func TestFinishRefusesWhatIsNoEnd(t *testing.T) {
	t.Parallel()
	var q pgx.Batch
	for _, to := range []domain.EffectStatus{domain.EffectPending, domain.EffectParked, domain.EffectDiscarded, "", "x"} {
		require.Error(t, Finish(&q, domain.NewID[domain.BookingID](), domain.EffectCharge, to))
		require.Zero(t, q.Len())
	}
	require.NoError(t, Finish(&q, domain.NewID[domain.BookingID](), domain.EffectCharge, domain.EffectDone))
	require.NoError(t, postgres.Send(t.Context(), testdb.Tx(t), &q), "nothing to finish is fine")
}

// TestClaimDoubtGivesEachToOne (G5): many reconcilers, each due doubt claimed once per lease, the oldest first, and
// nothing that is not due or not theirs.
func TestClaimDoubtGivesEachToOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := map[domain.EffectID]bool{}
	var oldest domain.EffectID
	for i := range 20 {
		made := b.book(t)
		b.exec(t, `
			UPDATE outbox SET status = 'in_doubt', due_at = clock_timestamp() - $2::interval WHERE id = $1`,
			made.charge, time.Duration(i)*time.Second)
		want[made.charge] = true
		oldest = made.charge
	}
	later, other := b.book(t), b.book(t)
	b.exec(t, `UPDATE outbox SET status = 'in_doubt', due_at = clock_timestamp() + interval '1 hour' WHERE id = $1`, later.charge)
	b.exec(t, `UPDATE outbox SET status = 'in_doubt', due_at = clock_timestamp() - interval '1 hour' WHERE id = $1`, other.held)

	first, ok, err := ClaimDoubt(t.Context(), b.pool, time.Hour)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, oldest, first.ID)
	require.WithinDuration(t, time.Now().Add(time.Hour), first.DueAt, time.Minute)

	claimed := make(chan domain.EffectID, 100)
	claimed <- first.ID
	var group errgroup.Group
	for range 6 {
		group.Go(func() error {
			for {
				e, ok, err := ClaimDoubt(t.Context(), b.pool, time.Hour)
				if err != nil || !ok {
					return err
				}
				claimed <- e.ID
			}
		})
	}
	require.NoError(t, group.Wait())
	close(claimed)
	for id := range claimed {
		require.True(t, want[id], "claimed twice, or not to be claimed")
		delete(want, id)
	}
	// SKIP LOCKED may have sent somebody home while another held the last one, but that one was claimed then.
	require.Empty(t, want)
}

// TestCountAttempt: the count is ours and survives River's rows.
func TestCountAttempt(t *testing.T) {
	t.Parallel()
	tx := testdb.Tx(t)
	made := book(t, tx)
	require.NoError(t, write(t.Context(), tx, func(q *pgx.Batch) error {
		CountAttempt(q, made.charge)
		CountAttempt(q, made.charge)
		return nil
	}))
	e, err := Load(t.Context(), tx, made.charge)
	require.NoError(t, err)
	require.Equal(t, 2, e.Attempts)
}
