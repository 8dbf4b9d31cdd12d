package httpapi

import (
	"maps"
	"slices"
)

// DecodeBooking is open to tests of its limits, ParseInstant to those of any text, and Luhn to tests of what has a card
// number's check digit and is none, and PreferredWait to tests of a header's grammar.
var (
	DecodeBooking = decodeBooking
	ParseInstant  = parseInstant
	Luhn          = luhn
	PreferredWait = preferredWait
)

// StatusOf is the status that a code is answered with.
func StatusOf(code Code) int { return kinds[code].status }

// Following counts those who wait for news of a booking.
func (s *Server) Following() int {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return len(s.watch.followers)
}

// ToldOperatorSchemas are the desks' schemas, and of each the members that are told of.
func ToldOperatorSchemas() map[string][]string {
	told := map[string][]string{}
	for _, s := range deskSchemas() {
		told[s.name] = slices.Sorted(maps.Keys(s.members))
	}
	return told
}
