package finance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/domain"
)

// PayoutList is the payouts of a period.
type PayoutList struct {
	Period     Period       `json:"period"`
	Complete   bool         `json:"complete"` // false: there may be others
	Incomplete []string     `json:"incomplete_because"`
	Payouts    []PayoutLine `json:"payouts"`
}

// PayoutDetail is a payout and some of what went out with it.
type PayoutDetail struct {
	Payout PayoutLine  `json:"payout"`
	Listed bool        `json:"rows_listed"` // false: the rows below are not all there are
	Rows   []PayoutRow `json:"rows"`
}

// PayoutRow is a transaction that went out with a payout, and the booking that it is of.
type PayoutRow struct {
	ID        string     `json:"id"`
	Category  string     `json:"category"`
	SourceID  string     `json:"source_id"` // the charge, refund or dispute; empty: none
	BookingID *uuid.UUID `json:"booking_id,omitempty"`
	Currency  string     `json:"currency"`
	Amount    int64      `json:"amount"`
	Fee       int64      `json:"fee"`
	Net       int64      `json:"net"`
	Created   time.Time  `json:"created"`
}

// Payouts lists the payouts of a period, as far as they are stored. It reads nothing from the provider.
func (d *Desk) Payouts(ctx context.Context, p Period) (PayoutList, error) {
	w, err := d.Window(ctx, p)
	if err != nil {
		return PayoutList{}, err
	}
	list := PayoutList{Period: p, Complete: true, Incomplete: []string{}}
	gaps, err := d.payoutsUncovered(ctx, w)
	if err != nil {
		return list, err
	}
	if len(gaps) > 0 {
		list.Complete, list.Incomplete = false, []string{"not listed from the provider yet: " + spoken(gaps)}
	}
	rows, err := d.pool.Query(ctx, reportPayouts, w.From, w.To)
	if err != nil {
		return list, fmt.Errorf("list payouts: %w", err)
	}
	if list.Payouts, err = pgx.CollectRows(rows, pgx.RowToStructByName[PayoutLine]); err != nil {
		return list, fmt.Errorf("list payouts: %w", err)
	}
	return list, nil
}

// PayoutRows shows a payout with the rows that come after one, in the order of their ids. It returns domain.ErrNotFound if no
// transaction tells of such a payout.
func (d *Desk) PayoutRows(ctx context.Context, id, after string, limit int) (PayoutDetail, error) {
	var all PayoutDetail
	p := &all.Payout
	err := d.pool.QueryRow(ctx, `
		SELECT t.source_id, t.currency, -t.net, rows.count, rows.net, coalesce(p.status, 'not read'), t.created_at, coalesce(p.arrival_at, t.available_at),
		       p.rows_read_at IS NOT NULL
		  FROM provider_transactions t LEFT JOIN payouts p ON p.id = t.source_id
		 CROSS JOIN LATERAL (
		       SELECT count(*) AS count, coalesce(sum(x.net), 0)::bigint AS net
		         FROM payout_transactions o JOIN provider_transactions x ON x.id = o.transaction_id WHERE o.payout_id = t.source_id) AS rows
		 WHERE t.category = 'payout' AND t.source_id = $1 ORDER BY t.created_at LIMIT 1`, id).
		Scan(&p.ID, &p.Currency, &p.Amount, &p.Rows, &p.RowsNet, &p.Status, &p.Created, &p.Arrival, &all.Listed)
	if errors.Is(err, pgx.ErrNoRows) {
		return all, domain.ErrNotFound
	}
	if err != nil {
		return all, fmt.Errorf("read a payout: %w", err)
	}
	rows, err := d.pool.Query(ctx, `
		SELECT t.id, t.category, t.source_id, coalesce(own.booking_id, named.booking_id) AS booking_id, t.currency, t.amount, t.fee, t.net, t.created_at AS created
		  FROM payout_transactions o JOIN provider_transactions t ON t.id = o.transaction_id
		  LEFT JOIN payments own ON own.provider_intent_id = nullif(t.intent_id, '')
		  LEFT JOIN payments named ON own.id IS NULL AND named.id = t.payment_ref
		 WHERE o.payout_id = $1 AND o.transaction_id > $2 ORDER BY o.transaction_id LIMIT $3`, id, after, limit)
	if err != nil {
		return all, fmt.Errorf("list what went out with a payout: %w", err)
	}
	if all.Rows, err = pgx.CollectRows(rows, pgx.RowToStructByName[PayoutRow]); err != nil {
		return all, fmt.Errorf("list what went out with a payout: %w", err)
	}
	return all, nil
}
