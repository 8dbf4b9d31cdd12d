package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/internal/postgres"
)

// TestWalks: every key is within one walk, and what is far apart is not joined.
func TestWalks(t *testing.T) {
	t.Parallel()
	at := func(after time.Duration) uuid.UUID {
		id := uuid.Must(uuid.NewV7())
		ms := time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC).Add(after).UnixMilli()
		for i := range 6 {
			id[i] = byte(ms >> (40 - 8*i))
		}
		return id
	}
	a, b, c, old := at(0), at(time.Second), at(3*time.Second), uuid.MustParse("00000000-0000-4000-8000-000000000000")
	from, to := postgres.Walks([]uuid.UUID{c, b, old, a, b})
	require.Equal(t, []uuid.UUID{old, a, c}, from)
	require.Equal(t, []uuid.UUID{old, b, c}, to)
	from, to = postgres.Walks(nil)
	require.Equal(t, []uuid.UUID{}, from, "an array, and not null")
	require.Equal(t, []uuid.UUID{}, to)

	first, last := postgres.WalksOfNumbers([]int64{205, 7, 104, 7, -9_000_000_000_000_000_000, 9_000_000_000_000_000_000})
	require.Equal(t, []int64{-9_000_000_000_000_000_000, 7, 205, 9_000_000_000_000_000_000}, first)
	require.Equal(t, []int64{-9_000_000_000_000_000_000, 104, 205, 9_000_000_000_000_000_000}, last)
}
