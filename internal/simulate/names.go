package simulate

import (
	"fmt"
	"regexp"
	"strings"
)

// names gives everything that has a random id a short name, in the order in which a history tells of it: so the history of a
// seed is the same each time, and can be read.
type names map[string]string

var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(pi|ch|re|evt|dp|pm|req|txn)_[0-9A-Za-z]{14,}|127\.0\.0\.1:[0-9]+`)

func (n names) shorten(text string) string {
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		name, known := n[id]
		if !known {
			prefix, _, found := strings.Cut(id, "_")
			switch {
			case strings.HasPrefix(id, "127."):
				prefix = "address"
			case !found:
				prefix = "id"
			}
			n["#"+prefix] += "x"
			name = fmt.Sprintf("%s-%d", prefix, len(n["#"+prefix]))
			n[id] = name
		}
		return name
	})
}

// call gives an id a name that says more.
func (n names) call(id, name string) {
	if _, known := n[id]; !known && id != "" {
		n[id] = name
	}
}
