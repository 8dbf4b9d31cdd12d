package payments_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

// bookkeeperEnv holds the work of a process that keeps books in a time zone of its own.
const bookkeeperEnv = "HOLDFAST_TEST_BOOKKEEPER"

// bookkeeping is what such a process is told.
type bookkeeping struct {
	Database, Provider string
	Windows            []time.Time // that it reads the transactions between, one after the other
	Zones              []string
	From, To           time.Time
}

// bookkeep reads the transactions and prints the days' sums of each zone.
func bookkeep(work string) {
	ctx := context.Background()
	sums := map[string][]payments.DaySum{}
	err := func() error {
		var w bookkeeping
		if err := json.Unmarshal([]byte(work), &w); err != nil {
			return err
		}
		pool, err := pgxpool.New(ctx, w.Database)
		if err != nil {
			return err
		}
		defer pool.Close()
		gateway, err := stripe.New(stripe.Config{APIKey: "sk_test_payments", BaseURL: w.Provider, Timeout: time.Minute})
		if err != nil {
			return err
		}
		p := payments.New(pool, gateway, noWaker{}, payments.Config{}, slog.New(slog.DiscardHandler))
		for i := range w.Windows[1:] {
			if _, err := p.ReadTransactions(ctx, w.Windows[i], w.Windows[i+1]); err != nil {
				return err
			}
		}
		for _, zone := range w.Zones {
			if sums[zone], err = payments.Days(ctx, pool, zone, w.From, w.To); err != nil {
				return err
			}
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(sums)
}

// inZone does the work in a process with this TZ.
func (b *bed) inZone(tz string, work bookkeeping) map[string][]payments.DaySum {
	raw, err := json.Marshal(work)
	require.NoError(b, err)
	cmd := exec.CommandContext(b.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), bookkeeperEnv+"="+string(raw), "TZ="+tz)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(b, cmd.Run(), "TZ=%s: %s", tz, &stderr)
	var sums map[string][]payments.DaySum
	require.NoError(b, json.Unmarshal(stdout.Bytes(), &sums))
	return sums
}

// ledgerDays sums up the provider's own ledger by the days of a zone, as it would be done by hand.
func (b *bed) ledgerDays(zone string) []payments.DaySum {
	location, err := time.LoadLocation(zone)
	require.NoError(b, err)
	sums := map[string]*payments.DaySum{}
	for _, t := range b.sim.Ledger().BalanceTransactions {
		day := time.Unix(t.Created, 0).In(location).Format(time.DateOnly)
		currency := map[string]string{"eur": "EUR", "sek": "SEK"}[t.Currency]
		key := day + t.ReportingCategory + currency
		if sums[key] == nil {
			sums[key] = &payments.DaySum{Day: day, Category: t.ReportingCategory, Currency: currency}
		}
		s := sums[key]
		s.Count, s.Amount, s.Fee, s.Net = s.Count+1, s.Amount+t.Amount, s.Fee+t.Fee, s.Net+t.Net
	}
	var all []payments.DaySum
	for _, s := range sums {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(x, y payments.DaySum) int {
		return cmp.Or(cmp.Compare(x.Day, y.Day), cmp.Compare(x.Category, y.Category), cmp.Compare(x.Currency, y.Currency))
	})
	return all
}

// pricedRoom is a resource of this price, on which the next bookings are made.
func (b *bed) pricedRoom(price domain.Money) {
	b.Helper()
	r, err := b.bookings.CreateResource(b.ctx, domain.Resource{
		Name: "Room", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60, Price: price, Hold: time.Hour,
	})
	require.NoError(b, err)
	b.resource = r.ID
}

// midnights are those at which the days of both zones begin and end around the two on which Berlin's clocks change.
func midnights(t *testing.T) []time.Time {
	t.Helper()
	var all []time.Time
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		for _, day := range []time.Time{time.Date(2027, 3, 28, 0, 0, 0, 0, location), time.Date(2027, 10, 31, 0, 0, 0, 0, location)} {
			all = append(all, day.UTC(), day.AddDate(0, 0, 1).UTC())
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// TestIncident20_DaysSumToTheProvidersTotal (G8): charges a millisecond before midnight and at midnight, of UTC and of the
// business's zone, on the days on which clocks change; yen and euros settled in euros, crowns in crowns; a refund, a dispute and a
// payout, each a line of its own. Each transaction is in exactly one window and one day, whatever zone the processes run in, though
// three of them read all windows at once.
func TestIncident20_DaysSumToTheProvidersTotal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	rates := stripesim.DefaultSettlement()
	rates.Rates["jpy"] = 0.00625
	require.NoError(t, b.sim.SetSettlement(rates))
	prices := []domain.Money{{Amount: 2500, Currency: "EUR"}, {Amount: 5000, Currency: "JPY"}, {Amount: 30000, Currency: "SEK"}}
	engine := b.engine()
	charged := 0
	charge := func(at time.Time, card string) {
		require.NoError(t, b.sim.StandAt(at))
		b.pricedRoom(prices[charged%len(prices)])
		charged++
		b.work(engine, b.book(card), domain.EffectCharge)
	}
	at := midnights(t)
	for _, midnight := range at {
		charge(midnight.Add(-time.Millisecond), "pm_card_visa")
		charge(midnight, "pm_card_visa")
	}
	last := at[len(at)-1].Add(72 * time.Hour)
	charge(last, "pm_card_createDispute")
	_, err := b.sim.Act(stripesim.Action{Action: "refund", Charge: b.sim.Ledger().Charges[0].ID, Amount: 700})
	require.NoError(t, err)
	_, err = b.sim.Act(stripesim.Action{Action: "create_payout"})
	require.NoError(t, err)
	ledger := b.sim.Ledger()
	require.NoError(t, ledger.Check())
	require.Len(t, ledger.BalanceTransactions, charged+3)

	windows := slices.Concat([]time.Time{at[0].Add(-time.Hour)}, at, []time.Time{last, last.Add(time.Second)})
	listed := 0
	for i := range windows[1:] {
		require.NoError(t, b.gateway.EachTransaction(b.ctx, windows[i], windows[i+1], func(page []payments.Transaction) error {
			listed += len(page)
			return nil
		}))
	}
	require.Equal(t, len(ledger.BalanceTransactions), listed, "each is in exactly one window")

	work := bookkeeping{
		Database: b.db.URL, Provider: b.sim.URL, Windows: windows, Zones: []string{"UTC", "Europe/Berlin", "Asia/Kathmandu"},
		From: time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC),
	}
	var processes sync.WaitGroup
	kept := make([]map[string][]payments.DaySum, 3)
	for i, tz := range []string{"UTC", "Pacific/Kiritimati", "America/St_Johns"} {
		processes.Go(func() { kept[i] = b.inZone(tz, work) })
	}
	processes.Wait()
	var stored int
	b.scan(`SELECT count(*) FROM provider_transactions`, &stored)
	require.Equal(t, len(ledger.BalanceTransactions), stored, "no gap, no double")
	for _, zone := range work.Zones {
		want := b.ledgerDays(zone)
		for i := range kept {
			require.Equal(t, want, kept[i][zone], zone)
		}
	}

	var settled, shown, rate string // yen are what the customer saw, and euros what came of it
	b.scan(`SELECT DISTINCT amount || ' ' || fee || ' ' || currency FROM provider_transactions WHERE presented_currency = 'JPY' AND category = 'charge'`, &settled)
	b.scan(`SELECT DISTINCT presented_amount || ' ' || presented_currency FROM provider_transactions WHERE exchange_rate IS NOT NULL AND category = 'charge'`, &shown)
	b.scan(`SELECT DISTINCT exchange_rate::text FROM provider_transactions WHERE exchange_rate IS NOT NULL`, &rate)
	require.Equal(t, []string{"3125 72 EUR", "5000 JPY", "0.00625"}, []string{settled, shown, rate})
	open, err := payments.OpenItems(b.ctx, b.db.Pool)
	require.NoError(t, err)
	require.Empty(t, open)
	_, err = payments.Days(b.ctx, b.db.Pool, "Local", work.From, work.To)
	require.Error(t, err, "a day belongs to a zone that has a name")
}

// TestIncident20_ALateTransactionIsReadAgain (G8): a charge whose balance transaction is not there yet is an open item until it is,
// though the window of its birth was read; so is a transaction of which there is no booking. A listing that is cut short stores
// nothing and moves nothing.
func TestIncident20_ALateTransactionIsReadAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	b.config.IngestLag, b.config.IngestInterval = time.Microsecond, time.Microsecond
	late := stripesim.DefaultSettlement()
	late.LateMS = time.Hour.Milliseconds()
	require.NoError(t, b.sim.SetSettlement(late))
	engine := b.engine()
	id := b.book("pm_card_visa")
	b.work(engine, id, domain.EffectCharge)
	missing := func() bool {
		t.Helper()
		again, err := engine.ReadMissing(b.ctx)
		require.NoError(t, err)
		return again
	}
	items := func() []payments.OpenItem {
		t.Helper()
		open, err := payments.OpenItems(b.ctx, b.db.Pool)
		require.NoError(t, err)
		return open
	}
	require.True(t, missing())
	require.Len(t, items(), 1, "it was asked for, and is not there yet")
	require.Equal(t, []any{payments.ItemMissing, id.String(), int64(2500)}, []any{items()[0].Kind, items()[0].BookingID, items()[0].Amount})

	b.sim.Advance(2 * time.Hour)
	b.sim.AddFault(stripesim.Fault{Operation: "balance_transactions.list", Fault: "list_page_error", Times: 3})
	from := b.sim.Now().Add(-24 * time.Hour)
	_, err := engine.ReadTransactions(b.ctx, from, b.sim.Now().Add(time.Hour))
	require.Error(t, err)
	require.Len(t, items(), 1)
	require.True(t, missing())
	require.Empty(t, items(), "now it is there")
	require.False(t, missing(), "and is asked for no more")
	n, err := engine.ReadTransactions(b.ctx, from, b.sim.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, 1, n, "the window of its own time has it, too")
	var rows int
	b.scan(`SELECT count(*) FROM provider_transactions WHERE fee = 63`, &rows)
	require.Equal(t, 1, rows, "the fee is booked, once")

	b.exec(`UPDATE payments SET provider_intent_id = 'pi_another'`)
	require.Len(t, items(), 1)
	require.Equal(t, payments.ItemUnmatched, items()[0].Kind)
	b.exec(`UPDATE payments SET provider_intent_id = $1`, items()[0].IntentID)
}

