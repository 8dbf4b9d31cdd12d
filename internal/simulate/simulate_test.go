package simulate

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/bookings"
	"holdfast/internal/pgserver"
	"holdfast/internal/testdb"
	"holdfast/internal/testsize"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// adminURL names the run's database server, or starts one.
func adminURL(t *testing.T) string {
	t.Helper()
	if url, _ := os.LookupEnv(testdb.URLEnv); url != "" {
		return url
	}
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server.URL()
}

func newSite(t *testing.T) *site {
	t.Helper()
	s, err := openSite(t.Context(), adminURL(t), 0)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// TestSimulation_Seeds runs the first seeds of `make simulate` (forty, in the full run two hundred), whose schedules hold everything that can happen: whatever does,
// every promise that a checker can see is kept (G1 to G7).
func TestSimulation_Seeds(t *testing.T) {
	t.Parallel()
	ends, seeds := map[string]int{}, testsize.Of(40, 200)
	summary, err := Run(t.Context(), Options{
		From: 1, Seeds: seeds, Workers: 3, AdminURL: adminURL(t),
		Each: func(v Verdict) {
			for end, n := range v.Ends {
				ends[end] += n
			}
			if len(v.Violations) > 0 {
				t.Errorf("%s\nseed %d violates %v; again: make simulate SEED=%d", strings.Join(v.History, "\n"), v.Seed, v.Violations, v.Seed)
			}
		},
	})
	require.NoError(t, err)
	require.Equal(t, seeds, summary.Seeds)
	t.Logf("bookings by their end: %v, in %s", ends, summary.Elapsed)
	for _, end := range []string{"confirmed", "expired", "cancelled", "failed"} {
		require.Greater(t, ends[end], seeds/20, "hardly a booking has ended so: the schedules test little of it")
	}
}

// TestSimulation_ASeedIsOneSchedule: the same seed is the same history, to the byte, also on another database and after others.
func TestSimulation_ASeedIsOneSchedule(t *testing.T) {
	t.Parallel()
	one, other := newSite(t), newSite(t)
	for seed := uint64(1000); seed < 1000+uint64(testsize.Of(2, 4)); seed++ { // an even and an odd one at least
		first, err := one.run(t.Context(), Plan{Seed: seed})
		require.NoError(t, err)
		if seed%2 == 0 {
			_, err = other.run(t.Context(), Plan{Seed: seed + 500})
			require.NoError(t, err)
		}
		again, err := other.run(t.Context(), Plan{Seed: seed})
		require.NoError(t, err)
		require.Equal(t, first.History, again.History)
	}
}

// TestSimulation_TheCheckerSees: what must never be is planted into the rows that a good schedule has left, or into what is
// known from outside, and the checker names the promise that it breaks.
func TestSimulation_TheCheckerSees(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		name, invariant string
		plant           func(s *schedule)
	}{
		{"a booking without a key", "G1", plants(`DELETE FROM idempotency_keys`)},
		{"a key that nobody used", "G1", plants(`UPDATE idempotency_keys SET key = 'other' WHERE key = 'key-1'`)},
		{"a slot that stays taken", "G2", plants(`UPDATE allocations SET active = NOT active`)},
		{"another price", "G3", plants(`UPDATE bookings SET amount = amount + 1`)},
		{"a payment that never was", "G3", plants(`UPDATE payments SET status = 'canceled' WHERE status = 'succeeded'`)},
		{"a send that was not recorded", "G3", plants(`DELETE FROM provider_calls WHERE operation = 'confirm'`)},
		{"another card", "G3", func(s *schedule) {
			for charge := range s.cards {
				s.cards[charge] = "pm_card_mastercard"
			}
		}},
		{"money kept", "G4", plants(`UPDATE bookings SET status = 'expired', ending_reason = 'expire', ended_at = now() WHERE status = 'confirmed'`)},
		{"a send after the hold", "G4", plants(`UPDATE bookings SET hold_expires_at = created_at - interval '1 hour'`)},
		{"a doubt that stays", "G5", plants(`UPDATE outbox SET status = 'in_doubt', finished_at = NULL WHERE kind = 'charge'`)},
		{"an event that was not told", "G6", func(s *schedule) { s.told = s.told[1:] }},
		{"events out of order", "G6", func(s *schedule) { s.told[0], s.told[1] = s.told[1], s.told[0] }},
		{"an event of nothing", "G6", plants(`UPDATE outbox SET event_seq = event_seq + 1 WHERE event_type = 'confirmed'`)},
		{"an act that left no row", "G7", plants(`DELETE FROM operator_actions`)},
		{"an act of nobody", "G7", func(s *schedule) { s.acted = nil }},
		{"a token in an event", "G9", plants(`UPDATE outbox SET payload = payload || '{"card": "pm_card_visa"}' WHERE kind = 'publish'`)},
	} {
		violations := checkedAfter(t.Context(), t, s, c.plant)
		var seen []string
		for _, violation := range violations {
			seen = append(seen, violation.Invariant)
		}
		require.Contains(t, seen, c.invariant, "%s: %v", c.name, violations)
	}
}

// checkedAfter lets a booking be paid for and an operator act, plants a fault and checks.
func checkedAfter(ctx context.Context, t *testing.T, at *site, plant func(*schedule)) []Violation {
	t.Helper()
	s := newSchedule(ctx, at, Plan{Seed: 1})
	at.schedule, s.chance = s, newChance(1, -1)
	defer func() { at.schedule = nil }()
	s.setUp()
	s.providerPauses, s.statementPauses, s.cuts = 0, 0, 0
	start := s.start.Add(20 * time.Hour)
	paid := &request{what: "a paid booking", key: "key-paid", book: true, send: func(ctx context.Context) (bookings.Response, error) {
		return s.service.Accept(ctx, s.clients[0], "key-paid", bookings.Request{
			ResourceID: s.resources[0].ID, Start: start, End: start.Add(time.Hour), CustomerName: "Ada", CustomerEmail: "ada@example.org",
			PaymentMethod: "pm_card_visa",
		})
	}}
	s.requests = append(s.requests, paid)
	s.ask(paid)
	s.pauseKind()
	s.heal()
	s.check()
	require.Empty(t, s.violations, "before anything was planted")
	plant(s)
	s.check()
	return s.violations
}

func plants(sql string) func(*schedule) { return func(s *schedule) { s.exec(sql) } }
