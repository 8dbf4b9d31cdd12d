package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"holdfast/domain"
)

// Config is what the API needs. Durations of zero take their defaults.
type Config struct {
	Clients   Authenticator
	Bookings  Accepter
	Catalogue Catalogue
	Payments  Viewer
	Actions   Prompter // nil: no booking is shown with what its customer has to do
	Desk      Desk
	Operators Operators
	Finance   Finance
	Inbox     Inbox // nil: no webhook secret is set, and deliveries are answered 503
	Events    Events
	Console   http.Handler // of everything under /console; nil: there is none

	Ready     func(ctx context.Context) error                        // nil: traffic can be taken; the error is logged, not shown
	Transient func(err error) bool                                   // the database was busy or away: 503, not 500; default: never
	Observe   func(route string, status int, duration time.Duration) // once per request, for metrics; default: nothing

	RequestTimeout    time.Duration // for one request once its headers are read; default 10 s
	ReadHeaderTimeout time.Duration // default 5 s
	ReadTimeout       time.Duration // for headers and body; default 10 s
	FollowInterval    time.Duration // how often the database is asked for news, for all who follow a booking; default 250 ms
	StreamLifetime    time.Duration // after which a stream ends, and its client comes back; default 5 min
	StreamHeartbeat   time.Duration // between signs of life on a stream; default 15 s
	StreamsPerClient  int           // open at the same time; default 100
	DrainDelay        time.Duration // between "not ready" and taking no more connections, for load balancers to notice; default 0
	DrainTimeout      time.Duration // for requests in flight at the end; default 20 s
}

const (
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
)

// Server is the API. It is an http.Handler; Serve puts it on a listener.
type Server struct {
	config   Config
	logger   *slog.Logger
	mux      *http.ServeMux
	watch    *watch
	streams  streams
	draining atomic.Bool
	stopping chan struct{} // closed once no new connection is taken: whoever waits for news is answered
}

// New makes the API.
func New(config Config, logger *slog.Logger) (*Server, error) {
	if config.Transient == nil {
		config.Transient = func(error) bool { return false }
	}
	if config.Observe == nil {
		config.Observe = func(string, int, time.Duration) {}
	}
	for _, d := range []struct {
		value *time.Duration
		or    time.Duration
	}{
		{&config.RequestTimeout, 10 * time.Second},
		{&config.ReadHeaderTimeout, 5 * time.Second},
		{&config.ReadTimeout, 10 * time.Second},
		{&config.DrainTimeout, 20 * time.Second},
		{&config.FollowInterval, 250 * time.Millisecond},
		{&config.StreamLifetime, 5 * time.Minute},
		{&config.StreamHeartbeat, 15 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.or
		}
	}
	if config.StreamsPerClient <= 0 {
		config.StreamsPerClient = 100
	}
	s := &Server{
		config: config, logger: logger, mux: http.NewServeMux(), stopping: make(chan struct{}),
		watch:   &watch{events: config.Events, interval: config.FollowInterval, logger: logger, followers: map[*follower]struct{}{}},
		streams: streams{open: map[domain.ClientID]int{}},
	}
	if err := s.register(); err != nil {
		return nil, fmt.Errorf("set up the API: %w", err)
	}
	return s, nil
}

// ErrDrainTimeout says that requests were still running when the time to finish them was over, and were cut off. What
// they had committed stays, and the same request sent again is answered with it.
var ErrDrainTimeout = errors.New("requests were still running at the end of the drain time-out")

// Serve answers requests on l until ctx ends, and then drains: first /readyz says 503, then no new connection is
// taken, and requests in flight finish, within the drain time-out. Streams end as soon as no new connection is taken:
// those who come back for the rest then come to another process. It serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.config.ReadHeaderTimeout,
		ReadTimeout:       s.config.ReadTimeout,
		WriteTimeout:      s.config.ReadTimeout + s.config.RequestTimeout + 5*time.Second, // never cuts off an answer in time
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// net/http logs what clients do to connections, with their addresses: worth a look, not a page.
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
		// Requests in flight outlive the signal to stop.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	err := s.drain(ctx, server, failed)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func (s *Server) drain(ctx context.Context, server *http.Server, failed chan error) error {
	s.draining.Store(true)
	delay := time.NewTimer(s.config.DrainDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case err := <-failed: // the listener is gone already
		failed <- err
	}
	close(s.stopping)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.DrainTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(ErrDrainTimeout, server.Close())
	}
	return err
}
