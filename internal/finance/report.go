package finance

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/internal/cli"
	"holdfast/internal/postgres"
	"holdfast/payments"
)

// Report is all that finance is told of a period. Amounts are minor units of the currency beside them; of the provider's
// transactions that is the currency of the settlement.
type Report struct {
	Period     Period     `json:"period"`
	From       time.Time  `json:"from_instant"`
	To         time.Time  `json:"to_instant"`
	AsOf       time.Time  `json:"as_of"`
	ComparedAt *time.Time `json:"compared_at"` // when the two sides were compared; null: they were not
	Complete   bool       `json:"complete"`    // of what is over, if not all is: see Verdict. False: nothing below is all there is
	Incomplete []string   `json:"incomplete_because"`
	// All but the payouts was read, and compared: the provider's report of all activity has none.
	PayoutsUnread bool `json:"payouts_unread"`

	Unit       string            `json:"unit"`
	Balances   []Balance         `json:"balances"`
	Categories []Category        `json:"categories"`
	Days       []payments.DaySum `json:"days"`
	Sides      []Side            `json:"ours_and_theirs"`
	Payouts    []PayoutLine      `json:"payouts"`
	Identities []Identity        `json:"identities"`
	Pending    []Pending         `json:"pending"`
	Exceptions []Item            `json:"exceptions"` // open, and signed off
	SignedOff  []SignedPeriod    `json:"signed_off"`
	Unchecked  []string          `json:"not_checked"`
}

// Balance is the account's balance of one currency: opening + activity + payouts = closing.
type Balance struct {
	Currency string `json:"currency"`
	Opening  int64  `json:"opening"`
	Activity int64  `json:"activity"` // net of everything but payouts
	Payouts  int64  `json:"payouts"`  // negative: money that went to the bank
	Closing  int64  `json:"closing"`
}

// Category is what the provider's transactions of one reporting category come to, and what our ledger has of them.
type Category struct {
	Category string `json:"category"`
	Currency string `json:"currency"`
	Count    int64  `json:"count"`
	Amount   int64  `json:"amount"`
	Fee      int64  `json:"fee"`
	Net      int64  `json:"net"`
	Ledger   int64  `json:"ledger_net"`
}

// Side is what both sides have of one family, in the currency that customers were shown. What differs is explained by exceptions and
// by what is pending, or was known to one side in another period.
type Side struct {
	Family     string `json:"family"` // charges, refunds, disputes
	Currency   string `json:"currency"`
	Ours       int64  `json:"ours"`
	Theirs     int64  `json:"theirs"`
	Difference int64  `json:"difference"`
}

// PayoutLine is a payout and the sum of its rows.
type PayoutLine struct {
	ID       string    `json:"id"`
	Currency string    `json:"currency"`
	Amount   int64     `json:"amount"`
	Rows     int64     `json:"rows"`
	RowsNet  int64     `json:"rows_net"`
	Status   string    `json:"status"`
	Created  time.Time `json:"created"`
	Arrival  time.Time `json:"arrival"`
}

// Identity is an equation that must hold, to the unit.
type Identity struct {
	Name     string `json:"name"`
	Currency string `json:"currency"`
	Left     int64  `json:"left"`
	Right    int64  `json:"right"`
	Holds    bool   `json:"holds"`
}

// Pending is what one side has and the other may still get.
type Pending struct {
	Kind       string     `json:"kind"`
	About      string     `json:"about"`
	BookingID  *uuid.UUID `json:"booking_id,omitempty"`
	Amount     int64      `json:"amount"`
	Currency   string     `json:"currency"`
	OccurredAt time.Time  `json:"occurred_at"`
	Until      *time.Time `json:"until,omitempty"` // when it is judged, or arrives; nil: once more was read
	Why        string     `json:"why"`
}

// Open counts the exceptions that are open.
func (r Report) Open() (n int) {
	for _, i := range r.Exceptions {
		if i.Status == "open" {
			n++
		}
	}
	return n
}

// Broken counts the identities that do not hold.
func (r Report) Broken() (n int) {
	for _, i := range r.Identities {
		if !i.Holds {
			n++
		}
	}
	return n
}

// Report reads what is not covered yet, matches, and reports. What could not be read is said in the report: it is then
// incomplete, and nothing was matched. Any other trouble is an error. Where [Config].Fresh allows for it, the report is of the
// comparison before.
func (d *Desk) Report(ctx context.Context, p Period) (Report, error) {
	w, err := d.Window(ctx, p)
	if err != nil {
		return Report{}, err
	}
	r := whole(p, w)
	listed, err := d.listed(ctx, w)
	if err != nil {
		return r, err
	}
	var unswept string
	before, err := d.compared(ctx, listed)
	switch {
	case err != nil:
		return r, err
	case before != nil:
		listed, r.ComparedAt, unswept = before.Window, &before.At, before.Unswept
	default:
		if unswept, err = d.bothSides(ctx, &r, w, listed); err != nil {
			return r, err
		}
	}
	if r.Complete {
		gaps, err := d.payoutsUncovered(ctx, listed)
		if err != nil {
			return r, err
		}
		if len(gaps) > 0 {
			r.Complete, r.PayoutsUnread, r.Incomplete = false, true, append(r.Incomplete, payoutsUnread(gaps))
		}
	}
	if (r.Complete || r.PayoutsUnread) && listed.To.Before(w.To) { // the rest is not over, or has only just ended
		r.Incomplete = append(r.Incomplete, "the period was listed up to "+cli.When(listed.To)+" only; what comes later is not in this report")
	}
	err = d.fill(ctx, &r, w)
	if unswept != "" {
		r.Unchecked = append(r.Unchecked, unswept)
	}
	return r, err
}

