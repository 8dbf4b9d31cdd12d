package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"holdfast/internal/telemetry"
)

// ServeHTTP is all that happens to every request, whether it is for an operation of ours or not: an id, a deadline,
// headers, one log line, and an answer even after a panic.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	started := time.Now()
	x := &exchange{id: uuid.Must(uuid.NewV7()).String()}
	w := &recorder{ResponseWriter: rw}
	trace, ok := telemetry.ParseTraceparent(r.Header["Traceparent"])
	if !ok {
		trace = telemetry.NewTrace()
	}
	open := telemetry.WithTrace(context.WithValue(r.Context(), exchangeKey{}, x), trace)
	x.control, x.open = http.NewResponseController(w), open
	ctx, cancel := context.WithTimeout(open, s.config.RequestTimeout)
	defer cancel()
	r = r.WithContext(ctx)
	defer func() {
		took, status := time.Since(started), w.status
		if x.problem == CodeBusy && open.Err() != nil {
			status = statusClientLeft
		}
		s.log(ctx, r.Method, x, status, took)
		s.config.Observe(x.route, status, took)
	}()
	defer s.rescue(w, r)
	header := w.Header()
	header.Set("X-Request-Id", x.id)
	secure(header)
	x.accept = r.Header.Get("Accept")
	r.Header.Del("Accept") // every answer is JSON, whatever is asked for, but for the one operation that looks at x.accept
	s.route(w, r, x)
}

// statusClientLeft is noted for a client that did not wait for its answer. Nobody is told so, and it is no fault of ours.
const statusClientLeft = 499

// secure says to browsers what these answers never do: be cached, framed, sniffed or run.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// route finds the operation. What there is none for is a problem document, too, and no redirect to a guess.
func (s *Server) route(w http.ResponseWriter, r *http.Request, x *exchange) {
	if escaped := r.URL.EscapedPath(); escaped != clean(escaped) {
		s.refuse(w, r, newProblem(CodeNotFound, "There is nothing at this path."))
		return
	}
	fallback, pattern := s.mux.Handler(r)
	if pattern != "" {
		x.route = pattern
		s.mux.ServeHTTP(w, r)
		return
	}
	// The mux has an answer of its own in plain text: let it tell which methods it knows here.
	answer := &discarded{header: http.Header{}}
	fallback.ServeHTTP(answer, r)
	if answer.status == http.StatusMethodNotAllowed {
		allow := answer.header.Get("Allow")
		s.refuse(w, r, newProblem(CodeMethodNotAllowed, "Allowed here: "+allow+".").with("Allow", allow))
		return
	}
	s.refuse(w, r, newProblem(CodeNotFound, "There is nothing at this path."))
}

func clean(p string) string {
	cleaned := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned
}

// rescue turns a panic into a 500. What was panicked with may hold anything, so only its type is logged, or a runtime
// error's own text, and the stack, which names no values.
func (s *Server) rescue(w *recorder, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint,err113 // net/http compares it so, too
		panic(v)
	}
	cause := fmt.Errorf("panic with a %T", v)
	var fault interface{ RuntimeError() }
	if err, ok := v.(error); ok && errors.As(err, &fault) {
		cause = fmt.Errorf("panic: %w", err)
	}
	s.logger.ErrorContext(r.Context(), "panic in a handler", "request_id", exchangeOf(r.Context()).id, "error", cause.Error(),
		"stack", string(debug.Stack()))
	if w.status != 0 {
		exchangeOf(r.Context()).cause = cause
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	s.refuse(w, r, cause)
}

// recorder remembers the status for the log.
type recorder struct {
	http.ResponseWriter

	status int
}

// WriteHeader remembers the status.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discarded takes an answer that nobody will see.
type discarded struct {
	header http.Header
	status int
}

func (w *discarded) Header() http.Header         { return w.header }
func (w *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (w *discarded) WriteHeader(status int)      { w.status = status }
