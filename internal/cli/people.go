package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bojanz/currency"

	"holdfast/domain"
)

// Money shows an amount as people write it: 25.00 EUR, 2500 JPY.
func Money(m domain.Money) string {
	amount, err := currency.NewAmountFromInt64(m.Amount, m.Currency)
	if err != nil {
		return m.String() + " (minor units)"
	}
	return amount.Number() + " " + amount.CurrencyCode()
}

// Age shows how long something has lasted, in its two largest units.
func Age(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	days, hours, minutes, seconds := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds)
	default:
		return strconv.Itoa(seconds) + "s"
	}
}

// When shows a moment to the second.
func When(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
