package stripe

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// witness sees what happened on the wire during one call of the SDK, whose errors tell less: of an answer that it cannot
// decode it gives neither status nor headers, and of a send that net/http repeated only the last error.
type witness struct {
	written atomic.Int32 // how often request headers were written; from the connection's own goroutine
	status  int          // of the newest answer; 0: no answer
	header  http.Header
}

type witnessKey struct{}

// watch returns the context under which the call is seen.
//
// Headers are counted as written before they are flushed, and net/http returns from a failed HTTP/1.1 exchange only when
// the connection's writer has ended. So 0 means that no complete request was or will be written, and any other number
// that one may have been.
func (w *witness) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(context.WithValue(ctx, witnessKey{}, w), &httptrace.ClientTrace{
		WroteHeaders: func() { w.written.Add(1) },
	})
}

// recorder shows each answer to the witness of its request.
type recorder struct{ next http.RoundTripper }

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	w, watched := request.Context().Value(witnessKey{}).(*witness)
	if watched {
		w.status, w.header = 0, nil
	}
	response, err := r.next.RoundTrip(request)
	if watched && err == nil {
		w.status, w.header = response.StatusCode, response.Header
	}
	return response, err
}

// requestID is Stripe's name for the exchange, for talking to its support.
func (w *witness) requestID() string { return token(w.header.Get("Request-Id")) }

// token keeps what can only be a code or an id. What may be prose, and so hold a secret, becomes empty.
func token(s string) string {
	if len(s) > 64 {
		return ""
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return ""
		}
	}
	return s
}
