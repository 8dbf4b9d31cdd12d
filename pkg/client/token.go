package client

import (
	"fmt"
	"io"
	"log/slog"
)

// Token is an API token, hf_…. However it is formatted, logged or marshalled, it hides itself; string(t) reveals it.
type Token string

const hidden = "[token]"

// Format hides the token from every verb of fmt.
func (Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// LogValue hides the token from slog.
func (Token) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the token from JSON and its like.
func (Token) MarshalText() ([]byte, error) { return []byte(hidden), nil }
