package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// TestReplayByStatus (G7): what a replay means for each kind and status, with one row of audit for each accepted one
// and none for a refused one. Money that is done is never done again.
func TestReplayByStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, kind := range []domain.EffectKind{domain.EffectCharge, domain.EffectPublish} {
		for status, want := range map[domain.EffectStatus]ReplayAction{
			domain.EffectPending:   Requeued,
			domain.EffectParked:    Requeued,
			domain.EffectInDoubt:   ReconcileNow,
			domain.EffectDone:      "",
			domain.EffectNotNeeded: "",
			domain.EffectDiscarded: "",
		} {
			t.Run(string(kind)+" "+string(status), func(t *testing.T) {
				t.Parallel()
				made := b.book(t)
				id := made.charge
				if kind == domain.EffectPublish {
					id = b.event(t, made.booking, domain.EventConfirmed)
				}
				b.exec(t, `
					UPDATE outbox
					   SET status = $2, attempts = 7, last_error = 'why', due_at = now() + interval '1 hour',
					       finished_at = CASE WHEN $3 THEN now() END, stream = 'BOOKINGS', stream_sequence = 1
					 WHERE id = $1`, id, status, status.Finished())
				before := b.load(t, id)
				result, err := Replay(t.Context(), b.pool, id, "ada", "customer called")
				after := b.load(t, id)
				audits := b.count(t, `SELECT count(*) FROM operator_actions WHERE effect_id = $1`, id)
				if want == "" {
					var refused *RefusedError
					require.ErrorAs(t, err, &refused)
					require.NotEmpty(t, refused.Reason)
					require.Equal(t, before, after)
					require.Zero(t, audits)
					return
				}
				require.NoError(t, err)
				require.Equal(t, want, result.Action)
				require.Equal(t, 1, audits)
				require.WithinDuration(t, time.Now(), after.DueAt, time.Minute)
				if want == ReconcileNow {
					require.Equal(t, domain.EffectInDoubt, after.Status)
					require.Equal(t, 7, after.Attempts)
					require.Equal(t, before.JobID, after.JobID, "a doubt is the reconciler's: no job")
					return
				}
				require.Equal(t, domain.EffectPending, after.Status)
				require.Zero(t, after.Attempts)
				require.NotEqual(t, *before.JobID, *after.JobID)
				require.Equal(t, 1, b.count(t, `
					SELECT count(*) FROM river_job
					 WHERE args ->> 'effect_id' = $1 AND state = 'available' AND id = $2`, id.String(), after.JobID))
				require.Equal(t, 1, b.count(t, `SELECT count(*) FROM river_job WHERE id = $1 AND state = 'cancelled'`, before.JobID), "no pile of jobs")
			})
		}
	}
}

// TestReplayLeavesWhoWhenWhyBeforeAndAfter (G7).
func TestReplayLeavesWhoWhenWhyBeforeAndAfter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.exec(t, `UPDATE outbox SET status = 'parked', attempts = 3, last_error = 'why' WHERE id = $1`, made.charge)
	result, err := Replay(t.Context(), b.pool, made.charge, "ada", "customer called")
	require.NoError(t, err)
	shown, err := Show(t.Context(), b.pool, made.charge, DeadAfter)
	require.NoError(t, err)
	require.Len(t, shown.Actions, 1)
	a := shown.Actions[0]
	require.Equal(t, result.ActionID, a.ID)
	require.Equal(t, Actor("ada"), a.Actor)
	require.Equal(t, "replay", a.Action)
	require.Equal(t, "customer called", a.Reason)
	require.Equal(t, made.charge, *a.EffectID)
	require.Equal(t, made.booking, *a.BookingID)
	require.WithinDuration(t, time.Now(), a.At, time.Minute)
	var before, after Snapshot
	require.NoError(t, json.Unmarshal(a.Before, &before))
	require.NoError(t, json.Unmarshal(a.After, &after))
	require.Equal(t, result.Before, before)
	require.Equal(t, result.After, after)
	require.Equal(t, domain.EffectParked, before.Status)
	require.Equal(t, 3, before.Attempts)
	require.Equal(t, domain.EffectPending, after.Status)
}

