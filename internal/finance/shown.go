package finance

// Shown is a report as programs are shown it, with what it comes to first: the same from a command and over HTTP.
type Shown struct {
	Verdict string `json:"verdict"`
	Open    int    `json:"open"`
	Broken  int    `json:"broken"`
	Report
}

// Shown adds what the report comes to. A list without anything is empty, and not null.
func (r Report) Shown() Shown {
	filled(&r.Incomplete)
	filled(&r.Balances)
	filled(&r.Categories)
	filled(&r.Days)
	filled(&r.Sides)
	filled(&r.Payouts)
	filled(&r.Identities)
	filled(&r.Pending)
	filled(&r.Exceptions)
	filled(&r.SignedOff)
	filled(&r.Unchecked)
	return Shown{Verdict: r.Verdict(), Open: r.Open(), Broken: r.Broken(), Report: r}
}

func filled[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}
