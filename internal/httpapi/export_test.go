package httpapi

// DecodeBooking is open to tests of its limits, ParseInstant to those of any text, and Luhn to tests of what has a card
// number's check digit and is none.
var (
	DecodeBooking = decodeBooking
	ParseInstant  = parseInstant
	Luhn          = luhn
)

// StatusOf is the status that a code is answered with.
func StatusOf(code Code) int { return kinds[code].status }
