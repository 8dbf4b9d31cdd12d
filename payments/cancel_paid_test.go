package payments_test

import (
	"fmt"
	"log/slog"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripesim"
)

func eur(amount int64) domain.Money { return domain.Money{Amount: amount, Currency: "EUR"} }

func (b *bed) preview(id domain.BookingID) payments.Cancellation {
	b.Helper()
	c, err := payments.NewViewer(b.db.Pool).Cancellation(b.ctx, b.client, id)
	require.NoError(b, err)
	return c
}

// A paid booking that is cancelled is over at once, and its slot is another client's before the money is back (G2): the provider
// answers nothing until then. What goes back is by the policy that the customer was shown, whatever the resource's is by now.
func TestCancelPaid_TheSlotIsSoldAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.policy(`[{"hours_before": 48, "percent": 100}, {"hours_before": 24, "percent": 50}]`)
	id := b.confirmed()
	b.policy(`[]`)
	shown := b.preview(id)
	require.Equal(t, []any{payments.CancelNow, eur(2500), 100, b.start.Add(-48 * time.Hour)}, []any{shown.Outcome, shown.Refund, shown.Percent, shown.Until.UTC()})
	require.Len(t, shown.Then, 2)
	require.Equal(t, []any{eur(1250), 50, b.start.Add(-24 * time.Hour)}, []any{shown.Then[0].Refund, shown.Then[0].Percent, shown.Then[0].Until.UTC()})
	require.Equal(t, payments.CancelTerm{Refund: eur(0)}, shown.Then[1])

	b.sim.AddFault(stripesim.Fault{Operation: "refunds.create", Fault: "error_503", Times: -1})
	require.Equal(t, 200, b.cancel(id, "stop", shown.Refund))
	booking, payment, taken := b.statuses(id)
	require.Equal(t, []any{"cancelled", "succeeded", false}, []any{booking, payment, taken})
	owner := b.client
	b.client = domain.NewID[domain.ClientID]()
	b.exec(`INSERT INTO clients (id, name) VALUES ($1, 'rival')`, b.client)
	rival := b.bookAt("rival", "pm_card_mastercard")
	b.work(b.engine(), rival, domain.EffectCharge)
	b.agree(rival)
	b.client = owner
	require.Empty(t, b.refunds(id), "still to be made")
	b.sim.ClearFaults()
	b.cancelled(id, 2500)
	require.Equal(t, []string{"held", "confirmed", "cancelled", "refunded"}, b.events(id))
	require.Equal(t, 200, b.cancel(id, "later", shown.Refund), "nothing is left to do")
	b.cancelled(id, 2500)
	b.agree(rival)
}

// What goes back around each step, by the database's clock and by the provider's ledger, after the start and after the end.
// The edge itself is a pure function's (domain.TestRefundPolicy_TheEdgeOfEachStep).
func TestCancelPaid_ByTheClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.policy(`[{"hours_before": 48, "percent": 100}, {"hours_before": 24, "percent": 33}]`)
	for _, tt := range []struct {
		before string // the start
		status int
		back   int64
	}{
		{"48 hours 1 minute", 200, 2500},
		{"47 hours 59 minutes", 200, 825},
		{"24 hours 1 minute", 200, 825},
		{"23 hours 59 minutes", 200, 0},
		{"-30 minutes", 200, 0},
		{"-61 minutes", 409, 0},
	} {
		id := b.confirmed()
		b.exec(`UPDATE bookings SET during = tstzrange(clock_timestamp() + $2::interval, clock_timestamp() + $2::interval + interval '1 hour') WHERE id = $1`, id, tt.before)
		c := b.preview(id)
		require.Equal(t, eur(tt.back), c.Refund, tt.before)
		require.Equal(t, 409, b.cancel(id, "other", eur(tt.back+1)), tt.before)
		require.Equal(t, tt.status, b.cancel(id, "stop", c.Refund), tt.before)
		if tt.status == 200 {
			b.cancelled(id, tt.back)
			continue
		}
		require.Equal(t, payments.CancelTooLate, c.Outcome)
		b.agree(id) // confirmed as before
	}
}

// Half of what was paid, in currencies that count differently (G8): the provider gives back what the table says, which was worked
// out by hand.
func TestCancelPaid_InTheCurrencysSteps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct {
		currency   string
		paid, back int64
		received   int64 // by the customer, in the provider's units
	}{
		{"USD", 2501, 1251, 1251},
		{"JPY", 1001, 501, 501},
		{"KWD", 1230, 620, 620},     // 0.615 is finer than what is counted
		{"UGX", 3701, 1851, 185100}, // sent with two digits more
		{"MGA", 100300, 50200, 502}, // sent in whole ariary
	} {
		r, err := b.bookings.CreateResource(b.ctx, domain.Resource{
			Name: "Room", TimeZone: "UTC", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: tt.paid, Currency: tt.currency}, Hold: time.Hour,
			Refunds: domain.RefundPolicy{{HoursBefore: 1, Percent: 50}},
		})
		require.NoError(t, err)
		b.resource = r.ID
		id := b.confirmed()
		require.Equal(t, 200, b.cancel(id, "stop", domain.Money{Amount: tt.back, Currency: tt.currency}))
		require.Equal(t, "done", b.healRefund(id), tt.currency)
		sum, n := b.back(id)
		require.Equal(t, []int64{tt.back, 1}, []int64{sum, n})
		refunds := b.refunds(id)
		require.Len(t, refunds, 1)
		require.Equal(t, tt.received, refunds[0].Amount, tt.currency)
	}
}

