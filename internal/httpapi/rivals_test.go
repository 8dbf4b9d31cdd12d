package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/httpapi"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

// fate is what becomes of a round's winner, while the next round's rivals are after its slot.
type fate struct {
	card string
	meet func(ctx context.Context, p *provider, w *payments.Payments, id domain.BookingID) error
}

func fates() []fate {
	unpaid := fate{"pm_card_visa", expires}
	fenced := fate{"pm_card_chargeDeclined", isFenced}
	paid := fate{"pm_card_visa", isPaid}
	return []fate{unpaid, fenced, unpaid, fenced, paid}
}

func isPaid(ctx context.Context, p *provider, w *payments.Payments, id domain.BookingID) error {
	return p.run(ctx, w, id, domain.EffectCharge, 20)
}

// isFenced is the end of a booking that has an intent: its slot stays taken until the provider has proved that it is over.
func isFenced(ctx context.Context, p *provider, w *payments.Payments, id domain.BookingID) error {
	if err := isPaid(ctx, p, w, id); err != nil { // or rather declined
		return err
	}
	p.sim.AddFault(stripesim.Fault{Operation: "payment_intents.cancel", Fault: "delay", DelayMS: 50})
	if err := expires(ctx, p, w, id); err != nil {
		return err
	}
	return p.run(ctx, w, id, domain.EffectCancel, 20)
}

// expires is the end of a booking for which nothing was ever sent.
func expires(ctx context.Context, p *provider, w *payments.Payments, id domain.BookingID) error {
	_, err := p.b.db.Pool.Exec(ctx, `UPDATE bookings SET hold_expires_at = clock_timestamp() WHERE id = $1 AND status = 'held'`, id)
	if err != nil {
		return err
	}
	_, err = w.SweepHold(ctx)
	return err
}

// G2, G3: fifty rivals at a time for ranges that are equal, overlap in part, enclose and are enclosed, while the slot's
// owner is confirmed or comes to its end. Expected: at no moment do two own it, losers get their 409 and nothing else,
// a slot whose owner has ended sells again, and only the one who stays is charged.
func TestIncident05_RivalsWhileTheOwnerIsConfirmedOrEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := newProvider(t, b)
	w := p.worker(b.db.Pool, p.gateway)
	alone := eachMoment(func() error {
		var places, owners int
		err := b.db.Pool.QueryRow(t.Context(), `
			SELECT (SELECT count(*) FROM allocations WHERE active),
			       (SELECT count(*) FROM bookings WHERE status IN ('held', 'ending', 'confirmed'))`).Scan(&places, &owners)
		if err == nil && (places > 1 || owners > 1) {
			err = fmt.Errorf("%d own the slot, which is taken %d times", owners, places)
		}
		return err
	})

	var winners []domain.BookingID
	for round, f := range fates() {
		won := b.rivals(t, fmt.Sprint("round-", round), f.card, func() {
			if round > 0 {
				require.NoError(t, fates()[round-1].meet(t.Context(), p, w, winners[round-1]))
			}
		})
		if len(won) == 0 { // all came before the end
			again := b.book(t, fmt.Sprint("after-round-", round), b.body(set("payment_method", f.card)))
			require.Equal(t, http.StatusCreated, again.status, "the slot is free and does not sell: %s", again.body)
			won = []answer{again}
		}
		require.Len(t, won, 1)
		winners = append(winners, bookingOf(t, won[0]))
	}
	last := len(winners) - 1
	won := b.rivals(t, "last", "pm_card_visa", func() {
		require.NoError(t, fates()[last].meet(t.Context(), p, w, winners[last]))
	})
	require.Empty(t, won)
	b.book(t, "late", b.body()).refused(t, http.StatusConflict, httpapi.CodeSlotUnavailable)
	require.NoError(t, alone())

	require.Equal(t, len(winners), b.count(t, `SELECT count(*) FROM bookings`))
	require.Equal(t, len(winners), b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'charge'`), "no charge for a loser")
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM bookings WHERE status = 'confirmed' AND id = $1`, winners[last]))
	require.Equal(t, last, b.count(t, `SELECT count(*) FROM bookings WHERE status = 'expired'`))
	ledger := p.sim.Ledger()
	require.NoError(t, ledger.Check())
	require.Len(t, ledger.Succeeded(""), 1)
	require.Len(t, ledger.Succeeded(winners[last].String()), 1)
	require.Zero(t, b.count(t, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
}

// rivals are fifty clients at once, each after one of four ranges that share an hour, under a new key each time, for as
// long as something else goes on. It returns who has won, and asserts that each loser got its 409.
func (b *bed) rivals(t *testing.T, key, card string, meanwhile func()) (won []answer) {
	t.Helper()
	ranges := [][2]string{{"10", "11"}, {"10", "12"}, {"09", "11"}, {"09", "12"}}
	answers := make([][]answer, 50)
	var over atomic.Bool
	var all sync.WaitGroup
	for i := range answers {
		r := ranges[i%len(ranges)]
		body := b.body(set("start", "2027-05-01T"+r[0]+":00:00+02:00"), set("end", "2027-05-01T"+r[1]+":00:00+02:00"),
			set("payment_method", card), without("expected_total"))
		all.Go(func() {
			for n := 0; n == 0 || !over.Load(); n++ {
				answers[i] = append(answers[i], b.book(t, fmt.Sprintf("%s-rival-%d-%d", key, i, n), body))
			}
		})
	}
	meanwhile()
	over.Store(true)
	all.Wait()
	for _, a := range slices.Concat(answers...) {
		if a.status == http.StatusCreated {
			won = append(won, a)
			continue
		}
		a.refused(t, http.StatusConflict, httpapi.CodeSlotUnavailable)
	}
	return won
}