// TestIngestTransactions (G8): the cursor moves with what was read whole, window after window, and no further than what has ended.
func TestIngestTransactions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	b.config.IngestLag, b.config.Lease = time.Millisecond, time.Minute
	engine := b.engine()
	id := b.book("pm_card_visa")
	b.work(engine, id, domain.EffectCharge)
	cursor := func() (at time.Time) {
		b.scan(`SELECT read_to FROM provider_transactions_cursor`, &at)
		return at
	}
	ingest := func() bool {
		t.Helper()
		more, err := engine.IngestTransactions(b.ctx)
		require.NoError(t, err)
		return more
	}
	b.exec(`UPDATE payments SET created_at = clock_timestamp() - interval '30 hours'`)
	b.sim.AddFault(stripesim.Fault{Operation: "balance_transactions.list", Fault: "list_page_empty"})
	b.sim.AddFault(stripesim.Fault{Operation: "balance_transactions.list", Fault: "error_503", Nth: 2, Times: 3})
	require.True(t, ingest(), "the first day, which is empty")
	first := cursor()
	_, err := engine.IngestTransactions(b.ctx)
	require.Error(t, err)
	require.Equal(t, first, cursor(), "what was not read stays the next")
	require.Eventually(t, func() bool { return ingest() && b.transactions() == 1 }, time.Minute, 200*time.Millisecond)
	require.WithinDuration(t, time.Now(), cursor(), 10*time.Minute)
	require.Greater(t, cursor(), first)

	b.exec(`UPDATE provider_transactions_cursor SET due_at = clock_timestamp() + interval '1 hour'`)
	require.False(t, ingest(), "somebody else is at it")
}

