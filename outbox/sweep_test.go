package outbox

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/testdb"
	"holdfast/internal/testnats"
)

func (b *testBundle) sweep(t *testing.T) int {
	t.Helper()
	n, err := NewSweeper(b.pool, SweepConfig{}).Sweep(t.Context())
	require.NoError(t, err)
	return n
}

// TestSweepRevivesLostJobs (G5, G6, incident 14): whatever became of the job, a pending effect gets a new one, once.
func TestSweepRevivesLostJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO outbox_workers VALUES ('alive', now() + interval '1 hour')`)
	const running = `UPDATE river_job SET state = 'running', attempted_at = now(), attempt = 2, attempted_by = `
	for name, test := range map[string]struct {
		spoil string
		want  int
	}{
		"deleted":                      {`DELETE FROM river_job WHERE id = $1`, 1},
		"completed":                    {`UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = $1`, 1},
		"cancelled":                    {`UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE id = $1`, 1},
		"discarded":                    {`UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE id = $1`, 1},
		"runs in a dead process":       {running + `'{alive,dead}' WHERE id = $1`, 1},
		"runs in a silent process":     {`WITH w AS (INSERT INTO outbox_workers VALUES ('silent', now() - interval '16 seconds')) ` + running + `'{alive,silent}' WHERE id = $1`, 1},
		"was run by a dead one before": {running + `'{dead,alive}' WHERE id = $1`, 0},
		"waits":                        {`UPDATE river_job SET state = 'available' WHERE id = $1`, 0},
		"is scheduled":                 {`UPDATE river_job SET state = 'scheduled', scheduled_at = now() + interval '1 day' WHERE id = $1`, 0},
		"is to be retried":             {`UPDATE river_job SET state = 'retryable' WHERE id = $1`, 0},
	} {
		made := b.book(t)
		b.young(t)
		before := b.load(t, made.charge)
		b.exec(t, test.spoil, before.JobID)
		require.Equal(t, test.want, b.sweep(t), name)
		require.Zero(t, b.sweep(t), "%s: once is enough", name)
		after := b.load(t, made.charge)
		require.Equal(t, domain.EffectPending, after.Status, name)
		require.Equal(t, test.want == 1, *before.JobID != *after.JobID, name)
		require.Equal(t, 1, b.count(t, `SELECT count(*) FROM river_job WHERE id = $1 AND args ->> 'effect_id' = $2`,
			after.JobID, made.charge.String()), name)
	}
}

// TestSweepLeavesFinishedAndDoubtfulAlone (G3): what is done needs no job, and a doubt is the reconciler's.
func TestSweepLeavesFinishedAndDoubtfulAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, status := range []domain.EffectStatus{
		domain.EffectDone, domain.EffectNotNeeded, domain.EffectDiscarded, domain.EffectInDoubt, domain.EffectParked,
	} {
		made := b.book(t)
		b.exec(t, `UPDATE outbox SET status = $2, finished_at = CASE WHEN $3 THEN now() END WHERE id = $1`,
			made.charge, status, status.Finished())
	}
	b.young(t)
	b.exec(t, `DELETE FROM river_job`)
	require.Zero(t, b.sweep(t))
}

// TestSweepGivesABookingOnePublishJob (G6): the held event has no job of its own. Young, it is left alone; with another
// event's job alive it is carried; else it gets one, and only the lowest event does.
func TestSweepGivesABookingOnePublishJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := func(made booked) {
		b.exec(t, `UPDATE outbox SET created_at = created_at - interval '16 seconds' WHERE booking_id = $1`, made.booking)
	}
	young := b.book(t)
	b.young(t)
	alone, carriedByLater, lostBoth, parkedFirst := b.book(t), b.book(t), b.book(t), b.book(t)
	b.event(t, carriedByLater.booking, domain.EventConfirmed)
	lost := b.load(t, b.event(t, lostBoth.booking, domain.EventConfirmed))
	behind := b.load(t, b.event(t, parkedFirst.booking, domain.EventConfirmed))
	for _, made := range []booked{alone, carriedByLater, lostBoth, parkedFirst} {
		old(made)
	}
	b.exec(t, `DELETE FROM river_job WHERE id = ANY($1)`, []int64{*lost.JobID, *behind.JobID})
	b.exec(t, `UPDATE outbox SET status = 'parked' WHERE id = $1`, parkedFirst.held)

	require.Equal(t, 2, b.sweep(t))
	require.Nil(t, b.load(t, young.held).JobID)
	require.NotNil(t, b.load(t, alone.held).JobID)
	require.Nil(t, b.load(t, carriedByLater.held).JobID)
	require.NotNil(t, b.load(t, lostBoth.held).JobID, "the lowest one gets the job, and drains the rest")
	require.Equal(t, *lost.JobID, *b.load(t, lost.ID).JobID)
	require.Equal(t, *behind.JobID, *b.load(t, behind.ID).JobID, "a parked event is a person's turn")
	require.Zero(t, b.sweep(t))
}

// TestSweptEventsGoOut (G6, incident 14): the whole way, with the job rows of a crashed deployment gone.
func TestSweptEventsGoOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	for range 5 {
		b.event(t, b.book(t).booking, domain.EventConfirmed)
	}
	b.exec(t, `DELETE FROM river_job`)
	b.exec(t, `UPDATE outbox SET created_at = created_at - interval '16 seconds'`)
	require.Equal(t, 5+5, b.sweep(t), "five charges, and one job for the events of each booking")
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{
		domain.EffectPublish: b.drain(js).Work,
		domain.EffectCharge:  func(context.Context, Job) (Verdict, error) { return Verdict{}, nil },
	})
	b.eventually(t, 10, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done'`)
	requireInOrder(t, told(t, js), 5)
}

