package payments_test

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/payments"
)

// woken counts who was woken.
type woken struct {
	mu    sync.Mutex
	kinds []domain.EffectKind
}

func (w *woken) Wake(kind domain.EffectKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds = append(w.kinds, kind)
}

// Incident 01 for what a customer asks of a booking (G1): the COMMIT that decides it is passed on and its reply dropped, or is
// not passed on. Expected: the same call answers with what was decided, once; whoever has to carry it out is woken; and the
// key answers the same for ever.
func TestIncident01_TheCommitOfAnAsk(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]testdb.Cut{"reply lost": testdb.LoseReply, "commit lost": testdb.LoseIt} {
		for ask, kind := range map[string]domain.EffectKind{"another card": domain.EffectCharge, "cancel": domain.EffectCancel} {
			t.Run(ask+", "+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				id := b.declined()
				proxy := testdb.NewCutter(t, b.db)
				pool, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: proxy.URL, ApplicationName: "cut"})
				require.NoError(t, err)
				t.Cleanup(pool.Close)
				waker := &woken{}
				desk := payments.NewDesk(bookings.New(pool, noWaker{}, bookings.Config{Budget: time.Minute}), waker, payments.CardLimits{}, slog.New(slog.DiscardHandler))
				answer := func() bookings.Response {
					if ask == "another card" {
						made, err := b.changeAnswer(desk, id, "key", "pm_card_visa")
						require.NoError(t, err)
						return made
					}
					made, err := desk.Cancel(b.ctx, payments.Ask{Client: b.client, Booking: id, Key: "key"}, nil,
						func(v payments.View, _ payments.Cancellation) (int, []byte, error) {
							return 202, []byte(v.Booking.Status), nil
						})
					require.NoError(t, err)
					return made
				}
				var commits atomic.Int32
				proxy.Judge(func(m testdb.Message) testdb.Cut {
					if m.IsCommit() && commits.Add(1) == 1 {
						return cut
					}
					return testdb.Pass
				})
				first := answer()
				require.Equal(t, 202, first.Status)
				require.Equal(t, cut == testdb.LoseReply, first.Replayed, "the second try finds what the first has committed")
				require.Equal(t, []domain.EffectKind{kind}, waker.kinds)
				again := answer()
				require.True(t, again.Replayed)
				require.Equal(t, first.Body, again.Body)
				require.Len(t, waker.kinds, 1, "a replay has nobody to wake")
				var open, cards int
				b.scan(`SELECT count(*) FROM outbox WHERE booking_id = $1 AND kind = $2 AND status = 'pending'`, &open, id, kind)
				b.scan(`SELECT count(*) FROM card_changes c JOIN payments p ON p.id = c.payment_id WHERE p.booking_id = $1`, &cards, id)
				require.Equal(t, 1, open)
				require.Equal(t, kind == domain.EffectCharge, cards == 1)
			})
		}
	}
}
