package operator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// TestList: each row says how old it is, what is at stake and what comes next.
func TestList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := b.desk()
	for i, status := range []domain.EffectStatus{domain.EffectParked, domain.EffectInDoubt, domain.EffectPending} {
		_, charge := b.book()
		b.put(charge, status)
		b.exec(`UPDATE outbox SET created_at = now() - $2::int * interval '1 hour' WHERE id = $1`, charge, i+1)
	}
	b.exec(`UPDATE outbox SET created_at = now() + interval '1 hour' WHERE kind = 'publish'`) // they have no jobs, and are missed after 15 s
	booking, _ := b.book()
	b.exec(`UPDATE outbox SET status = 'parked', created_at = now() - interval '1 day' WHERE booking_id = $1 AND kind = 'publish'`, booking)
	page, err := desk.List(t.Context(), outbox.Filter{Stuck: true})
	require.NoError(t, err)
	require.Len(t, page.Rows, 4)
	next := map[domain.EffectStatus]string{
		domain.EffectParked: "nothing, until a person acts", domain.EffectInDoubt: "the reconciler asks the provider", domain.EffectPending: "a worker takes it",
	}
	age := map[domain.EffectStatus]float64{domain.EffectParked: 3600, domain.EffectInDoubt: 7200, domain.EffectPending: 10800}
	for _, r := range page.Rows {
		require.True(t, r.Stuck)
		require.Equal(t, next[r.Status], r.Next.What)
		require.Equal(t, r.Status != domain.EffectParked, r.Next.At != nil)
		if r.Kind == domain.EffectPublish {
			require.Nil(t, r.AtStake, "an event moves no money")
			require.InDelta(t, 86400, r.AgeSeconds, 600)
			continue
		}
		require.Equal(t, &domain.Money{Amount: 2500, Currency: "EUR"}, r.AtStake)
		require.InDelta(t, age[r.Status], r.AgeSeconds, 600)
	}
	old, err := desk.List(t.Context(), outbox.Filter{Stuck: true, OlderThan: 100 * time.Minute})
	require.NoError(t, err)
	require.Len(t, old.Rows, 3)
	_, err = desk.List(t.Context(), outbox.Filter{After: "x"})
	require.ErrorIs(t, err, outbox.ErrCursor)
	paused, err := desk.SetPause(t.Context(), domain.EffectCharge, true, "ada", "fraud wave")
	require.NoError(t, err)
	require.Equal(t, operator.PauseResult{
		Kind: domain.EffectCharge, Paused: true, Change: outbox.PauseBegun, Waiting: 2, Holds: 4, Said: paused.Said,
	}, paused)
	require.Contains(t, paused.Said, "2 charges wait; 4 holds end within an hour")
	page, err = desk.List(t.Context(), outbox.Filter{Status: domain.EffectPending, Kind: domain.EffectCharge})
	require.NoError(t, err)
	require.Equal(t, "nothing, until the kind is resumed", page.Rows[0].Next.What)
}

// TestShow: an effect with its booking's others, what was done by hand, and what can be done.
func TestShow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := b.desk()
	booking, charge := b.book()
	_, err := desk.Do(t.Context(), replayOf(charge, "ada"))
	require.NoError(t, err)
	for _, id := range []domain.EffectID{charge, domain.EffectID(booking)} {
		shown, err := desk.Show(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, charge, shown.Effect.ID)
		require.Len(t, shown.Others, 1)
		require.Len(t, shown.Actions, 1)
		can := map[operator.Act]bool{}
		for _, c := range shown.Acts {
			can[c.Act] = c.Allowed
			require.Equal(t, c.Allowed, c.Why == "")
		}
		require.Equal(t, map[operator.Act]bool{
			operator.Replay: true, operator.Republish: false, operator.Resolve: true, operator.Refund: false, operator.Discard: false,
		}, can)
	}
	_, err = desk.Show(t.Context(), domain.NewID[domain.EffectID]())
	require.ErrorIs(t, err, domain.ErrNotFound)
}

// TestOverview: what is counted is what there is, by kind, state and age.
func TestOverview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := b.desk()
	v, err := desk.Overview(t.Context())
	require.NoError(t, err)
	require.Zero(t, v.Stuck)
	require.Len(t, v.Backlog, 15)
	require.Len(t, v.Ages, 35)
	_, parked := b.book()
	b.put(parked, domain.EffectParked)
	b.exec(`UPDATE outbox SET created_at = now() - interval '2 hours' WHERE id = $1`, parked)
	_, lost := b.book()
	b.exec(`DELETE FROM river_job WHERE id = (SELECT job_id FROM outbox WHERE id = $1)`, lost)
	b.book()
	b.exec(`UPDATE outbox SET created_at = now() + interval '1 hour' WHERE kind = 'publish'`) // they have no jobs, and are missed after 15 s
	b.exec(`INSERT INTO river_job (args, kind, max_attempts, queue, state) VALUES ('{}', 'teleport', 25, 'charge', 'retryable')`)
	v, err = desk.Overview(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), time.Time(v.AsOf), time.Minute)
	require.EqualValues(t, 2, v.Stuck)
	require.False(t, v.StuckMore)
	got := map[string]int64{}
	for _, is := range v.Backlog {
		if got[string(is.Kind+" "+domain.EffectKind(is.Status))] = is.Count; is.Status == domain.EffectParked && is.Count == 1 {
			require.InDelta(t, 7200, is.OldestSeconds, 600)
		}
	}
	require.EqualValues(t, 1, got["charge parked"])
	require.EqualValues(t, 2, got["charge pending"])
	require.EqualValues(t, 3, got["publish pending"])
	bands := map[float64]int64{}
	for _, band := range v.Ages {
		if band.Kind == domain.EffectCharge {
			bands[band.From] = band.Count
		}
	}
	require.Equal(t, map[float64]int64{0: 2, 60: 0, 300: 0, 900: 0, 3600: 1, 21600: 0, 86400: 0}, bands)
	require.Equal(t, []outbox.ForeignJobs{{Kind: "teleport", State: "retryable", Count: 1}}, v.Unknown)
	require.NotNil(t, v.Pauses)
}

// TestAudit: the newest first, each once, by booking, person and act.
func TestAudit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := b.desk()
	first, charge := b.book()
	_, other := b.book()
	for range 3 {
		for effect, by := range map[domain.EffectID]outbox.Actor{charge: "ada", other: "bob"} {
			_, err := desk.Do(t.Context(), replayOf(effect, by))
			require.NoError(t, err)
		}
	}
	_, err := desk.SetPause(t.Context(), domain.EffectPublish, true, "ada", "the stream is full")
	require.NoError(t, err)
	for filter, want := range map[operator.AuditFilter]int{
		{}: 7, {Booking: first}: 3, {Actor: "ada"}: 4, {Action: "pause"}: 1, {Actor: "bob", Action: "pause"}: 0, {Actor: "bob", Booking: first}: 0,
	} {
		for _, size := range []int{0, 2} {
			f := filter
			f.Limit = size
			var all []outbox.Action
			for {
				page, err := desk.Audit(t.Context(), f)
				require.NoError(t, err)
				all = append(all, page.Actions...)
				if f.After = page.Next; f.After == "" {
					break
				}
			}
			require.Len(t, all, want, "%+v", f)
			for i := range all[:max(len(all)-1, 0)] {
				require.False(t, all[i].At.Before(all[i+1].At), "the newest first")
			}
		}
	}
	_, err = desk.Audit(t.Context(), operator.AuditFilter{After: "x"})
	require.ErrorIs(t, err, outbox.ErrCursor)
}
