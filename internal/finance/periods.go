package finance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// SignedPeriod is a period that somebody has signed off: it is locked.
type SignedPeriod struct {
	ID          uuid.UUID `json:"id"`
	Zone        string    `json:"zone"`
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	SignedOffBy string    `json:"signed_off_by"`
	Reason      string    `json:"reason"`
	SignedOffAt time.Time `json:"signed_off_at"`
}

// windowTotals are the provider's sums of a window by category, and our ledger's balance at its end: what is signed.
const windowTotals = `
	SELECT coalesce(jsonb_agg(jsonb_build_array(category, currency, count, amount, fee, net) ORDER BY category, currency), '[]')
	  FROM (SELECT category, currency, count(*) AS count, sum(amount) AS amount, sum(fee) AS fee, sum(net) AS net
	          FROM provider_transactions WHERE created_at >= $1 AND created_at < $2 GROUP BY category, currency) AS t`

const signedPeriods = `
	SELECT id, zone, from_at AS "from", to_at AS "to", signed_off_by, reason, signed_off_at FROM finance_periods
	 WHERE tstzrange(from_at, to_at) && tstzrange($1, $2) ORDER BY from_at`

// SignOffPeriod locks a period that is over, was read whole, has no open exceptions and of which all identities hold. What is found in it
// later is an exception of its own. Anything that stands in the way is an *outbox.RefusedError.
func (d *Desk) SignOffPeriod(ctx context.Context, p Period, actor outbox.Actor, reason string) (SignedPeriod, error) {
	w, err := d.Window(ctx, p)
	if err != nil {
		return SignedPeriod{}, err
	}
	if err := d.maySign(ctx, p, w); err != nil {
		return SignedPeriod{}, err
	}
	run, at, err := d.match(ctx, w, unlooked, true)
	if err != nil {
		return SignedPeriod{}, err
	}
	if gaps, err := d.payoutsUncovered(ctx, w); err != nil || len(gaps) > 0 {
		if err == nil {
			err = fmt.Errorf("%w: %s: import the provider's report payouts of it", ErrIncomplete, payoutsUnread(gaps))
		}
		return SignedPeriod{}, err
	}
	kept := whole(p, w) // nothing may be entered between this and the signature
	kept.ComparedAt = &at
	if err := d.fill(ctx, &kept, w); err != nil {
		return SignedPeriod{}, err
	}
	kept.Unchecked = append(kept.Unchecked, unlooked)
	signed := SignedPeriod{ID: uuid.Must(uuid.NewV7()), Zone: p.Zone, From: w.From, To: w.To, SignedOffBy: string(actor), Reason: reason}
	err = postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		var open int
		var before []SignedPeriod
		var entered bool
		var totals json.RawMessage
		var r Report
		b := &pgx.Batch{}
		postgres.Exec(b, "lock the periods", `LOCK TABLE finance_periods IN SHARE ROW EXCLUSIVE MODE`)
		postgres.One(b, "count what is open", func(n struct{ Open int }) { open = n.Open }, `
			SELECT count(*) AS open FROM reconciliation_items WHERE status = 'open' AND occurred_at >= $1 AND occurred_at < $2`, w.From, w.To)
		postgres.All(b, "look for what is signed", &before, signedPeriods, w.From, w.To)
		postgres.One(b, "sum up", func(t struct{ Totals json.RawMessage }) { totals = t.Totals }, `SELECT (`+windowTotals+`) AS totals`, w.From, w.To)
		postgres.All(b, "balances", &r.Balances, reportBalances, w.From, w.To)
		postgres.All(b, "categories", &r.Categories, reportCategories, w.From, w.To)
		postgres.All(b, "payouts", &r.Payouts, reportPayouts, w.From, w.To)
		postgres.All(b, "what is signed off of payouts", &r.Exceptions, `
			SELECT `+itemColumns+` FROM reconciliation_items
			 WHERE status = 'signed_off' AND kind = 'payout_differs' AND occurred_at >= $1 AND occurred_at < $2 ORDER BY id`, w.From, w.To)
		// Last: each statement has a snapshot of its own, and whatever those before have seen, this one sees, too.
		postgres.One(b, "look for what was not compared", func(e struct{ Entered bool }) { entered = e.Entered },
			`SELECT `+enteredSince("r.to_at")+` AS entered FROM reconciliation_runs r WHERE id = $1`, run)
		if err := postgres.Send(ctx, tx, b); err != nil {
			return err
		}
		r.identities()
		switch {
		case len(before) > 0:
			return &outbox.RefusedError{Reason: taken(p, w, before)}
		case entered:
			return &outbox.RefusedError{Reason: "something was entered into the period while it was compared: sign it off once more"}
		case open > 0:
			return &outbox.RefusedError{Reason: countOf(open, "exception is", "exceptions are") + " open in the period: explain them, or sign them off with a reason"}
		case r.Broken() > 0:
			return &outbox.RefusedError{Reason: fmt.Sprintf("%d of the period's checks do not hold: %s. Nothing that is booked can be changed: have the "+
				"difference explained: see the report's checks", r.Broken(), r.broken())}
		}
		err := tx.QueryRow(ctx, `
			INSERT INTO finance_periods (id, zone, from_at, to_at, totals, signed_off_by, reason, report)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING signed_off_at`, signed.ID, p.Zone, w.From, w.To, totals, string(actor), reason, kept).Scan(&signed.SignedOffAt)
		if err != nil {
			return fmt.Errorf("sign off a period: %w", err)
		}
		return outbox.RecordAct(ctx, tx, outbox.Act{Actor: actor, Action: "finance_period_sign_off", Reason: reason, Before: nil, After: signed})
	})
	return signed, err
}

