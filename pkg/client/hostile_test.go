package client_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// hostile stands before the API and does to requests and answers what networks, proxies and crashes do.
type hostile struct {
	api   http.Handler
	share float64 // of requests that something is done to

	mu       sync.Mutex
	rng      *rand.Rand
	injected map[string]int
}

func newHostile(t *testing.T, api http.Handler, seed uint64, share float64) (*hostile, *httptest.Server) {
	t.Helper()
	t.Logf("seed %d", seed)
	h := &hostile{api: api, share: share, rng: rand.New(rand.NewPCG(seed, 1)), injected: map[string]int{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, server
}

type fault func(h *hostile, w http.ResponseWriter, r *http.Request, body []byte)

// faults are all that is done. Those named after_… come after the API has carried the request out.
var faults = map[string]fault{
	"before_drop": func(*hostile, http.ResponseWriter, *http.Request, []byte) { drop() },
	"after_drop": func(h *hostile, _ http.ResponseWriter, r *http.Request, body []byte) {
		h.pass(r, body)
		drop()
	},
	"after_cut": func(h *hostile, w http.ResponseWriter, r *http.Request, body []byte) {
		a := h.pass(r, body)
		a.Header().Set("Content-Length", strconv.Itoa(a.Body.Len()))
		reply(w, a, a.Body.Len()/2)
		drop()
	},
	"after_cut_unnoticed": func(h *hostile, w http.ResponseWriter, r *http.Request, body []byte) { // a whole answer to HTTP, half a document
		a := h.pass(r, body)
		reply(w, a, a.Body.Len()/2)
	},
	"before_delay": func(h *hostile, w http.ResponseWriter, r *http.Request, body []byte) {
		<-time.After(10 * time.Millisecond)
		a := h.pass(r, body)
		reply(w, a, a.Body.Len())
	},
	"after_hang": func(h *hostile, _ http.ResponseWriter, r *http.Request, body []byte) { // until the client has given up this try
		h.pass(r, body)
		<-r.Context().Done()
	},
	"twice": func(h *hostile, w http.ResponseWriter, r *http.Request, body []byte) {
		h.pass(r, body)
		a := h.pass(r, body)
		reply(w, a, a.Body.Len())
	},
	"twice_at_once": func(h *hostile, w http.ResponseWriter, r *http.Request, body []byte) {
		var other sync.WaitGroup
		other.Go(func() { h.pass(r, body) })
		a := h.pass(r, body)
		other.Wait()
		reply(w, a, a.Body.Len())
	},
	"before_503":      canned(false, http.StatusServiceUnavailable, "0", "<h1>Service Unavailable</h1>"),
	"after_503":       canned(true, http.StatusServiceUnavailable, "0", ""),
	"before_503_date": canned(false, http.StatusServiceUnavailable, "Sun, 06 Nov 1994 08:49:37 GMT", ""),
	"before_429":      canned(false, http.StatusTooManyRequests, "0", `{"error":"slow down"}`),
	"before_502":      canned(false, http.StatusBadGateway, "", "<html><h1>Bad Gateway</h1></html>"),
	"after_502":       canned(true, http.StatusBadGateway, "", "<html><h1>Bad Gateway</h1></html>"),
	"after_504":       canned(true, http.StatusGatewayTimeout, "", ""),
	"before_portal":   canned(false, http.StatusOK, "", "<html>Welcome to the hotel's network</html>"),
	"after_portal":    canned(true, http.StatusCreated, "", "{}"),
}

func canned(after bool, status int, retryAfter, body string) fault {
	return func(h *hostile, w http.ResponseWriter, r *http.Request, sent []byte) {
		if after {
			h.pass(r, sent)
		}
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		drop()
	}
	name := h.pick()
	if name == "" {
		a := h.pass(r, body)
		reply(w, a, a.Body.Len())
		return
	}
	faults[name](h, w, r, body)
}

func (h *hostile) pick() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rng.Float64() >= h.share {
		return ""
	}
	names := slices.Sorted(maps.Keys(faults))
	name := names[h.rng.IntN(len(names))]
	if name == "after_hang" && h.rng.IntN(5) > 0 { // each costs the time of a try
		name = "after_drop"
	}
	h.injected[name]++
	return name
}

// pass has the API carry a request out, whether its client still waits or not.
func (h *hostile) pass(r *http.Request, body []byte) *httptest.ResponseRecorder {
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	h.api.ServeHTTP(w, again)
	return w
}

// reply passes an answer on, or the beginning of it.
func reply(w http.ResponseWriter, a *httptest.ResponseRecorder, length int) {
	maps.Copy(w.Header(), a.Header())
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body.Bytes()[:length])
}

// drop breaks the connection off.
func drop() { panic(http.ErrAbortHandler) }

func (h *hostile) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprint(h.injected)
}