// TestIngestTransactions_AnEmptyPageIsHeldAgainstTheBook (G8): a listing that shows nothing of a time in which a charge of ours was made moves
// nothing while the provider itself, asked for that charge, has it; where our book is wrong alone, it is believed.
func TestIngestTransactions_AnEmptyPageIsHeldAgainstTheBook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.patient()
	b.config.IngestLag = time.Millisecond
	engine := b.engine()
	b.work(engine, b.book("pm_card_visa"), domain.EffectCharge)
	now := time.Now().Unix()
	require.Eventually(t, func() bool { return time.Now().Unix() > now }, time.Minute, 10*time.Millisecond)
	b.sim.AddFault(stripesim.Fault{Operation: "balance_transactions.list", Fault: "list_page_empty", Times: -1})
	for range 2 {
		_, err := engine.IngestTransactions(b.ctx)
		require.ErrorIs(t, err, payments.ErrUnread)
		require.ErrorContains(t, err, "the listing lacks transaction txn_")
		var read bool
		b.scan(`SELECT read_to > read_from FROM provider_transactions_cursor`, &read)
		require.False(t, read)
		require.Zero(t, b.transactions())
	}
	b.exec(`UPDATE payments SET provider_intent_id = 'pi_of_nobody'`)
	more, err := engine.IngestTransactions(b.ctx)
	require.NoError(t, err)
	require.True(t, more)
}

func (b *bed) transactions() (n int) {
	b.Helper()
	b.scan(`SELECT count(*) FROM provider_transactions`, &n)
	return n
}
