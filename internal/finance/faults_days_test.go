package finance_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/internal/testdb"
	"holdfast/payments"
)

// shelf is a provider of the past: transactions as they lie, newest last, a page after the other from the last one that was seen.
type shelf struct {
	rows []payments.Transaction
	page int
}

func (s *shelf) EachTransaction(_ context.Context, from, to time.Time, each func([]payments.Transaction) error) error {
	page := make([]payments.Transaction, 0, s.page)
	for _, t := range slices.Backward(s.rows) {
		if t.Created.Before(from) || !t.Created.Before(to) {
			continue
		}
		if page = append(page, t); len(page) == s.page {
			if err := each(page); err != nil {
				return err
			}
			page = page[:0]
		}
	}
	return each(page)
}

func (*shelf) ChargeTransactions(context.Context, string) ([]payments.Transaction, error) {
	return nil, nil
}

func (*shelf) Payout(context.Context, string) (payments.Payout, error) { panic("there is none") }

func (*shelf) EachPayoutTransaction(context.Context, string, func([]payments.Transaction) error) error {
	panic("there is none")
}

// Around the midnights of three zones, on both days on which their clocks change: a dozen transactions in the second before each midnight,
// and as many in the second that begins with it, which is more than a page holds. Each is in the report of one day, and of that day
// alone; the days add up to the period, and each begins with what the one before has ended with.
func TestFaults_OfDays(t *testing.T) {
	t.Parallel()
	for zone, changes := range map[string][]string{
		"Europe/Berlin":       {"2025-03-30", "2025-10-26"},
		"America/New_York":    {"2025-03-09", "2025-11-02"},
		"Australia/Lord_Howe": {"2025-04-06", "2025-10-05"}, // by half an hour
		"Asia/Kathmandu":      {"2025-03-30", "2025-10-26"}, // never; 5:45 from UTC
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			place, err := time.LoadLocation(zone)
			require.NoError(t, err)
			s, want := &shelf{page: 7}, map[string][]string{} // by day: what was created on it
			amounts := map[string]int64{}
			for _, change := range changes {
				day, err := time.ParseInLocation(time.DateOnly, change, place)
				require.NoError(t, err)
				for n := -1; n <= 2; n++ {
					midnight := day.AddDate(0, 0, n)
					for i := range 24 {
						at := midnight.Add(time.Duration(i/12-1) * time.Second)
						amount := int64(100 + len(s.rows))
						id := fmt.Sprintf("txn_%04d", len(s.rows))
						s.rows = append(s.rows, payments.Transaction{
							ID: id, Type: "charge", Category: "charge", SourceID: "ch_" + id, IntentID: "pi_" + id, Created: at, Available: at,
							Amount: domain.Money{Amount: amount, Currency: "USD"}, Net: amount,
						})
						on := at.In(place).Format(time.DateOnly)
						want[on], amounts[on] = append(want[on], id), amounts[on]+amount
					}
				}
			}
			d := finance.New(testdb.New(t).Pool, s, finance.Config{ReadsPerSecond: 1e6}, quiet())
			report := func(from, to string) finance.Report {
				r, err := d.Report(t.Context(), finance.Period{From: from, To: to, Zone: zone})
				require.NoError(t, err)
				require.True(t, r.Complete, r.Incomplete)
				require.Zero(t, r.Broken(), "%v", r.Identities)
				return r
			}
			first, last := s.rows[0].Created, s.rows[len(s.rows)-1].Created // what is of the next day is there, too, when a day is told
			require.NoError(t, d.Read(t.Context(), finance.Window{From: first, To: last.Add(time.Second)}))
			for _, change := range changes {
				day, err := time.Parse(time.DateOnly, change)
				require.NoError(t, err)
				name := func(n int) string { return day.AddDate(0, 0, n).Format(time.DateOnly) }
				var all []string
				var sum, closing int64
				for n := -1; n <= 1; n++ {
					r := report(name(n), name(n+1))
					require.Equal(t, want[name(n)], about(r, finance.ChargedWithoutBooking), name(n))
					require.Len(t, r.Exceptions, len(want[name(n)]))
					require.Len(t, r.Days, 1)
					require.Equal(t, []any{name(n), amounts[name(n)]}, []any{r.Days[0].Day, r.Days[0].Net})
					require.Equal(t, amounts[name(n)], total(r, "charge").Amount)
					if n > -1 {
						require.Equal(t, closing, r.Balances[0].Opening, "where the day before has ended")
					}
					all, sum, closing = append(all, want[name(n)]...), sum+r.Balances[0].Activity, r.Balances[0].Closing
				}
				r := report(name(-1), name(2))
				require.Equal(t, all, about(r, finance.ChargedWithoutBooking), "none twice, and none lost")
				require.Equal(t, sum, r.Balances[0].Activity)
				require.Equal(t, closing, r.Balances[0].Closing)
				require.Len(t, r.Days, 3)
				for n, on := range r.Days {
					require.Equal(t, []any{name(n - 1), amounts[name(n-1)]}, []any{on.Day, on.Net})
				}
			}
		})
	}
}
