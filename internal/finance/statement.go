package finance

// Line is a line of the account's statement: one figure for each currency.
type Line struct {
	Kind        string // such as fees
	Name, Means string
	Sum         bool    // of lines above it
	Amounts     []int64 // minor units; what takes from the balance is negative
}

// Flow is what moved a balance, each part signed as it moves it.
type Flow struct{ Gross, Fees, Refunds, Disputes, Other, Net, Payouts int64 }

// Add adds the transactions of a category.
func (f *Flow) Add(category string, amount, fee, net int64) {
	switch category {
	case "payout", "payout_reversal":
		f.Payouts += net
		return
	case "charge":
		f.Gross += amount
	case "refund", "refund_failure":
		f.Refunds += amount
	case "dispute", "dispute_reversal":
		f.Disputes += amount
	default:
		f.Other += amount
	}
	f.Fees -= fee
	f.Net += net
}

// Statement is the account at the provider, from the opening balance to the closing one: the same lines on the page, at a terminal and
// as CSV.
func (r Report) Statement() (currencies []string, lines []Line) {
	var all []*Flow
	at := map[string]int{}
	of := func(code string) *Flow {
		i, known := at[code]
		if !known {
			i = len(all)
			at[code], all, currencies = i, append(all, &Flow{}), append(currencies, code)
		}
		return all[i]
	}
	balances := map[string]Balance{}
	for _, b := range r.Balances {
		of(b.Currency)
		balances[b.Currency] = b
	}
	for _, c := range r.Categories {
		of(c.Currency).Add(c.Category, c.Amount, c.Fee, c.Net)
	}
	for _, l := range []struct {
		Line

		of func(f *Flow, b Balance) int64
	}{
		{Line{"opening", "Opening balance", "at the provider, when the period begins", true, nil}, func(_ *Flow, b Balance) int64 { return b.Opening }},
		{Line{"gross", "Gross", "all charges, before fees", false, nil}, func(f *Flow, _ Balance) int64 { return f.Gross }},
		{Line{"fees", "Fees", "what the provider has kept", false, nil}, func(f *Flow, _ Balance) int64 { return f.Fees }},
		{Line{"refunds", "Refunds", "given back to customers, less those that failed", false, nil}, func(f *Flow, _ Balance) int64 { return f.Refunds }},
		{Line{"disputes", "Disputes", "withdrawn by customers' banks, less those that were won", false, nil}, func(f *Flow, _ Balance) int64 { return f.Disputes }},
		{Line{"other", "Other", "anything else that moved the balance", false, nil}, func(f *Flow, _ Balance) int64 { return f.Other }},
		{Line{"activity", "Net", "the sum of the five lines above", true, nil}, func(f *Flow, _ Balance) int64 { return f.Net }},
		{Line{"payouts", "Payouts", "sent to the bank, less those that came back", false, nil}, func(f *Flow, _ Balance) int64 { return f.Payouts }},
		{Line{"closing", "Closing balance", "opening balance, net and payouts together", true, nil}, func(_ *Flow, b Balance) int64 { return b.Closing }},
	} {
		for i, f := range all {
			l.Amounts = append(l.Amounts, l.of(f, balances[currencies[i]]))
		}
		lines = append(lines, l.Line)
	}
	return currencies, lines
}
