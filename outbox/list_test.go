package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
)

// TestStuckIsWhatNeedsAttention (G5): each way to be stuck is found and named, and what is on its way is not.
func TestStuckIsWhatNeedsAttention(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil  string
		stuck  bool
		reason string
	}{
		"on its way":  {`SELECT $1::uuid`, false, "on its way"},
		"tried again": {`UPDATE outbox SET last_error = 'provider busy' WHERE id = $1`, false, "tried again soon: provider busy"},
		"parked":      {`UPDATE outbox SET status = 'parked', last_error = 'wrong account' WHERE id = $1`, true, "parked, needs a person: wrong account"},
		"in doubt":    {`UPDATE outbox SET status = 'in_doubt' WHERE id = $1`, true, "in doubt; the reconciler"},
		"late":        {`UPDATE outbox SET created_at = now() - interval '6 minutes' WHERE id = $1`, true, "late"},
		"no live job": {`DELETE FROM river_job WHERE id = (SELECT job_id FROM outbox WHERE id = $1)`, true, "no live job"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			made := b.book(t)
			b.young(t)
			b.exec(t, test.spoil, made.charge)
			shown, err := Show(t.Context(), b.pool, made.charge, DeadAfter)
			require.NoError(t, err)
			require.Equal(t, test.stuck, shown.Effect.Stuck)
			require.Contains(t, shown.Effect.Reason, test.reason)
			require.Len(t, shown.Others, 1)
			require.Equal(t, made.held, shown.Others[0].ID)
			require.False(t, shown.Others[0].Stuck, "a held event has no job of its own: %s", shown.Others[0].Reason)
			page, err := List(t.Context(), b.pool, Filter{Stuck: true})
			require.NoError(t, err)
			require.Equal(t, test.stuck, len(page.Rows) == 1)
		})
	}
}

// TestEventBehindAParkedOneIsStuck (G6, incident 10).
func TestEventBehindAParkedOneIsStuck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	behind := b.event(t, made.booking, domain.EventConfirmed)
	b.exec(t, `UPDATE outbox SET status = 'parked' WHERE id = $1`, made.held)
	b.exec(t, `DELETE FROM river_job WHERE kind = 'publish'`)
	shown, err := Show(t.Context(), b.pool, behind, DeadAfter)
	require.NoError(t, err)
	require.True(t, shown.Effect.Stuck)
	require.Contains(t, shown.Effect.Reason, "earlier event")
}

// TestForgottenPauseIsSeen (G5, G7): what a pause holds up says so, and is stuck once it is late; what is not paused says
// nothing of it.
func TestForgottenPauseIsSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.young(t)
	_, err := Pause(t.Context(), b.pool, domain.EffectCharge, "ada", "fraud wave")
	require.NoError(t, err)
	pauses, err := Pauses(t.Context(), b.pool)
	require.NoError(t, err)
	want := "charge is paused since " + pauses[0].PausedAt.Format(time.RFC3339) + " by ada: fraud wave; worker outbox resume charge"

	page, err := List(t.Context(), b.pool, Filter{})
	require.NoError(t, err)
	require.Equal(t, pauses, page.Pauses)
	require.Len(t, page.Rows, 2)
	for _, r := range page.Rows {
		require.False(t, r.Stuck)
		require.Equal(t, map[domain.EffectKind]string{domain.EffectCharge: want, domain.EffectPublish: "on its way"}[r.Kind], r.Reason)
	}
	page, err = List(t.Context(), b.pool, Filter{Stuck: true})
	require.NoError(t, err)
	require.Empty(t, page.Rows)
	require.Equal(t, pauses, page.Pauses)

	b.exec(t, `UPDATE outbox SET created_at = now() - interval '6 minutes' WHERE id = $1`, made.charge)
	page, err = List(t.Context(), b.pool, Filter{Stuck: true})
	require.NoError(t, err)
	require.Len(t, page.Rows, 1)
	require.True(t, page.Rows[0].Stuck)
	require.Equal(t, want, page.Rows[0].Reason)
	shown, err := Show(t.Context(), b.pool, made.charge, DeadAfter)
	require.NoError(t, err)
	require.True(t, shown.Effect.Stuck)
	require.Equal(t, want, shown.Effect.Reason)
}

