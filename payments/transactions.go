package payments

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
)

// Accountant reads what moved the account's balance.
type Accountant interface {
	// Transactions lists the balance transactions created in [from, to) (provider's clock, whole seconds), newest first. An
	// error means that the listing is incomplete, and so proves nothing about what it lacks.
	Transactions(ctx context.Context, from, to time.Time) ([]Transaction, error)
	// ChargeTransactions lists those of an intent's charges. A charge that has none yet is left out; an error means that
	// the listing is incomplete.
	ChargeTransactions(ctx context.Context, intentID string) ([]Transaction, error)
}

// Transaction is one movement of the account's balance, as the provider has it. Amount, Fee and Net are in the currency of the
// settlement, which need not be the one that the customer was shown.
type Transaction struct {
	ID           string
	Type         string // the provider's word
	Category     string // the provider's reporting category: what to classify by
	SourceID     string // the charge, refund, dispute or payout; empty: none
	IntentID     string // that it is about; empty: none, or not told
	Amount       domain.Money
	Fee          int64 // minor units of Amount's currency
	Net          int64 // likewise: Amount less Fee
	ExchangeRate string
	Presented    *domain.Money // what the customer was shown; nil: nothing
	Created      time.Time     // by the provider's clock
	Available    time.Time     // when it can be paid out
}

// ReadTransactions stores what moved the account's balance in [from, to), and tells how much the provider lists. What is stored
// already stays as it is, so that windows may overlap and be read by several processes at once. After an error nothing of the
// window is known to be missing, and it has to be read again.
func (p *Payments) ReadTransactions(ctx context.Context, from, to time.Time) (int, error) {
	listed, err := p.gateway.Transactions(ctx, from, to)
	if err != nil {
		return 0, fmt.Errorf("read the provider's transactions: %w: %w", ErrUnread, err)
	}
	return len(listed), p.storeTransactions(ctx, listed)
}

func (p *Payments) storeTransactions(ctx context.Context, listed []Transaction) error {
	if len(listed) == 0 {
		return nil
	}
	err := postgres.InTx(ctx, p.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		var charged, ids []string
		// In one order, whoever inserts: two that insert the same ones in two orders would wait for each other.
		inOrder := slices.SortedFunc(slices.Values(listed), func(x, y Transaction) int { return strings.Compare(x.ID, y.ID) })
		for _, t := range inOrder {
			var amount *int64
			var currency *string
			if t.Presented != nil {
				amount, currency = &t.Presented.Amount, &t.Presented.Currency
			}
			postgres.Exec(b, "store a transaction", `
				INSERT INTO provider_transactions
				       (id, type, category, source_id, intent_id, amount, fee, net, currency, exchange_rate, presented_amount,
				        presented_currency, created_at, available_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, nullif($10::text, '')::numeric, $11, $12, $13, $14)
				    ON CONFLICT ON CONSTRAINT provider_transactions_pkey DO NOTHING`,
				t.ID, t.Type, t.Category, t.SourceID, t.IntentID, t.Amount.Amount, t.Fee, t.Net, t.Amount.Currency, t.ExchangeRate,
				amount, currency, t.Created, t.Available)
			ids = append(ids, t.ID)
			if t.Category == categoryCharge && t.IntentID != "" {
				charged = append(charged, t.IntentID)
			}
		}
		ledger.Enter(b, ids)
		postgres.Exec(b, "mark payments whose transaction is here", `
			UPDATE payments SET transaction_stored_at = clock_timestamp()
			 WHERE id IN (SELECT id FROM payments WHERE provider_intent_id = ANY($1) AND transaction_stored_at IS NULL
			               ORDER BY id FOR NO KEY UPDATE)`, charged)
		return postgres.Send(ctx, tx, b)
	})
	if err != nil {
		return fmt.Errorf("store the provider's transactions: %w", err)
	}
	return nil
}

// categoryCharge is the reporting category of the money that a charge brings.
const categoryCharge = "charge"