// One booking is cancelled at once under five keys, twice under each: once is enough (G1, G3).
func TestCancelPaid_AtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.confirmed()
	together(10, func(i int) {
		if status, err := b.insist(id, fmt.Sprint(i/2), eur(2500)); status != 200 {
			t.Errorf("%d: %v", status, err)
		}
	})
	b.cancelled(id, 2500)
	require.Equal(t, 1, b.sent("refunds.create"))
}

// The hold ends, another card is brought and charged, and the customer cancels, all at once (G3, G4). Expected: over; if anything
// was taken, all of it is back.
func TestCancel_AgainstExpiryAndAnotherCard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := make([]domain.BookingID, 12)
	for i := range ids {
		ids[i] = b.declined()
	}
	p := b.engine()
	desk := b.cards(payments.CardLimits{PerClient: 1 << 20})
	together(3*len(ids), func(i int) {
		id := ids[i/3]
		switch i % 3 {
		case 0:
			_, _ = b.changeAnswer(desk, id, "second", "pm_card_visa")
			_, _ = p.Charge(b.ctx, outbox.Job{Effect: b.effect(id, domain.EffectCharge)})
		case 1:
			if i%2 == 0 {
				_, _ = b.db.Pool.Exec(b.ctx, `UPDATE bookings SET hold_expires_at = clock_timestamp() WHERE id = $1`, id)
				_, _ = p.SweepHold(b.ctx)
			}
		case 2:
			if status, err := b.insist(id, "stop"); status != 200 {
				t.Errorf("%d: %v", status, err)
			}
		}
	})
	for _, id := range ids {
		b.reconcile(p, id)
		if booking, _, _ := b.statuses(id); booking == "expired" { // with no intent left to fence, the sweep was first
			b.agree(id)
			continue
		}
		b.cancelled(id, int64(2500*len(b.charges(id))))
	}
}

// Its slot is fought for by ten rivals from the moment at which a paid booking is cancelled (G2): one has it, and none before.
func TestCancelPaid_RivalsForTheSlot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.confirmed()
	var sold atomic.Int32
	together(11, func(i int) {
		if i == 0 {
			if status, err := b.insist(id, "stop"); status != 200 {
				t.Errorf("%d: %v", status, err)
			}
			return
		}
		for try, deadline := 0, time.Now().Add(time.Minute); sold.Load() == 0 && time.Now().Before(deadline); try++ {
			answer, err := b.bookings.Accept(b.ctx, b.client, fmt.Sprint("rival ", i, ", ", try), bookings.Request{
				ResourceID: b.resource, Start: b.start, End: b.start.Add(time.Hour), CustomerName: "Ada", CustomerEmail: "ada@example.org",
				PaymentMethod: "pm_card_visa",
			})
			if err == nil && answer.Status == 201 {
				sold.Add(1)
			}
		}
	})
	require.Equal(t, int32(1), sold.Load())
	require.Equal(t, 1, b.taken())
	b.cancelled(id, 2500)
}

// The COMMIT of a cancellation is lost, or its reply (G1, G6): all of it is there or nothing is, and the request, which tries
// again by itself, is answered as if nothing had happened.
func TestCancelPaid_TheCommitIsCut(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]testdb.Cut{"reply lost": testdb.LoseReply, "commit lost": testdb.LoseIt} {
		for _, heals := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", heals: ", heals), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				id := b.confirmed()
				proxy := testdb.NewCutter(t, b.db)
				pool, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: proxy.URL, ApplicationName: "cut"})
				require.NoError(t, err)
				t.Cleanup(pool.Close)
				var commits atomic.Int32
				proxy.Judge(func(m testdb.Message) testdb.Cut {
					if m.IsCommit() && (commits.Add(1) == 1 || !heals) {
						return cut
					}
					return testdb.Pass
				})
				budget := time.Second // of one that never learns the answer
				if heals {
					budget = time.Minute
				}
				desk := payments.NewDesk(bookings.New(pool, noWaker{}, bookings.Config{Budget: budget}), noWaker{}, payments.CardLimits{}, slog.New(slog.DiscardHandler))
				ask := payments.Ask{Client: b.client, Booking: id, Key: "stop"}
				answer, err := cancelAt(b.ctx, desk, ask, eur(2500))
				switch booking, _, taken := b.statuses(id); {
				case heals:
					require.NoError(t, err)
				case cut == testdb.LoseIt:
					require.Error(t, err)
					require.Equal(t, []any{"confirmed", true}, []any{booking, taken})
					_, n := b.back(id)
					require.Zero(t, n)
					require.Equal(t, []string{"held", "confirmed"}, b.events(id))
				}
				if !heals {
					answer, err = cancelAt(b.ctx, b.cards(payments.CardLimits{}), ask, eur(2500))
					require.NoError(t, err)
				}
				require.Equal(t, "/v1/bookings/"+id.String(), path.Clean(answer.Location))
				require.Equal(t, "cancelled cancelled 2500 EUR", string(answer.Body))
				b.cancelled(id, 2500)
			})
		}
	}
}