// TestSweepsAtOnceGiveOneJobEach: every process sweeps.
func TestSweepsAtOnceGiveOneJobEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 30 {
		b.book(t)
	}
	b.exec(t, `DELETE FROM river_job`)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			_, err := NewSweeper(b.pool, SweepConfig{}).Sweep(t.Context())
			return err
		})
	}
	require.NoError(t, group.Wait())
	b.sweep(t)
	require.Equal(t, 30, b.count(t, `SELECT count(*) FROM river_job WHERE kind = 'charge'`))
}

// TestSweepForgetsDeadProcesses: their rows would pile up with every restart.
func TestSweepForgetsDeadProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO outbox_workers VALUES ('old', now() - interval '2 hours'), ('new', now())`)
	b.sweep(t)
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM outbox_workers`))
}

// TestSweepIsBounded (G6): behind a broker that is away everything waits with live jobs, for hours. What a sweep costs
// must not grow with that, and a lost effect in the midst of them must be found all the same.
func TestSweepIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.exec(t, `DELETE FROM outbox WHERE booking_id = $1`, made.booking)
	b.exec(t, `
		INSERT INTO bookings SELECT (jsonb_populate_record(b, jsonb_build_object('id', gen_random_uuid()))).*
		  FROM bookings b, generate_series(1, 25000)`)
	b.exec(t, `
		INSERT INTO outbox (id, booking_id, kind, event_type, event_seq, due_at, created_at, job_id)
		SELECT gen_random_uuid(), b.id, 'publish', 'held', seq, now() - interval '1 hour' * random(), now() - interval '1 hour',
		       CASE seq WHEN 2 THEN enqueue_job('publish', gen_random_uuid(), now()) END
		  FROM bookings b, generate_series(1, 2) AS seq WHERE b.id <> $1`, made.booking)
	require.Equal(t, 50_000, b.count(t, `SELECT count(*) FROM outbox WHERE status = 'pending'`))

	for _, analysed := range []bool{false, true} {
		if analysed {
			b.exec(t, `ANALYZE outbox`)
			b.exec(t, `ANALYZE river_job`)
		}
		plan := testdb.Explain(t, b.pool, sweepQuery, pgx.NamedArgs{
			"after_due": time.Time{}, "after_id": domain.EffectID{}, "size": sweepBatch, "dead_after": DeadAfter,
		})
		require.Less(t, plan.Buffers(), 20*sweepBatch, "a few index look-ups for each effect, whatever waits")
	}

	b.exec(t, `
		WITH lost AS (
			SELECT (array_agg(booking_id ORDER BY due_at))[n] AS booking_id
			  FROM outbox, unnest(ARRAY[1, 24999, 25000, 49000, 50000]) AS n GROUP BY n
		)
		DELETE FROM river_job j USING outbox o, lost WHERE o.booking_id = lost.booking_id AND j.id = o.job_id`)
	lost := b.count(t, `
		SELECT count(DISTINCT booking_id) FROM outbox o
		 WHERE o.job_id IS NOT NULL AND NOT EXISTS (SELECT FROM river_job j WHERE j.id = o.job_id)`)
	require.Positive(t, lost)
	sweeper := NewSweeper(b.pool, SweepConfig{})
	found := 0
	for range 4 { // 3 for 50,000, and one that may begin anew
		n, err := sweeper.Sweep(t.Context())
		require.NoError(t, err)
		found += n
	}
	require.Equal(t, lost, found)
}

// TestSweepGoesOn: a small budget takes several calls, sees each effect once, and begins anew.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 7 {
		b.book(t)
	}
	b.young(t)
	b.exec(t, `UPDATE outbox SET due_at = '2026-01-01T00:00Z'`) // the id decides between equals
	lose := func() { b.exec(t, `DELETE FROM river_job`) }
	sweeper := NewSweeper(b.pool, SweepConfig{Budget: 3})
	for range 2 {
		lose()
		total := 0
		for range 5 { // 14 effects, 3 at a time
			n, err := sweeper.Sweep(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, n, 3)
			total += n
		}
		require.Equal(t, 7, total)
	}
}

// TestDeadAfterIsASetting (incident 14): how long a silent process counts as alive, to the sweep and to the list.
func TestDeadAfterIsASetting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.young(t)
	b.exec(t, `INSERT INTO outbox_workers VALUES ('silent', now() - interval '5 minutes')`)
	b.exec(t, `UPDATE river_job SET state = 'running', attempted_at = now(), attempt = 2, attempted_by = '{silent}'`)
	for _, test := range []struct {
		after time.Duration
		lost  int
	}{{10 * time.Minute, 0}, {time.Minute, 1}} {
		page, err := List(t.Context(), b.pool, Filter{Stuck: true, DeadAfter: test.after})
		require.NoError(t, err)
		require.Len(t, page.Rows, test.lost)
		shown, err := Show(t.Context(), b.pool, made.charge, test.after)
		require.NoError(t, err)
		require.Equal(t, test.lost == 1, shown.Effect.Stuck)
		n, err := NewSweeper(b.pool, SweepConfig{DeadAfter: test.after}).Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, test.lost, n)
	}
	require.Equal(t, 2*time.Second, beatEvery(DeadAfter))
	require.Equal(t, 2*time.Second, beatEvery(time.Hour), "who sweeps may have been told a shorter time")
	require.Equal(t, 200*time.Millisecond, beatEvery(time.Second))
}
