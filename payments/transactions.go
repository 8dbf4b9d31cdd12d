package payments

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
	"holdfast/internal/ledger"
	"holdfast/internal/postgres"
)

// Accountant reads what moved the account's balance.
type Accountant interface {
	// EachTransaction hands on the balance transactions created in [from, to) (provider's clock, whole seconds), newest first,
	// page by page; some may come twice. An error means that the listing is incomplete, and so proves nothing about what it
	// lacks; what was handed on before is true all the same. An error of each ends the listing, and is returned.
	EachTransaction(ctx context.Context, from, to time.Time, each func([]Transaction) error) error
	// ChargeTransactions lists those of an intent's charges. A charge that has none yet is left out. It returns ErrNoIntent if the
	// account does not know the intent; any other error means that the listing is incomplete.
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

	// The ids that we have put into the metadata of what moved the balance; zero: none. Anybody may have copied them.
	PaymentRef, BookingRef, RefundRef uuid.UUID
}

// Payout is money on its way from the account to the bank, as the provider has it.
type Payout struct {
	ID        string
	Amount    domain.Money
	Status    string // pending, in_transit, paid, failed, canceled; paid may turn failed within days
	Automatic bool   // of the account's schedule: only such a one has transactions that can be listed
	Arrival   time.Time
	Created   time.Time
}

// ReadTransactions stores what moved the account's balance in [from, to), and tells how much the provider lists. What is stored
// already stays as it is, so that windows may overlap and be read by several processes at once. After an error nothing of the
// window is known to be missing, and it has to be read again; each page that came before it is stored.
func (p *Payments) ReadTransactions(ctx context.Context, from, to time.Time) (listed int, err error) {
	if err := p.config.Page(ctx); err != nil {
		return 0, err
	}
	var stored error
	pages := 0
	err = p.gateway.EachTransaction(ctx, from, to, func(page []Transaction) error {
		listed, pages = listed+len(page), pages+1
		if stored = StoreTransactions(ctx, p.pool, page); stored == nil {
			stored = p.config.Page(ctx)
		}
		return stored
	})
	switch {
	case stored != nil:
		return listed, stored
	case err != nil:
		return listed, fmt.Errorf("read the provider's transactions: %w: %w", ErrUnread, err)
	}
	return listed, CheckListing(ctx, p.pool, p.gateway, from, to, Listed{int64(listed), int64(pages)}, p.config.Page)
}

// StoreTransactions stores transactions and enters them into the ledger, in one transaction of the database. What is stored already
// stays as it is.
func StoreTransactions(ctx context.Context, db postgres.Batcher, listed []Transaction) error {
	if len(listed) == 0 {
		return nil
	}
	var c columns
	// In one order, whoever inserts: two that insert the same ones in two orders would wait for each other.
	for _, t := range slices.SortedFunc(slices.Values(listed), func(x, y Transaction) int { return strings.Compare(x.ID, y.ID) }) {
		c.add(t)
	}
	b := &pgx.Batch{}
	postgres.Exec(b, "store transactions", `
		INSERT INTO provider_transactions
		       (id, type, category, source_id, intent_id, amount, fee, net, currency, exchange_rate, presented_amount,
		        presented_currency, created_at, available_at, payment_ref, booking_ref, refund_ref)
		SELECT id, type, category, source_id, intent_id, amount, fee, net, currency, nullif(exchange_rate, '')::numeric, presented_amount,
		       presented_currency, created_at, available_at, nullif(payment_ref, $18), nullif(booking_ref, $18), nullif(refund_ref, $18)
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[],
		              $11::bigint[], $12::text[], $13::timestamptz[], $14::timestamptz[], $15::uuid[], $16::uuid[], $17::uuid[])
		       AS t (id, type, category, source_id, intent_id, amount, fee, net, currency, exchange_rate, presented_amount, presented_currency,
		             created_at, available_at, payment_ref, booking_ref, refund_ref)
		    ON CONFLICT ON CONSTRAINT provider_transactions_pkey DO NOTHING`,
		c.id, c.kind, c.category, c.source, c.intent, c.amount, c.fee, c.net, c.currency, c.rate, c.shown, c.shownIn, c.created, c.available,
		c.payment, c.booking, c.refund, uuid.Nil)
	ledger.Enter(b, c.id)
	postgres.Exec(b, "mark payments whose transaction is here", `
		UPDATE payments SET transaction_stored_at = clock_timestamp()
		 WHERE id IN (SELECT id FROM payments WHERE provider_intent_id = ANY($1) AND transaction_stored_at IS NULL
		               ORDER BY id FOR NO KEY UPDATE)`, c.charged)
	if err := postgres.Send(ctx, db, b); err != nil {
		return fmt.Errorf("store the provider's transactions: %w", err)
	}
	return nil
}

// columns are transactions column by column: one statement stores them all.
type columns struct {
	id, kind, category, source, intent, currency, rate, charged []string
	amount, fee, net                                            []int64
	shown                                                       []*int64
	shownIn                                                     []*string
	created, available                                          []time.Time
	payment, booking, refund                                    []uuid.UUID
}

func (c *columns) add(t Transaction) {
	var amount *int64
	var currency *string
	if t.Presented != nil {
		amount, currency = &t.Presented.Amount, &t.Presented.Currency
	}
	c.id, c.kind, c.category = append(c.id, t.ID), append(c.kind, t.Type), append(c.category, t.Category)
	c.source, c.intent, c.rate = append(c.source, t.SourceID), append(c.intent, t.IntentID), append(c.rate, t.ExchangeRate)
	c.amount, c.fee, c.net = append(c.amount, t.Amount.Amount), append(c.fee, t.Fee), append(c.net, t.Net)
	c.currency, c.shown, c.shownIn = append(c.currency, t.Amount.Currency), append(c.shown, amount), append(c.shownIn, currency)
	c.created, c.available = append(c.created, t.Created), append(c.available, t.Available)
	c.payment, c.booking, c.refund = append(c.payment, t.PaymentRef), append(c.booking, t.BookingRef), append(c.refund, t.RefundRef)
	if t.Category == categoryCharge && t.IntentID != "" {
		c.charged = append(c.charged, t.IntentID)
	}
}

// categoryCharge is the reporting category of the money that a charge brings.
const categoryCharge = "charge"
