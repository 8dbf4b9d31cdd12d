package stripe

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/bojanz/currency"

	"holdfast/domain"
)

// Stripe counts money in units of its own, which for some currencies are not the minor units of ISO 4217. Source: "Supported
// currencies" and "Minimum and maximum charge amounts" (https://docs.stripe.com/currencies#zero-decimal, #three-decimal,
// #special-cases, #minimum-and-maximum-charge-amounts), as of API version 2023-10-16. Bookings are held to the same figures in
// our own units before they take a slot: the table charge_currencies (migrations/0003_bookings.sql). A test compares the two.
//
//   - MGA is sent in whole ariary, and so are the currencies without minor units in ISO 4217;
//   - ISK and UGX have no minor units in ISO 4217, but are sent with two digits that must be 00;
//   - currencies with three digits are sent with three, of which the last must be 0;
//   - HUF and TWD are charged with two digits like any other, and paid out in hundreds.

// digitsSent is how many decimal digits an amount has when it goes to Stripe. It knows nothing of whether there is such
// a currency.
func digitsSent(code string) int {
	switch code {
	case "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "JOD", "KWD", "OMR", "TND":
		return 3
	default:
		return 2
	}
}

// mostSent is the largest amount that Stripe takes, in its own units: eight digits, and twelve of rupiah.
func mostSent(code string) int64 {
	if code == "IDR" {
		return 999_999_999_999
	}
	return 99_999_999
}

// factor is what an amount in minor units is multiplied with, or divided by, to be in Stripe's units. Currencies whose
// ISO digits do not fit what Stripe's documentation says of them (IQD, LYD, CLF) are not charged: a guess could take ten
// times the price.
func factor(code string) (multiply, divide int64, err error) {
	iso, known := currency.GetDigits(code)
	if !known {
		return 0, 0, errors.New("no currency that we know: want an ISO 4217 code") // what came instead may be anything
	}
	switch {
	case digitsSent(code) == int(iso):
		return 1, 1, nil
	case code == "ISK" || code == "UGX":
		return 100, 1, nil
	case code == "MGA":
		return 1, 100, nil
	}
	return 0, 0, fmt.Errorf("how the provider counts %s is not known", code)
}

// toProvider returns the amount to charge in Stripe's units, or an error if Stripe cannot take it: it is never rounded.
func toProvider(m domain.Money) (int64, error) {
	multiply, divide, err := factor(m.Currency)
	if err != nil {
		return 0, err
	}
	amount, err := scale(m.Amount, multiply, divide)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", m, err)
	case amount < 1:
		return 0, fmt.Errorf("%s: only what is more than nothing can be charged", m)
	case amount > mostSent(m.Currency):
		return 0, fmt.Errorf("%s: more than the provider takes", m)
	case digitsSent(m.Currency) == 3 && amount%10 != 0:
		return 0, fmt.Errorf("%s: the provider takes amounts with three decimals only if the last is 0", m)
	}
	return amount, nil
}

// fromProvider returns the amount in minor units, or an error if it has none: it is never rounded.
func fromProvider(amount int64, code string) (domain.Money, error) {
	m := domain.Money{Currency: strings.ToUpper(code)}
	multiply, divide, err := factor(m.Currency)
	if err != nil {
		return domain.Money{}, err
	}
	if m.Amount, err = scale(amount, divide, multiply); err != nil {
		return domain.Money{}, fmt.Errorf("%d %s from the provider: %w", amount, m.Currency, err)
	}
	return m, nil
}

func scale(amount, multiply, divide int64) (int64, error) {
	if amount%divide != 0 {
		return 0, fmt.Errorf("not a multiple of %d", divide)
	}
	amount /= divide
	if amount > math.MaxInt64/multiply || amount < math.MinInt64/multiply {
		return 0, errors.New("too large")
	}
	return amount * multiply, nil
}
