package stripesim

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// itemizedActivity has a row for everything that changed the balance in the interval, save payouts.
func (w *world) itemizedActivity(p *report) [][]string {
	return p.itemize(w, func(b *transaction) bool { return b.activity() && p.covers(b.created) })
}

// itemizedPayouts has a row for everything that went out with a payout which arrives in the interval, save the payout itself.
func (w *world) itemizedPayouts(p *report) [][]string {
	return p.itemize(w, func(b *transaction) bool {
		return b.payout != nil && b.source != source(b.payout) && p.covers(b.payout.arrival)
	})
}

// summedActivity has a row for each category and currency.
func (w *world) summedActivity(p *report) [][]string {
	type key struct{ category, currency string }
	type sum struct{ count, gross, fee int64 }
	sums, order := map[key]*sum{}, []key{}
	for _, b := range w.transactions {
		if !b.activity() || !p.covers(b.created) || !p.wants(b) {
			continue
		}
		k := key{b.category, b.currency}
		if sums[k] == nil {
			sums[k] = &sum{}
			order = append(order, k)
		}
		sums[k].count++
		sums[k].gross += b.amount
		sums[k].fee += b.fee
	}
	rows := [][]string{{"reporting_category", "currency", "count", "gross", "fee", "net"}}
	for _, k := range order {
		s := sums[k]
		rows = append(rows, []string{
			k.category, k.currency, strconv.FormatInt(s.count, 10), major(s.gross, k.currency), major(s.fee, k.currency),
			major(s.gross-s.fee, k.currency),
		})
	}
	return rows
}

// summedBalance has the balance before, what changed it, and the balance after, in each currency.
func (w *world) summedBalance(p *report) [][]string {
	rows := [][]string{{"category", "description", "net_amount", "currency"}}
	for _, currency := range w.currencies() {
		if p.currency != "" && p.currency != currency {
			continue
		}
		var before, gross, fee, out int64
		for _, b := range w.transactions {
			switch {
			case b.currency != currency || b.created >= p.end:
			case b.created < p.start:
				before += b.net()
			case b.activity():
				gross += b.amount
				fee += b.fee
			default:
				out += b.net()
			}
		}
		for _, line := range []struct {
			category, description string
			amount                int64
		}{
			{"starting_balance", "Starting balance", before},
			{"activity_gross", "Activity before fees", gross},
			{"activity_fee", "Less fees", -fee},
			{"activity", "Net balance change from activity", gross - fee},
			{"payouts", "Total payouts", out},
			{"ending_balance", "Ending balance", before + gross - fee + out},
		} {
			rows = append(rows, []string{line.category, line.description, major(line.amount, currency), currency})
		}
	}
	return rows
}

// activity is false of payouts: they move the balance elsewhere and change nothing of what was earned.
func (b *transaction) activity() bool {
	return b.category != categoryPayout && b.category != categoryPayoutReversal
}

func (p *report) covers(at int64) bool { return at >= p.start && at < p.end }

func (p *report) wants(b *transaction) bool {
	return (p.currency == "" || p.currency == b.currency) && (p.category == "" || p.category == b.category)
}

func (p *report) itemize(w *world, keep func(*transaction) bool) [][]string {
	names := p.columns
	if len(names) == 0 {
		names = defaultColumns()
	}
	rows := [][]string{names}
	for _, b := range w.transactions {
		if !keep(b) || !p.wants(b) {
			continue
		}
		row := make([]string, len(names))
		for i, name := range names {
			row[i] = p.cell(b, name)
		}
		rows = append(rows, row)
	}
	return rows
}

func defaultColumns() []string {
	return []string{
		"balance_transaction_id", "created_utc", "created", "available_on_utc", "available_on", "currency", "gross", "fee", "net",
		"reporting_category", "source_id", "description", "customer_facing_amount", "customer_facing_currency", "automatic_payout_id",
		"automatic_payout_effective_at_utc", "automatic_payout_effective_at", "customer_id", "charge_id", "payment_intent_id",
		"charge_created_utc", "charge_created", "payment_method_type", "card_brand", "card_funding", "card_country",
		"statement_descriptor", "dispute_reason",
	}
}