// TestReplayNeedsAReasonAndAnEffect (G7): and refuses before it changes anything.
func TestReplayNeedsAReasonAndAnEffect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	var refused *RefusedError
	for _, reason := range []string{"", " \t\n"} {
		_, err := Replay(t.Context(), b.pool, made.charge, "ada", reason)
		require.ErrorAs(t, err, &refused)
	}
	_, err := Replay(t.Context(), b.pool, made.charge, " ", "because")
	require.ErrorAs(t, err, &refused)
	_, err = Replay(t.Context(), b.pool, domain.NewID[domain.EffectID](), "ada", "because")
	require.ErrorIs(t, err, domain.ErrNotFound)
	require.Zero(t, b.count(t, `SELECT count(*) FROM operator_actions`))
}

// TestReplayRefusesWhatNoWorkerCarriesOut (G7): what is a person's to make must not turn into a job that waits
// for ever and leaves the list of what is stuck.
func TestReplayRefusesWhatNoWorkerCarriesOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	_, err := b.pool.Exec(t.Context(), `
		INSERT INTO outbox (id, booking_id, kind, status, last_error, due_at, created_at)
		VALUES ($1, $2, 'refresh', 'parked', 'look at it', clock_timestamp(), clock_timestamp())`,
		domain.NewID[domain.EffectID](), made.booking)
	require.NoError(t, err)
	page, err := List(t.Context(), b.pool, Filter{Stuck: true, Kind: domain.EffectRefresh})
	require.NoError(t, err)
	require.Len(t, page.Rows, 1)
	require.Equal(t, "parked, needs a person: look at it", page.Rows[0].Reason)
	var refused *RefusedError
	_, err = Replay(t.Context(), b.pool, page.Rows[0].ID, "ada", "please")
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "look at it")
	b.young(t)
	require.Zero(t, b.sweep(t))
}

// TestReplaysAtOnce (G7): two operators, or twenty. Each has looked at the effect before it acted, so that of those who saw the same
// state one does it, and the others are told who did. Each accepted one leaves its row, one job waits in the end.
func TestReplaysAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	_, as, err := See(t.Context(), b.pool, made.charge)
	require.NoError(t, err)
	var accepted atomic.Int32
	var group errgroup.Group
	for i := range 20 {
		by := Signature{ID: uuid.New(), Actor: Actor(fmt.Sprint("operator ", i)), Reason: fmt.Sprint("reason ", i)}
		group.Go(func() error {
			err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
				_, err := ReplayIn(t.Context(), tx, made.charge, as, by)
				return err
			})
			var refused *RefusedError
			if errors.As(err, &refused) && refused.Code == RefusedChanged && refused.By != "" && refused.At != nil {
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
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM operator_actions`))

	// One after the other both are accepted, and each starts from what the one before left.
	for range 3 {
		_, err := Replay(t.Context(), b.pool, made.charge, "ada", "again")
		require.NoError(t, err)
	}
	require.Equal(t, 4, b.count(t, `SELECT count(*) FROM operator_actions`))
	require.Equal(t, 1, b.count(t, `
		SELECT count(*) FROM river_job j JOIN outbox o ON o.job_id = j.id WHERE o.id = $1 AND j.state = 'available'`, made.charge))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM river_job WHERE kind = 'charge' AND state = 'available'`))
	require.Zero(t, b.count(t, `
		SELECT count(*) FROM (
			SELECT before, lag(after) OVER (ORDER BY (before ->> 'job_id')::bigint) AS earlier FROM operator_actions
		) AS chain WHERE earlier IS NOT NULL AND before <> earlier`))
}

