package httpapi

import (
	"regexp"
	"strings"
)

// Card numbers are refused wherever a text could carry one: what stores, logs or sends them on falls under the card
// networks' rules, and nothing here is made for that.
const noCardNumber = "holds what looks like a card number, and none is ever taken here: let the payment provider make a token of the card, " +
	"and send that as payment_method"

var (
	digitGroups = regexp.MustCompile(`\+?[0-9]+(?:[ \x{00A0}\p{Pd}]+[0-9]+)*`)
	digits      = regexp.MustCompile(`[0-9]+`)
	uuids       = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b`)
	// issuer is how the numbers of the card networks begin: clocks in milliseconds (1…) and dates (20…) are none.
	issuer = regexp.MustCompile(`^(?:2[2-7]|[3-6]|8[12]|9792)`)
)

const (
	shortestCard  = 12
	longestCard   = 19
	longestNumber = 15 // of a telephone, by E.164
)

// holdsCardNumber finds a card number in a text: whole groups of digits, apart by spaces and dashes, that together have
// a card number's length, beginning and check digit. One order number in ten has that check digit, too, so what is
// plainly something else does not count: UUIDs, and telephone numbers that begin with a plus.
func holdsCardNumber(text string) bool {
	for _, run := range digitGroups.FindAllString(uuids.ReplaceAllString(text, "x"), -1) {
		groups := digits.FindAllString(run, -1)
		if strings.HasPrefix(run, "+") && len(strings.Join(groups, "")) <= longestNumber {
			continue
		}
		for first := range groups {
			number := ""
			for _, group := range groups[first:] {
				if number += group; len(number) > longestCard {
					break
				}
				if len(number) >= shortestCard && issuer.MatchString(number) && luhn(number) {
					return true
				}
			}
		}
	}
	return false
}

// luhn tells whether the last digit checks the others.
func luhn(number string) bool {
	sum := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