// maySign refuses at once what no comparison can change: a period that is not over, or of which a part is signed.
func (d *Desk) maySign(ctx context.Context, p Period, w Window) error {
	listed, err := d.listed(ctx, w)
	if err != nil {
		return err
	}
	signed, err := d.Signed(ctx, w)
	switch {
	case err != nil:
		return err
	case len(signed) > 0:
		return &outbox.RefusedError{Reason: taken(p, w, signed)}
	case listed.To.Before(w.To):
		return &outbox.RefusedError{Reason: "the period is not over, or has only just ended: it can be signed off from " + minuteOf(w.To.Add(d.config.Lag+time.Minute)) + " on"}
	}
	return nil
}

// broken names the first identities that do not hold.
func (r *Report) broken() string {
	var names []string
	for _, i := range r.Identities {
		if !i.Holds && len(names) < 5 {
			names = append(names, i.Name+" ("+i.Currency+")")
		}
	}
	return strings.Join(names, "; ")
}

// Signed lists the periods that are signed off and touch a window.
func (d *Desk) Signed(ctx context.Context, w Window) ([]SignedPeriod, error) {
	rows, err := d.pool.Query(ctx, signedPeriods, w.From, w.To)
	if err != nil {
		return nil, fmt.Errorf("list signed periods: %w", err)
	}
	signed, err := pgx.CollectRows(rows, pgx.RowToStructByName[SignedPeriod])
	if err != nil {
		return nil, fmt.Errorf("list signed periods: %w", err)
	}
	return signed, nil
}

// whatChanged says which of a period's sums are others now than in the signed totals.
const whatChanged = `
	SELECT string_agg(replace(coalesce(a.sum->>0, z.sum->>0), '_', ' ') || ' in ' || coalesce(a.sum->>1, z.sum->>1) || ' was ' ||
	                  coalesce('{' || (a.sum->>5) || ' ' || (a.sum->>1) || '} net of ' || (a.sum->>2), 'none') || ', and is ' ||
	                  coalesce('{' || (z.sum->>5) || ' ' || (z.sum->>1) || '} net of ' || (z.sum->>2), 'none'),
	                  '; ' ORDER BY coalesce(a.sum->>1, z.sum->>1), coalesce(a.sum->>0, z.sum->>0)) AS what
	  FROM jsonb_array_elements(p.totals) AS a(sum)
	  FULL JOIN jsonb_array_elements(now.totals) AS z(sum) ON z.sum->>0 = a.sum->>0 AND z.sum->>1 = a.sum->>1
	 WHERE a.sum IS DISTINCT FROM z.sum`

// comparePeriods opens an exception against each signed period that no longer is what was signed.
func (d *Desk) comparePeriods(ctx context.Context, run uuid.UUID, w Window) error {
	signed, err := d.Signed(ctx, w)
	if err != nil {
		return err
	}
	for _, p := range signed {
		b := &pgx.Batch{}
		postgres.Exec(b, "compare a period with what was signed", `
			INSERT INTO reconciliation_items (kind, about, occurred_at, why, owner, period_id, run_id)
			SELECT 'period_changed', p.id::text, p.from_at, said.why, 'finance', p.id, $3
			  FROM finance_periods p
			 CROSS JOIN LATERAL (SELECT (`+windowTotals+`) AS totals) AS now
			 CROSS JOIN LATERAL (`+whatChanged+`) AS changed
			 CROSS JOIN LATERAL (
			       SELECT 'the provider''s sums are no longer those that ' || p.signed_off_by || ' has signed off, of ' ||
			              to_char(p.from_at AT TIME ZONE p.zone, 'YYYY-MM-DD') || ' to before ' || to_char(p.to_at AT TIME ZONE p.zone, 'YYYY-MM-DD') ||
			              ', days of ' || p.zone || coalesce(': ' || changed.what, '') AS why) AS said
			 WHERE p.id = $4 AND p.totals <> now.totals -- and not only in what somebody has looked at and signed off
			   AND NOT EXISTS (SELECT FROM reconciliation_items i WHERE i.kind = 'period_changed' AND i.about = p.id::text AND i.status = 'signed_off'
			                      AND i.why = said.why)
			    ON CONFLICT (kind, about) WHERE status = 'open' DO UPDATE SET why = EXCLUDED.why
			 WHERE reconciliation_items.why <> EXCLUDED.why`, p.From, p.To, run, p.ID)
		if err := postgres.Send(ctx, d.pool, b); err != nil {
			return err
		}
	}
	return nil
}