// emptyColumns are Stripe's, and always empty here.
func emptyColumns() []string {
	return []string{
		"regulatory_tag", "customer_email", "customer_name", "customer_description", "invoice_id", "invoice_number", "subscription_id",
		"is_link", "trace_id", "trace_id_status", "order_id", "destination_payment_id",
	}
}

func knownColumn(name string) bool {
	return slices.Contains(defaultColumns(), name) || slices.Contains(emptyColumns(), name) ||
		slices.ContainsFunc([]string{
			"customer_shipping_address_", "customer_address_", "shipping_address_", "card_address_", "connected_account_",
			"payment_metadata[", "refund_metadata[", "transfer_metadata[",
		}, func(family string) bool { return strings.HasPrefix(name, family) })
}

// cell is what a column says of a movement. Money is in major units with a point, unlike the API's.
func (p *report) cell(b *transaction, name string) string {
	switch name {
	case "balance_transaction_id":
		return b.id
	case "created_utc", "created":
		return p.moment(b.created, name)
	case "available_on_utc", "available_on":
		return p.moment(b.available, name)
	case "currency":
		return b.currency
	case "gross":
		return major(b.amount, b.currency)
	case "fee":
		return major(b.fee, b.currency)
	case "net":
		return major(b.net(), b.currency)
	case "reporting_category":
		return b.category
	case "source_id":
		return b.source.ident()
	}
	if b.payout != nil {
		switch name {
		case "automatic_payout_id":
			return b.payout.id
		case "automatic_payout_effective_at_utc", "automatic_payout_effective_at":
			return p.moment(b.payout.arrival, name)
		}
	}
	if ch := b.charge(); ch != nil {
		return p.chargeCell(b, ch, name)
	}
	return ""
}

// chargeCell is what a column says of the charge behind a movement.
func (p *report) chargeCell(b *transaction, ch *charge, name string) string {
	if key, ours := strings.CutPrefix(name, "payment_metadata["); ours {
		return ch.metadata[strings.TrimSuffix(key, "]")]
	}
	refund, isRefund := b.source.(*refund)
	if key, ours := strings.CutPrefix(name, "refund_metadata["); ours && isRefund {
		return refund.metadata[strings.TrimSuffix(key, "]")]
	}
	dispute, isDispute := b.source.(*dispute)
	switch name {
	case "customer_facing_amount":
		amount := ch.amountCaptured
		switch {
		case isRefund:
			amount = refund.amount
		case isDispute:
			amount = dispute.amount
		}
		if b.amount < 0 {
			amount = -amount
		}
		return major(amount, ch.currency)
	case "customer_facing_currency":
		return ch.currency
	case "customer_id":
		return ch.customer
	case "charge_id":
		return ch.id
	case "payment_intent_id":
		return ch.intent.id
	case "charge_created_utc", "charge_created":
		return p.moment(ch.created, name)
	case "payment_method_type":
		return "card"
	case "card_brand":
		return ch.method.brand
	case "card_funding":
		return ch.method.funding
	case "card_country":
		return "US"
	case "statement_descriptor":
		return "SIMULATED"
	case "dispute_reason":
		if isDispute {
			return dispute.reason
		}
	}
	return ""
}

// moment is a time in UTC where the column says so, else in the report's zone.
func (p *report) moment(at int64, column string) string {
	zone := p.zone
	if strings.HasSuffix(column, "_utc") {
		zone = time.UTC
	}
	return time.Unix(at, 0).In(zone).Format(time.DateTime)
}

// major writes an amount in major units.
func major(amount int64, currency string) string {
	places := decimals(currency)
	if places == 0 {
		return strconv.FormatInt(amount, 10)
	}
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	digits := strconv.FormatInt(amount, 10)
	if missing := places + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	return sign + digits[:len(digits)-places] + "." + digits[len(digits)-places:]
}

func encodeCSV(rows [][]string) []byte {
	var body bytes.Buffer
	_ = csv.NewWriter(&body).WriteAll(rows) // a buffer cannot fail
	return body.Bytes()
}
