package domain

import (
	"errors"
	"strings"
)

// MaxKeyLength is the longest idempotency key, in characters.
const MaxKeyLength = 255

// ErrKeyMissing says that a request came without an idempotency key.
var ErrKeyMissing = errors.New("the Idempotency-Key header is missing: send one key per intention, 1 to 255 visible ASCII characters")

// ErrKeyMalformed says that a key cannot be one.
var ErrKeyMalformed = errors.New("the Idempotency-Key is malformed: 1 to 255 visible ASCII characters, bare or as a quoted string")

// ParseKey reads the value of an Idempotency-Key header: 1–255 visible ASCII characters, bare or as the quoted string
// of the IETF draft (draft-ietf-httpapi-idempotency-key-header); both forms name the same key.
func ParseKey(header string) (string, error) {
	key := strings.Trim(header, " \t") // RFC 9110: white space around a field's value is no part of it
	if header == "" {
		return "", ErrKeyMissing
	}
	if strings.HasPrefix(key, `"`) {
		var ok bool
		if key, ok = unquote(key); !ok {
			return "", ErrKeyMalformed
		}
	}
	if key == "" || len(key) > MaxKeyLength {
		return "", ErrKeyMalformed
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return "", ErrKeyMalformed
		}
	}
	return key, nil
}

// unquote reads a quoted string and its two escapes (RFC 8941, section 3.3.3).
func unquote(s string) (string, bool) {
	if len(s) < 2 || !strings.HasSuffix(s, `"`) {
		return "", false
	}
	s = s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return "", false
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}
