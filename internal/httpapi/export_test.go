package httpapi

// DecodeBooking is open to tests of its limits, and Luhn to tests of what has a card number's check digit and is none.
var (
	DecodeBooking = decodeBooking
	Luhn          = luhn
)

// StatusOf is the status that a code is answered with.
func StatusOf(code Code) int { return kinds[code].status }
