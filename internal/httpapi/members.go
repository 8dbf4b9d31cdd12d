package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/domain"
)

// members reads the members of one JSON object. Each accessor takes a member out and notes what is wrong with it, so
// that one answer lists every fault; what is left at the end is unknown, and refused. Names count exactly as written
// (encoding/json would take Start for start).
type members struct {
	path   string // of the object: "" or "customer."
	values map[string]any
	faults *faults
}

// readObject begins with the members of v.
func readObject(v any, path string, faults *faults) members {
	m := members{path: path, faults: faults}
	values, ok := v.(map[string]any)
	if !ok {
		*faults = append(*faults, &domain.ValidationError{Field: strings.TrimSuffix(path, "."), Reason: "want an object"})
	}
	m.values = maps.Clone(values)
	return m
}

func (m members) fault(name, reason string) {
	*m.faults = append(*m.faults, &domain.ValidationError{Field: strings.TrimSuffix(m.path+name, "."), Reason: reason})
}

// take removes a member. One that must be there and is not is a fault; null is a value like any other, and fits nothing.
func (m members) take(name string, required bool) (any, bool) {
	v, ok := m.values[name]
	if !ok && required && m.values != nil {
		m.fault(name, "is missing")
	}
	delete(m.values, name)
	return v, ok
}

// end refuses what nobody has taken.
func (m members) end() {
	for _, name := range slices.Sorted(maps.Keys(m.values)) {
		m.fault(name, "there is no such member")
	}
}

// alphabet is what a text may consist of.
type alphabet struct {
	has  func(rune) bool
	says string
}

func line() alphabet {
	return alphabet{func(r rune) bool { return !unicode.IsControl(r) && r != '\u2028' && r != '\u2029' }, "without control characters"}
}

func visibleASCII() alphabet {
	return alphabet{func(r rune) bool { return r > ' ' && r <= '~' }, "of visible ASCII"}
}

func anyText() alphabet { // PostgreSQL cannot store NUL
	return alphabet{func(r rune) bool { return r != 0 }, "without NUL"}
}

// text takes a string of a length in characters that holds no card number.
func (m members) text(name string, shortest, longest int, of alphabet) string {
	v, ok := m.take(name, true)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok || !fits(s, shortest, longest, of) {
		m.fault(name, fmt.Sprintf("want a string of %d to %d characters %s", shortest, longest, of.says))
		return ""
	}
	if holdsCardNumber(s) {
		m.fault(name, noCardNumber)
		return ""
	}
	return s
}

func fits(s string, shortest, longest int, of alphabet) bool {
	if n := utf8.RuneCountInString(s); n < shortest || n > longest {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !of.has(r) })
}

// integer takes a whole number. One that is absent and need not be there is fallback.
func (m members) integer(name string, lowest, highest int64, required bool, fallback int64) int64 {
	v, ok := m.take(name, required)
	if !ok {
		return fallback
	}
	number, ok := v.(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if !ok || err != nil || n < lowest || n > highest {
		m.fault(name, fmt.Sprintf("want a whole number from %d to %d, without fraction or exponent", lowest, highest))
		return fallback
	}
	return n
}

// object takes a nested object and reads it.
func (m members) object(name string, required bool, read func(members)) {
	v, ok := m.take(name, required)
	if !ok {
		return
	}
	nested := readObject(v, m.path+name+".", m.faults)
	if nested.values != nil {
		read(nested)
		nested.end()
	}
}