// whole is a report without figures, of a period that was read whole.
func whole(p Period, w Window) Report {
	return Report{Period: p, From: w.From, To: w.To, Complete: true, Incomplete: []string{}, Unit: "minor units of the currency beside each amount (ISO 4217)"}
}

// listed is the part of a window that has ended long enough ago to be read.
func (d *Desk) listed(ctx context.Context, w Window) (Window, error) {
	err := d.pool.QueryRow(ctx, `SELECT date_trunc('second', least($1::timestamptz, greatest($2, clock_timestamp() - $3::interval)))`,
		w.To, w.From, d.config.Lag).Scan(&w.To)
	if err != nil {
		return w, fmt.Errorf("read the clock: %w", err)
	}
	w.To = w.To.UTC()
	return w, nil
}

// fill reads the report's figures, all as of one moment.
func (d *Desk) fill(ctx context.Context, r *Report, w Window) error {
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	b := &pgx.Batch{}
	postgres.Exec(b, "allow for time", `SET LOCAL statement_timeout = '10min'`)
	postgres.One(b, "read the clock", func(c struct{ Now time.Time }) { r.AsOf = c.Now.UTC() }, `SELECT clock_timestamp() AS now`)
	postgres.All(b, "balances", &r.Balances, reportBalances, w.From, w.To)
	postgres.All(b, "categories", &r.Categories, reportCategories, w.From, w.To)
	postgres.All(b, "sides", &r.Sides, reportSides, w.From, w.To)
	postgres.All(b, "payouts", &r.Payouts, reportPayouts, w.From, w.To)
	postgres.All(b, "pending", &r.Pending, reportPending, w.From, w.To, d.config.Lag)
	postgres.All(b, "exceptions", &r.Exceptions, `
		SELECT `+itemColumns+` FROM reconciliation_items
		 WHERE status IN ('open', 'signed_off') AND occurred_at >= $1 AND occurred_at < $2 ORDER BY status, id LIMIT 10001`, w.From, w.To)
	var unchecked []struct{ What string }
	postgres.All(b, "what is not checked", &unchecked, `
		SELECT 'the fees of ' || t.category || ' in ' || t.currency || ': no schedule says what was agreed' AS what
		  FROM (SELECT DISTINCT category, currency FROM provider_transactions
		         WHERE created_at >= $1 AND created_at < $2 AND fee <> 0 AND category IN ('charge', 'dispute')) AS t
		 WHERE NOT EXISTS (SELECT FROM fee_schedules s WHERE s.currency = t.currency AND s.category = t.category)
		 ORDER BY 1`, w.From, w.To)
	if err := postgres.Send(ctx, tx, b); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	r.Unchecked = []string{}
	for _, u := range unchecked {
		r.Unchecked = append(r.Unchecked, u.What)
	}
	if cut(&r.Exceptions) {
		r.Unchecked = append(r.Unchecked, "this report lists the first 10,000 exceptions, open ones first: there are others (reconciler exceptions list)")
	}
	if cut(&r.Pending) {
		r.Unchecked = append(r.Unchecked, "this report lists the first 10,000 that are pending: there are others")
	}
	for i := range r.Exceptions {
		r.Exceptions[i].Why = inWords(r.Exceptions[i].Why)
	}
	r.identities()
	if r.Days, err = payments.Days(ctx, d.pool, r.Period.Zone, day(r.Period.From), day(r.Period.To)); err != nil {
		return err
	}
	r.SignedOff, err = d.Signed(ctx, w)
	return err
}

// longestList is how many of a kind a report lists.
const longestList = 10_000

// cut shortens a list that is longer, and tells whether it was.
func cut[T any](list *[]T) bool {
	if len(*list) <= longestList {
		return false
	}
	*list = (*list)[:longestList]
	return true
}

func day(s string) time.Time {
	t, _ := time.Parse(time.DateOnly, s) // Window has checked it
	return t
}

// identities checks the period's equations. A payout that differs from its rows by just what was signed off as an exception is explained.
func (r *Report) identities() {
	add := func(name, currency string, left, right int64) {
		r.Identities = append(r.Identities, Identity{name, currency, left, right, left == right})
	}
	for _, c := range r.Categories {
		add("our ledger's "+people(c.Category)+" = the provider's", c.Currency, c.Ledger, c.Net)
	}
	for _, b := range r.Balances {
		add("opening + activity + payouts = closing", b.Currency, b.Opening+b.Activity+b.Payouts, b.Closing)
	}
	explained := map[string]int64{}
	for _, i := range r.Exceptions {
		if i.Kind == PayoutDiffers && i.Status == "signed_off" && i.Amount != nil {
			explained[i.About] = *i.Amount
		}
	}
	for _, p := range r.Payouts {
		amount, signed := explained[p.ID]
		switch {
		case signed && p.RowsNet != p.Amount:
			add("payout "+p.ID+" = the sum of its rows and what was signed off", p.Currency, p.Amount, p.RowsNet+amount)
		case p.Rows > 0:
			add("payout "+p.ID+" = the sum of its rows", p.Currency, p.Amount, p.RowsNet)
		}
	}
}
