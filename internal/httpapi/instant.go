package httpapi

import (
	"regexp"
	"strings"
	"time"
)

const (
	firstYear = 2000
	lastYear  = 2100

	wantInstant = "want an RFC 3339 time with its offset, such as 2027-05-01T10:00:00+02:00"
)

// rfc3339 is stricter than time.Parse, which also takes a comma for the dot and offsets that do not exist.
var rfc3339 = regexp.MustCompile(
	`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:(\d{2})(?:\.(\d+))?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$`)

// instant takes a moment. The zero time says that there was a fault.
func (m members) instant(name string) time.Time {
	v, ok := m.take(name, true)
	if !ok {
		return time.Time{}
	}
	s, _ := v.(string)
	t, fault := parseInstant(s)
	if fault != "" {
		m.fault(name, fault)
		return time.Time{}
	}
	return t
}

func parseInstant(s string) (t time.Time, fault string) {
	s = strings.ToUpper(s) // RFC 3339 allows t and z
	parts := rfc3339.FindStringSubmatch(s)
	switch {
	case parts == nil:
		return time.Time{}, wantInstant
	case parts[3] == "":
		return time.Time{}, "the time has no offset, and nothing here guesses one: add Z, or an offset such as +02:00"
	case parts[1] == "60":
		return time.Time{}, "leap seconds are not taken: send second 59, or the next minute's second 00"
	case len(parts[2]) > 6:
		return time.Time{}, "microseconds are the finest: send at most six digits after the dot"
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, wantInstant // no such day, hour, minute or second
	}
	t = t.UTC()
	if t.Year() < firstYear || t.Year() > lastYear {
		return time.Time{}, "the year must be from 2000 to 2100 (UTC)"
	}
	return t, ""
}
