package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"holdfast/domain"
)

const (
	streamWriteTimeout     = 10 * time.Second // for one write: a client that reads nothing for longer is let go
	streamRetryAfter       = "10"             // seconds; streams of a client end all the time
	eventStreamContentType = "text/event-stream"
)

type streamBookingInput struct {
	ID          string `path:"id" doc:"The booking's id."`
	LastEventID string `header:"Last-Event-ID" doc:"The id of the last event that you have: only what came after it is sent. Without it, or with 0, everything from the beginning."`
}

type streamBookingOutput struct {
	Body func(huma.Context)
}

// streamBooking tells what happens to a booking until its state is final. Whatever there is to refuse is refused before
// the first byte; after it the only way to say anything is to end, and the client comes back with Last-Event-ID.
func (s *Server) streamBooking(ctx context.Context, x *exchange, in *streamBookingInput) (*streamBookingOutput, error) {
	id, err := domain.ParseID[domain.BookingID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	x.booking = id.String()
	view, err := s.config.Payments.View(ctx, x.principal.ClientID, id)
	if err != nil {
		return nil, err
	}
	last, ok := parseEventID(in.LastEventID)
	if !ok || last > view.Booking.EventSeq {
		return nil, newProblem(CodeValidationFailed, "There is no such event of this booking.",
			Fault{Location: "header.Last-Event-ID", Message: "want the id of an event of this booking, as it came; leave it out to begin with the first"})
	}
	return &streamBookingOutput{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		if view.Booking.Status.Final() && last == view.Booking.EventSeq {
			w.WriteHeader(http.StatusNoContent) // which tells an EventSource to stop asking
			return
		}
		w.Header().Set("Content-Type", eventStreamContentType)
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusOK)
			return // net/http swallows what is written, and would let a stream go on for nobody
		}
		if !s.streams.enter(x.principal.ClientID, s.config.StreamsPerClient) {
			s.refuse(w, r, newProblem(CodeTooManyStreams,
				fmt.Sprintf("Your client has %d streams open. Close one, or look at the booking instead.", s.config.StreamsPerClient)).
				with("Retry-After", streamRetryAfter))
			return
		}
		defer s.streams.leave(x.principal.ClientID)
		s.stream(x, &stream{booking: id, client: x.principal.ClientID, last: last, w: w, control: x.control})
	}}, nil
}

// parseEventID reads the number of an event; none is 0.
func parseEventID(s string) (int64, bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil
}

// stream is one answer that goes on for a while.
type stream struct {
	booking domain.BookingID
	client  domain.ClientID
	last    int64 // the newest event that was sent
	w       http.ResponseWriter
	control *http.ResponseController
	gone    bool // nobody reads it any more
}

// stream sends events until the state is final, the client leaves, the process is about to stop, or it has lasted long
// enough: a token that was revoked meanwhile is good for no longer than that. While it waits it holds no connection to
// the database. What cannot be read from there is tried again with the next look; the client hears a heartbeat.
func (s *Server) stream(x *exchange, to *stream) {
	ctx := x.open
	to.w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects answers would keep the events for itself
	f := s.watch.follow(ctx, to.booking, to.last)
	defer s.watch.leave(f)
	heartbeat := time.NewTicker(s.config.StreamHeartbeat)
	defer heartbeat.Stop()
	end := time.NewTimer(s.config.StreamLifetime)
	defer end.Stop()
	// Those whom a stopping process sends away all at once come back spread over two seconds.
	to.write(fmt.Sprintf("retry: %d\n\n", 1000+8*int(to.booking.UUID[15])))
	for news := true; !to.gone; {
		if news {
			over, err := s.tell(ctx, to)
			if over {
				return
			}
			if err != nil && ctx.Err() == nil {
				x.cause = err
			}
			s.watch.learned(f, to.last)
		}
		news = false
		select {
		case <-f.woken:
			news = true
		case <-heartbeat.C:
			to.write(": nothing new\n\n")
		case <-end.C:
			return
		case <-s.stopping:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tell sends what has happened since the last event that was sent. Each event says what happened, and its data how the
// booking stands now, which is read after the events and so is never older. It is over when no event can follow.
func (s *Server) tell(ctx context.Context, to *stream) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
	defer cancel()
	events, err := s.config.Events.After(ctx, to.booking, to.last)
	if err != nil || len(events) == 0 {
		return false, err
	}
	view, err := s.config.Payments.View(ctx, to.client, to.booking)
	if err != nil {
		return false, err
	}
	var data bytes.Buffer
	if err := marshal(&data, showBooking(view)); err != nil { // one line, with its end
		return false, err
	}
	var text bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&text, "id: %d\nevent: %s\ndata: %s\n", e.EventSeq, e.EventType, data.Bytes())
		to.last = e.EventSeq
	}
	to.write(text.String())
	return view.Booking.Status.Final() && to.last >= view.Booking.EventSeq, nil
}

// write sends text at once.
func (to *stream) write(text string) {
	_ = to.control.SetWriteDeadline(time.Now().Add(streamWriteTimeout)) // the server's is for short answers
	_, err := to.w.Write([]byte(text))
	if err == nil {
		err = to.control.Flush()
	}
	to.gone = to.gone || err != nil
}

// streams counts the open streams of each client.
type streams struct {
	mu   sync.Mutex
	open map[domain.ClientID]int
}

func (s *streams) enter(client domain.ClientID, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[client] >= limit {
		return false
	}
	s.open[client]++
	return true
}

func (s *streams) leave(client domain.ClientID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[client]--; s.open[client] == 0 {
		delete(s.open, client)
	}
}
