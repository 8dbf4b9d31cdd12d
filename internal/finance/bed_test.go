package finance_test

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/finance"
	"holdfast/internal/finance/history"
	"holdfast/internal/testdb"
	"holdfast/payments"
)

var transactions = flag.Int("finance.transactions", 5000, "how many of the provider's transactions the histories have")

// patience is for what a busy machine does in the end: no test waits for so long unless it fails.
const patience = 5 * time.Minute

// bed is a history, our side of it in a database, and the provider's behind the port.
type bed struct {
	testing.TB
	*testdb.DB

	config history.Config
	dir    string
	books  *history.Books
	window finance.Window
	totals history.Totals
}

func (b *bed) Helper() { b.TB.Helper() }

// setup makes a history that has ended last midnight (UTC), with so many defects of each kind.
func setup(t *testing.T, count, planted int) *bed {
	t.Helper()
	today := time.Now().UTC().Add(-time.Hour).Truncate(24 * time.Hour) // in the first hour of a day it has not ended long enough ago
	b := &bed{TB: t, DB: testdb.New(t), dir: t.TempDir(), config: history.Config{
		Seed: 7, Transactions: count, From: today.AddDate(0, 0, -14), Days: 14, Planted: planted,
	}}
	require.NoError(b, history.Write(b.dir, b.config))
	require.NoError(b, history.ReadJSON(filepath.Join(b.dir, "totals.json"), &b.totals))
	var err error
	b.books, err = history.Open(b.dir)
	require.NoError(b, err)
	t.Cleanup(func() { _ = b.books.Close() })
	b.window = finance.Window{From: b.config.From, To: b.config.End()}
	b.loadOurs()
	return b
}

// loadOurs copies our side into the database, as the rows of bookings that were made and paid.
func (b *bed) loadOurs() {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), b.URL)
	require.NoError(b, err)
	defer func() { require.NoError(b, conn.Close(context.WithoutCancel(b.Context()))) }()
	for _, table := range history.Tables() {
		f, err := os.Open(filepath.Join(b.dir, "ours", table.Name+".csv"))
		require.NoError(b, err)
		_, err = conn.PgConn().CopyFrom(b.Context(), f, "COPY "+table.Name+" ("+table.Columns+") FROM STDIN (FORMAT csv)")
		require.NoError(b, errors.Join(err, f.Close()), table.Name)
	}
	for currency, fee := range history.Fees() {
		b.exec(`INSERT INTO fee_schedules VALUES ($1, 'charge', '2000-01-01', $2, $3, $4), ($1, 'dispute', '2000-01-01', 0, $5, 1)`,
			currency, history.BasisPoints, fee[0], fee[1], history.DisputeFee)
	}
	b.exec(`ANALYZE`)
}

func (b *bed) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.Pool.Exec(b.Context(), sql, args...)
	require.NoError(b, err)
}

func (b *bed) scan(sql string, into any, args ...any) {
	b.Helper()
	require.NoError(b, b.Pool.QueryRow(b.Context(), sql, args...).Scan(into))
}

func (b *bed) desk(p finance.Provider) *finance.Desk {
	return finance.New(b.Pool, p, finance.Config{ReadsPerSecond: 1e6}, quiet())
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// provider serves the books through the port.
func (b *bed) provider() port { return port{b.books, 100} }

type port struct {
	books *history.Books
	page  int
}

func (p port) EachTransaction(_ context.Context, from, to time.Time, each func([]payments.Transaction) error) error {
	return p.books.Each(from.Unix(), to.Unix(), p.page, func(part []history.Transaction) error { return each(translate(part)) })
}

// ChargeTransactions knows nothing: what these books list is all that there is.
func (port) ChargeTransactions(context.Context, string) ([]payments.Transaction, error) {
	return nil, nil
}

func (p port) EachPayoutTransaction(_ context.Context, id string, each func([]payments.Transaction) error) error {
	return p.books.EachOf(id, p.page, func(part []history.Transaction) error { return each(translate(part)) })
}

func (p port) Payout(_ context.Context, id string) (payments.Payout, error) {
	x, ok := p.books.Payout(id)
	if !ok {
		return payments.Payout{}, errors.New("there is no such payout")
	}
	at := time.Unix(x.Created, 0).UTC()
	return payments.Payout{ID: id, Amount: domain.Money{Amount: x.Amount, Currency: x.Currency}, Status: x.Status, Automatic: true, Arrival: at, Created: at}, nil
}

func translate(part []history.Transaction) []payments.Transaction {
	all := make([]payments.Transaction, len(part))
	for i, t := range part {
		all[i] = payments.Transaction{
			ID: t.ID, Type: t.Category, Category: t.Category, SourceID: t.Source, IntentID: t.Intent, Amount: domain.Money{Amount: t.Amount, Currency: t.Currency},
			Fee: t.Fee, Net: t.Net, ExchangeRate: t.Rate, Created: time.Unix(t.Created, 0).UTC(), Available: time.Unix(t.Created+2*86400, 0).UTC(),
			PaymentRef: parse(t.Payment), BookingRef: parse(t.Booking), RefundRef: parse(t.Refund),
		}
		if t.ShownCurrency != "" {
			all[i].Presented = &domain.Money{Amount: t.Shown, Currency: t.ShownCurrency}
		}
	}
	return all
}

func parse(s string) uuid.UUID {
	id, err := uuid.Parse(s)
	if err != nil {
		return uuid.Nil
	}
	return id
}

// importAll imports the provider's three reports of the window.
func (b *bed) importAll(d *finance.Desk) {
	b.Helper()
	for _, name := range []string{"activity", "payouts", "payout_reconciliation"} {
		f, err := os.Open(filepath.Join(b.dir, "theirs", name+".csv"))
		require.NoError(b, err)
		got, err := d.Import(b.Context(), finance.File{Name: name + ".csv", ReadSeeker: f, Covers: &b.window})
		require.NoError(b, errors.Join(err, f.Close()), name)
		require.Zero(b, got.Differs)
	}
}

// planted is what should be found, and found what was: kind and what it is about, sorted.
func (b *bed) planted() []string {
	b.Helper()
	var list []history.Expected
	require.NoError(b, history.ReadJSON(filepath.Join(b.dir, "expected.json"), &list))
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = e.Kind + " " + e.About
	}
	slices.Sort(all)
	return all
}

func (b *bed) found() []string {
	b.Helper()
	rows, err := b.Pool.Query(b.Context(), `SELECT kind || ' ' || about FROM reconciliation_items WHERE status = 'open'`)
	require.NoError(b, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b, err)
	slices.Sort(all)
	return all
}

// agrees compares what was stored with the provider's own sums.
func (b *bed) agrees() {
	b.Helper()
	got := history.Totals{By: map[string]history.Sum{}, Balance: map[string]int64{}}
	//nolint:rowserrcheck // ForEachRow does
	rows, err := b.Pool.Query(b.Context(), `
		SELECT currency, category, count(*), sum(amount)::bigint, sum(fee)::bigint, sum(net)::bigint FROM provider_transactions GROUP BY 1, 2`)
	require.NoError(b, err)
	var currency, category string
	var s history.Sum
	_, err = pgx.ForEachRow(rows, []any{&currency, &category, &s.Count, &s.Amount, &s.Fee, &s.Net}, func() error {
		got.By[currency+" "+category] = s
		got.Balance[currency] += s.Net
		got.Count += int(s.Count)
		return nil
	})
	require.NoError(b, err)
	require.Equal(b, b.totals, got, "to the unit")
}
