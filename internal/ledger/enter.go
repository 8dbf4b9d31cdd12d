package ledger

import (
	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
)

// Enter queues the entries of stored provider transactions. One that is entered already stays as it is.
//
// Money that comes in debits the account's balance and credits clearing (of payouts: what is in transit; of anything else:
// adjustments). Where the provider has exchanged it, clearing moves in the currency that the customer was shown and the balance in
// the settlement's, each against the account exchange.
func Enter(b *pgx.Batch, transactions []string) {
	postgres.Exec(b, "enter the provider's transactions into the ledger", `
		INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, payment_id, rate, occurred_at)
		SELECT 'provider', line.kind, CASE WHEN line.amount > 0 THEN line.debit ELSE line.credit END,
		       CASE WHEN line.amount > 0 THEN line.credit ELSE line.debit END, abs(line.amount), line.currency, t.id,
		       (SELECT p.id FROM payments p WHERE p.provider_intent_id = nullif(t.intent_id, '')), t.exchange_rate, t.created_at
		  FROM provider_transactions t
		 CROSS JOIN LATERAL (
		       SELECT CASE WHEN t.category IN ('charge', 'refund', 'refund_failure', 'dispute', 'dispute_reversal', 'payout', 'payout_reversal')
		                   THEN t.category WHEN t.category = 'partial_capture_reversal' THEN 'charge_correction' ELSE 'adjustment' END AS kind) k
		 CROSS JOIN LATERAL (
		       SELECT CASE WHEN k.kind IN ('payout', 'payout_reversal') THEN 'payouts_in_transit' WHEN k.kind = 'adjustment' THEN 'adjustments'
		                   ELSE 'clearing' END AS against,
		              t.presented_currency IS DISTINCT FROM t.currency AND t.presented_currency IS NOT NULL AS exchanged) a
		 CROSS JOIN LATERAL (VALUES
		       (k.kind, 'provider_balance', a.against, CASE WHEN NOT a.exchanged THEN t.amount END, t.currency),
		       (k.kind, 'exchange', a.against, CASE WHEN a.exchanged THEN t.presented_amount END, t.presented_currency),
		       (k.kind, 'provider_balance', 'exchange', CASE WHEN a.exchanged THEN t.amount END, t.currency),
		       (CASE WHEN k.kind = 'dispute' THEN 'dispute_fee' ELSE 'fee' END,
		        CASE WHEN k.kind = 'dispute' THEN 'dispute_fees' ELSE 'fees' END, 'provider_balance', t.fee, t.currency)
		       ) AS line (kind, debit, credit, amount, currency)
		 WHERE t.id = ANY ($1) AND line.amount <> 0
		 ORDER BY t.id -- as the transactions themselves are stored: nobody waits crosswise
		    ON CONFLICT (about, debit, credit, currency) WHERE origin = 'provider' DO NOTHING`, transactions)
}
