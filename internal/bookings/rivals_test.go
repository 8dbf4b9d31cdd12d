package bookings_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/internal/bookings"
)

// Incident 05 (G2): fifty rivals with keys of their own for one slot. Expected: exactly as many winners as places, all
// others a stored 409, no other error, no deadlock, nothing charged for a loser.
func TestIncident05_FiftyRivals(t *testing.T) {
	t.Parallel()
	for _, places := range []int{1, 3} {
		t.Run(fmt.Sprint("places ", places), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.resource(places)
			b.connect()
			answers := make([]bookings.Response, 50)
			errs := make([]error, 50)
			together(50, func(i int) {
				answers[i], errs[i] = b.service.Accept(b.ctx, b.client, fmt.Sprint("rival", i), request(id, 0))
			})
			won := 0
			for i, a := range answers {
				require.NoError(t, errs[i])
				if a.Status == 201 {
					won++
					continue
				}
				require.Equal(t, "slot_unavailable", code(a))
			}
			require.Equal(t, places, won)
			require.Equal(t, each(places, 50-places), b.rows())
			require.Zero(t, b.deadlocks())
		})
	}
}

// connect opens all of the pool's connections: rivals have to meet in the database, and not come to it one by one.
func (b *bed) connect() {
	b.Helper()
	var all []*pgxpool.Conn
	for range b.pool.Config().MaxConns {
		c, err := b.pool.Acquire(b.ctx)
		require.NoError(b, err)
		all = append(all, c)
	}
	for _, c := range all {
		c.Release()
	}
}

// Overlapping, enclosing, enclosed and touching ranges at once (G2, incident 25). Whatever the order, no place is ever
// taken twice, touching ranges all fit, and every loser did overlap a winner on every place.
func TestIncident05_MixedRanges(t *testing.T) {
	t.Parallel()
	for _, places := range []int{1, 3} {
		t.Run(fmt.Sprint("places ", places), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.resource(places)
			rivals := make([]bookings.Request, 0, 60)
			for i := range 60 {
				r := request(id, []float64{0, 1, -1, 0.5, 2, -2}[i%6])
				if i%12 > 5 {
					r.End = r.End.Add(r.End.Sub(r.Start)) // four hours: encloses others
				}
				rivals = append(rivals, r)
			}
			answers := make([]bookings.Response, len(rivals))
			errs := make([]error, len(rivals))
			together(len(rivals), func(i int) {
				answers[i], errs[i] = b.service.Accept(b.ctx, b.client, fmt.Sprint("rival", i), rivals[i])
			})
			var winners []bookings.Request
			for i := range answers {
				require.NoError(t, errs[i])
				if answers[i].Status == 201 {
					winners = append(winners, rivals[i])
				}
			}
			require.NotEmpty(t, winners)
			require.Zero(t, b.count(`
				SELECT count(*) FROM allocations a JOIN allocations o
				    ON o.resource_id = a.resource_id AND o.place = a.place AND o.booking_id <> a.booking_id AND o.during && a.during
				 WHERE a.active AND o.active`))
			for i, a := range answers {
				if a.Status != 201 {
					require.GreaterOrEqual(t, overlapping(winners, rivals[i]), places, "rival %d lost although a place was free all the time", i)
				}
			}
			require.Zero(t, b.deadlocks())
			require.Equal(t, len(winners), b.count(`SELECT count(*) FROM river_job`), "no charge for losers")
		})
	}
}

// overlapping counts the winners whose range overlaps r's.
func overlapping(winners []bookings.Request, r bookings.Request) int {
	n := 0
	for _, w := range winners {
		if w.Start.Before(r.End) && r.Start.Before(w.End) {
			n++
		}
	}
	return n
}

// Touching ranges are neighbours, not rivals: all of them fit (incident 25).
func TestIncident25_TouchingRangesAllFit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.resource(1)
	statuses := make([]int, 12)
	together(12, func(i int) {
		a, err := b.service.Accept(b.ctx, b.client, fmt.Sprint("n", i), request(id, float64(2*i)))
		if err == nil {
			statuses[i] = a.Status
		}
	})
	require.Equal(t, slices.Repeat([]int{201}, 12), statuses)
}

// Several places at once: takers of two, of three rivals for three places, never deadlock and never take too many (G2).
func TestRivals_SeveralPlacesAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.resource(5)
	quantity := make([]int, 40)
	together(40, func(i int) {
		r := request(id, 0)
		r.Quantity = 1 + i%3
		a, err := b.service.Accept(b.ctx, b.client, fmt.Sprint("q", i), r)
		if err == nil && a.Status == 201 {
			quantity[i] = r.Quantity
		}
	})
	taken := 0
	for _, q := range quantity {
		taken += q
	}
	require.LessOrEqual(t, taken, 5)
	require.Positive(t, taken)
	require.Equal(t, taken, b.count(`SELECT count(*) FROM allocations WHERE active`))
	require.Equal(t, taken, b.count(`SELECT coalesce(sum(quantity), 0) FROM bookings`))
	require.Zero(t, b.deadlocks())
}
