package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"regexp"
	"strings"
)

// Trace is a trace id as W3C Trace Context has it: 32 lower-case hexadecimal digits, not all of them 0. It joins the log
// lines of one request or one run of a job.
type Trace string

// NewTrace makes a trace id.
func NewTrace() Trace {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return Trace(hex.EncodeToString(id[:]))
}

// https://www.w3.org/TR/trace-context/#traceparent-header. A later version may have more to say, after another dash.
var traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

// ParseTraceparent returns the trace id of a request's traceparent headers, or false: none is taken over from what is
// not valid, or there several times. Anybody may send one, so it proves nothing; all that it can do is to name a trace.
func ParseTraceparent(headers []string) (Trace, bool) {
	const longest = 512
	if len(headers) != 1 || len(headers[0]) > longest {
		return "", false
	}
	m := traceparent.FindStringSubmatch(headers[0])
	switch {
	case m == nil, m[1] == "ff", m[1] == "00" && m[4] != "", strings.Trim(m[2], "0") == "", strings.Trim(m[3], "0") == "":
		return "", false
	}
	return Trace(m[2]), true
}

type traceKey struct{}

// WithTrace returns a context whose log lines carry the trace id.
func WithTrace(ctx context.Context, id Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, id)
}

// traced adds the context's trace id to each line.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if id, ok := ctx.Value(traceKey{}).(Trace); ok {
		r.AddAttrs(slog.String("trace_id", string(id)))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }
