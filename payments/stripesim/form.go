package stripesim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// params is a request's parsed parameters: strings, and nested params for brackets. a[0]=x and a[]=x are the same thing, as they
// are to Stripe; so parameters are compared parsed, not as bytes.
type params map[string]any

var errBadParameter = errors.New("a parameter is both a value and a container, or its brackets do not match")

// parseParams reads form-encoded bracketed parameters in the order sent.
func parseParams(encoded string) (params, error) {
	root := params{}
	for pair := range strings.SplitSeq(encoded, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return nil, err
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return nil, err
		}
		if err := root.put(name, value); err != nil {
			return nil, err
		}
	}
	return root, nil
}

func (p params) put(name, value string) error {
	path, err := segments(name)
	if err != nil {
		return err
	}
	at := p
	for i, segment := range path {
		if segment == "" && i > 0 {
			segment = strconv.Itoa(len(at)) // a[] appends
		}
		if i == len(path)-1 {
			if _, container := at[segment].(params); container {
				return errBadParameter
			}
			at[segment] = value
			return nil
		}
		if at[segment] == nil {
			at[segment] = params{}
		}
		next, container := at[segment].(params)
		if !container {
			return errBadParameter
		}
		at = next
	}
	return nil
}

// segments splits a[b][] into a, b and "".
func segments(name string) ([]string, error) {
	head, rest, nested := strings.Cut(name, "[")
	if head == "" {
		return nil, errBadParameter
	}
	path := []string{head}
	for nested {
		var segment string
		var closed bool
		segment, rest, closed = strings.Cut(rest, "]")
		if !closed || (rest != "" && rest[0] != '[') {
			return nil, errBadParameter
		}
		path = append(path, segment)
		if rest == "" {
			break
		}
		rest = rest[1:]
	}
	return path, nil
}

// digest identifies the parameters independently of their order and spelling.
func (p params) digest() string {
	canonical, _ := json.Marshal(p) // strings and maps, keys sorted: cannot fail
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// list returns the values under a name that holds an array, in order.
func (p params) list(name string) []string {
	array, isArray := p[name].(params)
	if !isArray {
		return nil
	}
	positions := make([]int, 0, len(array))
	for position := range array {
		if n, err := strconv.Atoi(position); err == nil {
			positions = append(positions, n)
		}
	}
	slices.Sort(positions)
	values := make([]string, 0, len(positions))
	for _, position := range positions {
		if value, isText := array[strconv.Itoa(position)].(string); isText {
			values = append(values, value)
		}
	}
	return values
}
