package stripesim

// maxAmount is the largest amount that Stripe takes: eight digits, twelve for rupiah.
func maxAmount(currency string) int64 {
	if currency == "idr" {
		return 999_999_999_999
	}
	return 99_999_999
}

// minAmount is the least charge in minor units, by currency as documented. These drift: whoever integrates should treat
// amount_too_small as the authority and not this table.
func minAmount(currency string) int64 {
	switch currency {
	case "usd", "aud", "brl", "cad", "chf", "eur", "inr", "jpy", "nzd", "sgd":
		return 50
	case "gbp":
		return 30
	case "bgn":
		return 100
	case "aed", "myr", "pln", "ron":
		return 200
	case "dkk":
		return 250
	case "nok", "sek":
		return 300
	case "hkd":
		return 400
	case "mxn", "thb":
		return 1000
	case "czk":
		return 1500
	case "huf":
		return 17500
	default:
		return 1
	}
}

func checkAmount(amount int64, currency string) *apiError {
	switch {
	case amount < 1:
		return invalid("parameter_invalid_integer", "amount", "The amount must be at least 1.")
	case amount > maxAmount(currency):
		return invalid("amount_too_large", "amount", "The amount may be at most %d in %s.", maxAmount(currency), currency)
	case amount < minAmount(currency):
		return invalid("amount_too_small", "amount", "The amount must be at least %d in %s.", minAmount(currency), currency)
	}
	switch {
	case step(currency) == 10 && amount%10 != 0:
		return invalid("", "amount", "The last digit of an amount in %s must be 0.", currency)
	case step(currency) == 100 && amount%100 != 0:
		return invalid("", "amount", "The last two digits of an amount in %s must be 00.", currency)
	}
	return nil
}

// step is the least amount that exists outside the books. Three decimals there, two on the cards: the last digit is 0. Two decimals
// there, none in use: both are.
func step(currency string) int64 {
	switch currency {
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 10
	case "isk", "ugx":
		return 100
	default:
		return 1
	}
}

func validCurrency(currency string) bool {
	if len(currency) != 3 {
		return false
	}
	for _, letter := range currency {
		if letter < 'a' || letter > 'z' {
			return false
		}
	}
	return true
}
