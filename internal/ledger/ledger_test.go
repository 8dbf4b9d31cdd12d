package ledger_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
	"holdfast/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

type testBundle struct {
	*testdb.DB
	payment uuid.UUID
}

// setup is a payment of 25.00 euros that has succeeded, and of which the book knows nothing yet.
func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{DB: testdb.New(t), payment: uuid.New()}
	booking := uuid.New()
	b.exec(t, `
		INSERT INTO bookings (id, client_id, resource_id, during, quantity, amount, currency, customer_name, customer_email, status, hold_expires_at,
		                      created_at, updated_at)
		VALUES ($1, $1, $1, '[2030-01-01 10:00Z,2030-01-01 11:00Z)', 1, 2500, 'EUR', 'Ada', 'ada@example.org', 'confirmed', now(), now(), now())`, booking)
	b.exec(t, `
		INSERT INTO payments (id, booking_id, amount, currency, payment_method, status, provider_intent_id, created_at, updated_at)
		VALUES ($1, $2, 2500, 'EUR', 'pm', 'succeeded', 'pi_1', now(), now())`, b.payment, booking)
	return b
}

func (b *testBundle) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := b.Pool.Exec(t.Context(), query, args...)
	require.NoError(t, err)
}

func (b *testBundle) bring(t *testing.T) {
	t.Helper()
	var batch pgx.Batch
	ledger.Bring(&batch, b.payment)
	require.NoError(t, postgres.Send(t.Context(), b.Pool, &batch))
}

// entries are the book's, oldest first.
func (b *testBundle) entries(t *testing.T) []string {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT kind || ': ' || debit || ' to ' || credit || ' ' || amount || ' ' || currency FROM ledger_entries ORDER BY id`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}

// The book follows the rows, by entries only, and doing it twice adds nothing.
func TestBring_PutsRightByEntries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	refund := uuid.New()
	for _, change := range []string{
		`SELECT`,
		`UPDATE payments SET amount_received = 2400`, // another sum was taken than was asked for
		`INSERT INTO refunds (id, payment_id, amount, currency, reason, status, provider_refund_id, created_at, updated_at)
		 SELECT '` + refund.String() + `', id, 900, 'EUR', 'dashboard', 'pending', 're_1', now(), now() FROM payments`,
		`UPDATE refunds SET status = 'succeeded', settled_at = now()`,
		`UPDATE refunds SET status = 'failed'`,
		`UPDATE refunds SET status = 'succeeded'`,
		`INSERT INTO disputes SELECT 'dp_1', id, 2400, 'EUR', 'fraudulent', 'needs_response', true, now(), NULL, now(), now() FROM payments`,
		`UPDATE disputes SET status = 'won', withdrawn = false`,
	} {
		b.exec(t, change)
		b.bring(t)
		b.bring(t)
	}
	require.Equal(t, []string{
		"charge: clearing to sales 2500 EUR",
		"charge_correction: sales to clearing 100 EUR",
		"refund: refunds to clearing 900 EUR",
		"refund_failure: clearing to refunds 900 EUR",
		"refund: refunds to clearing 900 EUR",
		"dispute: disputes to clearing 2400 EUR",
		"dispute_reversal: clearing to disputes 2400 EUR",
	}, b.entries(t))
}

// No entry is ever changed or taken away, and none can be out of balance.
func TestTheBookIsAppendOnlyAndBalanced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.bring(t)
	for _, act := range []string{
		`UPDATE ledger_entries SET amount = 1`, `DELETE FROM ledger_entries`, `TRUNCATE ledger_entries`,
		`INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, occurred_at) VALUES ('book', 'charge', 'sales', 'sales', 1, 'EUR', 'x', now())`,
		`INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, occurred_at) VALUES ('book', 'charge', 'sales', 'clearing', -1, 'EUR', 'x', now())`,
		`INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, occurred_at) VALUES ('book', 'charge', 'sales', 'pocket', 1, 'EUR', 'x', now())`,
	} {
		_, err := b.Pool.Exec(t.Context(), act)
		require.Error(t, err, act)
	}
	require.Len(t, b.entries(t), 1)
}

// What a binary settled that did not know of the book is entered later, once, whoever does it and however many at once.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := make(chan int64, 4)
	for range cap(done) {
		go func() {
			n, err := ledger.CatchUp(t.Context(), b.Pool, time.Time{})
			if err != nil {
				n = -1
			}
			done <- n
		}()
	}
	var sum int64
	for range cap(done) {
		n := <-done
		require.GreaterOrEqual(t, n, int64(0))
		sum += n
	}
	require.EqualValues(t, 1, sum)
	require.Equal(t, []string{"charge: clearing to sales 2500 EUR"}, b.entries(t))
}

// Settled in the currency that the customer was shown, or exchanged; each transaction once.
func TestEnter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `
		INSERT INTO provider_transactions (id, type, category, source_id, intent_id, amount, fee, net, currency, exchange_rate, presented_amount,
		                                   presented_currency, created_at, available_at) VALUES
		('txn_1', 'charge', 'charge', 'ch_1', 'pi_1', 2500, 63, 2437, 'EUR', NULL, 2500, 'EUR', now(), now()),
		('txn_2', 'charge', 'charge', 'ch_2', 'pi_2', 3125, 72, 3053, 'EUR', 0.00625, 5000, 'JPY', now(), now()),
		('txn_3', 'refund', 'refund', 're_1', 'pi_2', -625, 0, -625, 'EUR', 0.00625, -1000, 'JPY', now(), now()),
		('txn_4', 'adjustment', 'dispute', 'dp_1', 'pi_1', -2500, 1500, -4000, 'EUR', NULL, -2500, 'EUR', now(), now()),
		('txn_5', 'payout', 'payout', 'po_1', '', -100, 0, -100, 'EUR', NULL, NULL, NULL, now(), now()),
		('txn_6', 'stripe_fee', 'fee', '', '', 0, 20, -20, 'EUR', NULL, NULL, NULL, now(), now()),
		('txn_7', 'reserve', 'risk_reserved_funds', '', '', -5, 0, -5, 'EUR', NULL, NULL, NULL, now(), now())`)
	for range 2 {
		var batch pgx.Batch
		ledger.Enter(&batch, []string{"txn_1", "txn_2", "txn_3", "txn_4", "txn_5", "txn_6", "txn_7"})
		require.NoError(t, postgres.Send(t.Context(), b.Pool, &batch))
	}
	require.ElementsMatch(t, []string{
		"charge: provider_balance to clearing 2500 EUR", "fee: fees to provider_balance 63 EUR",
		"charge: exchange to clearing 5000 JPY", "charge: provider_balance to exchange 3125 EUR", "fee: fees to provider_balance 72 EUR",
		"refund: clearing to exchange 1000 JPY", "refund: exchange to provider_balance 625 EUR",
		"dispute: clearing to provider_balance 2500 EUR", "dispute_fee: dispute_fees to provider_balance 1500 EUR",
		"payout: payouts_in_transit to provider_balance 100 EUR", "fee: fees to provider_balance 20 EUR",
		"adjustment: adjustments to provider_balance 5 EUR",
	}, b.entries(t))
	accounts, err := ledger.Trial(t.Context(), b.Pool)
	require.NoError(t, err)
	sums := map[string]int64{}
	for _, a := range accounts {
		sums[a.Currency] += a.Debit - a.Credit
	}
	require.Equal(t, map[string]int64{"EUR": 0, "JPY": 0}, sums)
}