// TestEffectsOfABooking: people hold a booking's id. It lists all its effects, finished ones too, and shows its charge.
func TestEffectsOfABooking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.book(t)
	b.book(t)
	confirmed := b.event(t, made.booking, domain.EventConfirmed)
	b.exec(t, `UPDATE outbox SET status = 'done', finished_at = now() WHERE id = $1`, made.charge)
	b.exec(t, `UPDATE outbox SET status = 'parked' WHERE id = $1`, confirmed)
	for filter, want := range map[Filter][]domain.EffectID{
		{}:                             {made.charge, made.held, confirmed},
		{Limit: 2}:                     {made.charge, made.held},
		{Stuck: true}:                  {confirmed},
		{Kind: domain.EffectPublish}:   {made.held, confirmed},
		{Status: domain.EffectDone}:    {made.charge},
		{Status: domain.EffectInDoubt}: {},
	} {
		filter.Booking = made.booking
		b.young(t)
		page, err := List(t.Context(), b.pool, filter)
		require.NoError(t, err)
		got := make([]domain.EffectID, 0, len(page.Rows))
		for _, r := range page.Rows {
			got = append(got, r.ID)
		}
		require.Equal(t, want, got, "%+v", filter)
		if filter.Limit == 2 {
			page, err = List(t.Context(), b.pool, Filter{Booking: made.booking, After: page.Next})
			require.NoError(t, err)
			require.Len(t, page.Rows, 1)
			require.Equal(t, confirmed, page.Rows[0].ID)
		}
	}
	shown, err := Show(t.Context(), b.pool, domain.EffectID(made.booking), DeadAfter)
	require.NoError(t, err)
	require.Equal(t, made.charge, shown.Effect.ID)
	require.Len(t, shown.Others, 2)
}

// TestListPages: every row once, whatever the page size, finished ones only when asked for.
func TestListPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 10 {
		made := b.book(t)
		if i%3 == 0 {
			b.exec(t, `UPDATE outbox SET status = 'done', finished_at = now() WHERE id = $1`, made.charge)
		}
		if i%3 == 1 {
			b.exec(t, `UPDATE outbox SET status = 'in_doubt' WHERE id = $1`, made.charge)
		}
	}
	b.young(t)
	for filter, want := range map[Filter]int{
		{}:                                  16,
		{Kind: domain.EffectCharge}:         6,
		{Status: domain.EffectInDoubt}:      3,
		{Status: domain.EffectDone}:         4,
		{Stuck: true}:                       3,
		{Status: domain.EffectNotNeeded}:    0,
		{Kind: domain.EffectCancel}:         0,
		{Stuck: true, Kind: "publish"}:      0,
		{Status: "done", Kind: "publish"}:   0,
		{Status: "pending", Kind: "charge"}: 3,
	} {
		for _, size := range []int{1, 3, 100} {
			t.Run(fmt.Sprintf("%+v by %d", filter, size), func(t *testing.T) {
				t.Parallel()
				seen := map[domain.EffectID]bool{}
				filter := filter // its own cursor
				filter.Limit = size
				for {
					page, err := List(t.Context(), b.pool, filter)
					require.NoError(t, err)
					require.LessOrEqual(t, len(page.Rows), size)
					for _, r := range page.Rows {
						require.False(t, seen[r.ID], "listed twice")
						seen[r.ID] = true
					}
					if page.Next == "" {
						break
					}
					filter.After = page.Next
				}
				require.Len(t, seen, want)
			})
		}
	}
}

// TestListRefusesABadCursor: it must not be taken for the first page.
func TestListRefusesABadCursor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, after := range []string{"x", "!!", "e30x"} {
		_, err := List(t.Context(), b.pool, Filter{After: after})
		require.ErrorIs(t, err, ErrCursor)
	}
	_, err := Show(t.Context(), b.pool, domain.NewID[domain.EffectID](), DeadAfter)
	require.ErrorIs(t, err, domain.ErrNotFound)
}
