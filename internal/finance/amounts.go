package finance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bojanz/currency"

	"holdfast/internal/cli"
)

// currencyOf is a currency's ISO code and how many decimal places its minor units have.
func currencyOf(code string) (digits int, iso string, err error) {
	iso = strings.ToUpper(code)
	n, known := currency.GetDigits(iso)
	if !known {
		return 0, "", fmt.Errorf("%q is no currency", printable(code))
	}
	return int(n), iso, nil
}

// largest is what one amount of a file may come to, in minor units: sums of them must not overflow, since what is stored once stays.
const largest = 100_000_000_000_000

// minor reads an amount in major units with a point, exactly.
func minor(text string, digits int) (int64, error) {
	bad := fmt.Errorf("%q is no amount in major units with at most %d decimals that count", printable(text), digits)
	whole, fraction, _ := strings.Cut(text, ".")
	for len(fraction) > digits && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	if len(fraction) > digits || strings.Trim(fraction, "0123456789") != "" || strings.Trim(strings.TrimPrefix(whole, "-"), "0123456789") != "" ||
		strings.TrimPrefix(whole, "-") == "" {
		return 0, bad
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	if err != nil {
		return 0, errors.Join(bad, err)
	}
	if n > largest || n < -largest {
		return 0, fmt.Errorf("%q is more than any account moves", printable(text))
	}
	return n, nil
}

// Major writes minor units as major ones with a point, as people and accounting systems read them.
func Major(amount int64, code string) string {
	digits, _, err := currencyOf(code)
	if err != nil || digits == 0 {
		return strconv.FormatInt(amount, 10)
	}
	sign := ""
	if amount < 0 {
		sign = "-"
	}
	text := strings.TrimPrefix(strconv.FormatInt(amount, 10), "-")
	if short := digits + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	return sign + text[:len(text)-digits] + "." + text[len(text)-digits:]
}

// printable is what a stranger has written, fit for a message.
func printable(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return cli.Printable(s)
}
