package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewLogger writes one JSON object per line, with the trace id of the context that it is written in ([WithTrace]).
func NewLogger(w io.Writer, level slog.Level, service string) *slog.Logger {
	return slog.New(traced{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})}).With("service", service)
}

// NewRegistry makes a registry with the process's and the runtime's own metrics.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Ready tells whether the process can do its work now; the error says what is missing, and may be shown to anybody.
type Ready func(ctx context.Context) error

// Pinger is a pool of connections, as far as readiness asks.
type Pinger interface {
	Ping(ctx context.Context) error
}

// DatabaseReady is the readiness of a process that needs nothing but its database. Why it does not answer is told to
// nobody: anybody may read this.
func DatabaseReady(db Pinger) Ready {
	return func(ctx context.Context) error {
		if db.Ping(ctx) != nil {
			return errors.New("the database does not answer")
		}
		return nil
	}
}

// Handler serves /metrics, /healthz (the process is alive) and /readyz (it can do its work).
func Handler(registry *prometheus.Registry, ready Ready) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := ready(ctx); err != nil {
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		say(w, http.StatusOK, "ready")
	})
	return mux
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text)
}

// Serve serves handler on address until the returned stop is called. An empty address serves nothing.
func Serve(ctx context.Context, address string, handler http.Handler, logger *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics on METRICS_ADDR: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.ErrorContext(ctx, "the metrics address is served no more", "error", err)
		}
	}()
	return func() {
		_ = server.Close()
		<-done
	}, nil
}
