package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

const maxDepth = 16 // of nested values: deeper than any request needs

// parseJSON reads one JSON value and refuses what two readers could understand differently: a member given twice,
// something after the value, invalid UTF-8, half a surrogate pair (encoding/json would silently replace the last two).
// Numbers stay as they were written. Every refusal is a *Problem, malformed_json.
func parseJSON(data []byte) (any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, malformed("the body is empty")
	}
	if !utf8.Valid(data) {
		return nil, malformed("the body is not valid UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, malformed(fmt.Sprintf("at byte %d: %s", syntax.Offset, syntax.Error()))
		}
		return nil, malformed("the body cannot be read as JSON")
	}
	if at := loneSurrogate(data); at >= 0 {
		return nil, malformed(fmt.Sprintf("at byte %d: a \\u escape is half a surrogate pair", at+1))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return parseValue(dec, 0)
}

func parseValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, malformed("the body cannot be read as JSON")
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == maxDepth {
		return nil, malformed("values are nested deeper than " + strconv.Itoa(maxDepth))
	}
	if delim == '[' {
		return parseArray(dec, depth)
	}
	return parseObject(dec, depth)
}

func parseArray(dec *json.Decoder, depth int) (any, error) {
	values := []any{}
	for dec.More() {
		v, err := parseValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	_, err := dec.Token() // the closing bracket
	return values, err
}

func parseObject(dec *json.Decoder, depth int) (any, error) {
	values := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, malformed("the body cannot be read as JSON")
		}
		name, _ := token.(string) // the grammar allows nothing else here
		if _, twice := values[name]; twice {
			return nil, malformed("the member " + strconv.Quote(shorten(name)) + " is given twice in one object")
		}
		if values[name], err = parseValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token() // the closing brace
	return values, err
}

// loneSurrogate finds a \u escape that is half a surrogate pair in well-formed JSON, or returns -1.
func loneSurrogate(data []byte) int {
	for i := 0; i < len(data)-1; i++ {
		if data[i] != '\\' {
			continue
		}
		first, ok := escaped(data[i:])
		if !ok {
			i++ // an escape of one character, maybe a backslash
			continue
		}
		switch {
		case first >= 0xDC00 && first <= 0xDFFF:
			return i
		case first >= 0xD800 && first < 0xDC00:
			second, ok := escaped(data[i+6:])
			if !ok || second < 0xDC00 || second > 0xDFFF {
				return i
			}
			i += 6
		}
		i += 5
	}
	return -1
}

// escaped reads a \uXXXX at the start of data.
func escaped(data []byte) (uint64, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return v, err == nil
}

func malformed(detail string) *Problem { return newProblem(CodeMalformedJSON, detail) }

// shorten keeps an answer from repeating a name as long as the body, or one that holds a card number.
func shorten(name string) string {
	const longest = 100
	if holdsCardNumber(name) {
		return "…"
	}
	if utf8.RuneCountInString(name) <= longest {
		return name
	}
	return string([]rune(name)[:longest]) + "…"
}