// TestAnActOnWhatHasMoved (G7): whoever acts on what was shown is told what became of it since, and by whom.
func TestAnActOnWhatHasMoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	_, as, err := See(t.Context(), b.pool, made.charge)
	require.NoError(t, err)
	replay := func(as Seen) (refused *RefusedError) {
		err := postgres.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
			_, err := ReplayIn(t.Context(), tx, made.charge, as, Signature{ID: uuid.New(), Actor: "bob", Reason: "please"})
			return err
		})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, RefusedChanged, refused.Code)
		return refused
	}
	b.exec(t, `UPDATE outbox SET status = 'in_doubt' WHERE id = $1`, made.charge)
	moved := replay(as)
	require.Contains(t, moved.Reason, "in_doubt now")
	require.Empty(t, moved.By)
	_, err = Replay(t.Context(), b.pool, made.charge, "ada", "the customer has called")
	require.NoError(t, err)
	for _, stale := range []Seen{as, "in_doubt", "nonsense", "in_doubt." + Seen(uuid.NewString())} {
		first := replay(stale)
		require.Contains(t, first.Reason, "ada replayed it at ")
		require.Contains(t, first.Reason, "the customer has called")
		require.Equal(t, Actor("ada"), first.By)
		require.WithinDuration(t, time.Now(), time.Time(*first.At), time.Minute)
	}
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM operator_actions`))
}

// TestReplayWhilePaused (G7): it is accepted, and the answer tells that it has to wait.
func TestReplayWhilePaused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	for _, paused := range []bool{false, true} {
		if paused {
			_, err := Pause(t.Context(), b.pool, domain.EffectCharge, "ada", "x")
			require.NoError(t, err)
		}
		result, err := Replay(t.Context(), b.pool, made.charge, "ada", "again")
		require.NoError(t, err)
		require.Equal(t, paused, result.Paused)
		require.Equal(t, domain.EffectCharge, result.Kind)
	}
}

// TestPauseAndResume (G7): each change once, with its row of audit, and only what may be paused. A repeated pause with a
// reason replaces who and why, but not since when.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pause := func(actor Actor, reason string) func() (PauseChange, error) {
		return func() (PauseChange, error) { return Pause(t.Context(), b.pool, domain.EffectCharge, actor, reason) }
	}
	resume := func() (PauseChange, error) { return Resume(t.Context(), b.pool, domain.EffectCharge, "bob", "over") }
	var since time.Time
	for i, test := range []struct {
		act    func() (PauseChange, error)
		change PauseChange
		paused []string // who and why; nil: it is not
		audits int
	}{
		{resume, Unchanged, nil, 0},
		{pause("ada", NoReason), PauseBegun, []string{"ada", NoReason}, 1},
		{pause("ada", "fraud wave"), PauseRestated, []string{"ada", "fraud wave"}, 2},
		{pause("ada", "fraud wave"), Unchanged, []string{"ada", "fraud wave"}, 2},
		{pause("bob", NoReason), Unchanged, []string{"ada", "fraud wave"}, 2},
		{pause("bob", "still going"), PauseRestated, []string{"bob", "still going"}, 3},
		{resume, PauseEnded, nil, 4},
		{resume, Unchanged, nil, 4},
	} {
		change, err := test.act()
		require.NoError(t, err)
		require.Equal(t, test.change, change, "step %d", i)
		pauses, err := Pauses(t.Context(), b.pool)
		require.NoError(t, err)
		require.Equal(t, test.audits, b.count(t, `SELECT count(*) FROM operator_actions`), "step %d", i)
		var paused bool
		require.NoError(t, write(t.Context(), b.pool, func(q *pgx.Batch) error {
			Paused(q, domain.EffectCharge, &paused)
			return nil
		}))
		require.Equal(t, test.paused != nil, paused, "step %d", i)
		if test.paused == nil {
			require.Empty(t, pauses)
			continue
		}
		require.Len(t, pauses, 1)
		require.Equal(t, test.paused[0], string(pauses[0].Actor), "step %d", i)
		require.Equal(t, test.paused[1], pauses[0].Reason, "step %d", i)
		if since.IsZero() {
			since = pauses[0].PausedAt
		}
		require.Equal(t, since, pauses[0].PausedAt)
	}
	require.Equal(t, 1, b.count(t, `
		SELECT count(*) FROM operator_actions
		 WHERE action = 'pause' AND actor = 'bob' AND before ->> 'reason' = 'fraud wave' AND after ->> 'reason' = 'still going'`))
	var refused *RefusedError
	_, err := Pause(t.Context(), b.pool, domain.EffectCancel, "ada", "x")
	require.ErrorAs(t, err, &refused, "a fence must always be possible")
	_, err = Pause(t.Context(), b.pool, domain.EffectCharge, "ada", "")
	require.ErrorAs(t, err, &refused)
}

// TestPausesAtOnce (G7): of many who pause at once one begins it, and none of the others' reasons is lost.
func TestPausesAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var group errgroup.Group
	for i := range 8 {
		group.Go(func() error {
			_, err := Pause(t.Context(), b.pool, domain.EffectCharge, "ada", fmt.Sprint("reason ", i))
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM operator_actions WHERE before ->> 'paused' = 'false'`))
	require.Equal(t, 8, b.count(t, `SELECT count(DISTINCT reason) FROM operator_actions`))
	require.Equal(t, 1, b.count(t, `
		SELECT count(*) FROM outbox_pauses p
		 WHERE NOT EXISTS (SELECT FROM operator_actions a WHERE a.before ->> 'reason' = p.reason)`), "the last one stands")
}
