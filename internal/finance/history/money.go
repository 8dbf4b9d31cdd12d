package history

import (
	"strconv"
	"strings"
)

// purse is a currency as this package knows it.
type purse struct {
	shown    string // what customers see
	settled  string // what the account is settled in
	price    int64  // the lowest, in minor units
	step     int64
	fixed    int64 // of a fee
	exchange int64 // ten-thousandths of the settled currency's unit for one of the other; 0: none
}

func purses() []purse {
	return []purse{
		{"USD", "USD", 1999, 1, 30, 0}, {"JPY", "JPY", 2500, 1, 20, 0}, {"KWD", "KWD", 12340, 10, 100, 0}, {"EUR", "USD", 1599, 1, 30, 10842},
	}
}

// Fees are what the provider takes, by the currency of the settlement: 1.5 % and a fixed sum, cut to whole steps; and of a dispute.
func Fees() map[string][2]int64 {
	return map[string][2]int64{"USD": {30, 1}, "JPY": {20, 1}, "KWD": {100, 10}}
}

// BasisPoints and DisputeFee are the rest of them.
const (
	BasisPoints = 150
	DisputeFee  = 1500
)

func (p purse) settle(amount int64) int64 {
	if p.exchange == 0 {
		return amount
	}
	if amount < 0 {
		return -p.settle(-amount)
	}
	return (amount*p.exchange + 5000) / 10000
}

func (p purse) fee(settled int64) int64 {
	fee := (settled*BasisPoints+5000)/10000 + p.fixed
	return fee - fee%p.step
}

func (p purse) rate() string {
	if p.exchange == 0 {
		return ""
	}
	return major(p.exchange, 4)
}

// places is how many decimal places a currency has.
func places(currency string) int {
	return map[string]int{"JPY": 0, "KWD": 3}[currency] + map[string]int{"USD": 2, "EUR": 2, "GBP": 2}[currency]
}

// major writes minor units as major ones, as the provider's reports do.
func major(amount int64, places int) string {
	if places == 0 {
		return strconv.FormatInt(amount, 10)
	}
	sign := ""
	if amount < 0 {
		sign, amount = "-", -amount
	}
	digits := strconv.FormatInt(amount, 10)
	if short := places + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	return sign + digits[:len(digits)-places] + "." + digits[len(digits)-places:]
}
