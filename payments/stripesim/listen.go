package stripesim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a simulator that listens. Unlike a bare handler it can refuse connections, for the fault refuse and for
// close_listener_ms.
type Server struct {
	*Simulator

	// URL is where it listens, without a slash at the end.
	URL string

	http    *http.Server
	address string
	running sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	reopen   *time.Timer // not nil while the address is shut
	closed   bool
}

// Start listens on a TCP address, such as 127.0.0.1:0, and serves a new simulator there until Close.
func Start(ctx context.Context, address string, cfg Config) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	s := &Server{
		Simulator: New(cfg),
		URL:       "http://" + listener.Addr().String(),
		address:   listener.Addr().String(),
	}
	s.closeListener = s.shut
	s.http = &http.Server{Handler: s.Simulator, ReadHeaderTimeout: 10 * time.Second}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve(listener)
	return s, nil
}

// Close ends what is held back, lets running answers finish for a few seconds, and frees the address.
func (s *Server) Close() error {
	s.Simulator.Close()
	s.mu.Lock()
	s.closed = true
	if s.reopen != nil {
		s.reopen.Stop()
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close() // a client that has dialled and asks nothing would be waited for
	}
	s.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil // a fault had shut the address, and net/http was about to notice
	}
	return err
}

// serve runs the server on a listener. The caller holds mu.
func (s *Server) serve(listener net.Listener) {
	s.listener = listener
	s.running.Go(func() {
		_ = s.http.Serve(listener) // ends with the listener; whoever closed it knows why
	})
}

// shut closes the listener, the idle connections now and the busy ones after their answer, and listens again after d. The latest call decides for how long.
func (s *Server) shut(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || d <= 0 {
		return
	}
	if s.reopen != nil {
		s.reopen.Reset(d)
		return
	}
	_ = s.listener.Close()
	s.http.SetKeepAlivesEnabled(false) // closes the idle connections: who kept one would not notice that the address is shut
	s.reopen = time.AfterFunc(d, s.listenAgain)
}

func (s *Server) listenAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.reopen == nil {
		return
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.address)
	if err != nil { // somebody took the address meanwhile: keep asking for it
		s.log.Warn("cannot listen again", "address", s.address, "error", err)
		s.reopen.Reset(100 * time.Millisecond)
		return
	}
	s.reopen = nil
	s.http.SetKeepAlivesEnabled(true)
	s.serve(listener)
}
