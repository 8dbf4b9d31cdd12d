package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"holdfast/domain"
	"holdfast/outbox"
)

// Events tells what has happened to bookings. It does not ask whose they are.
type Events interface {
	After(ctx context.Context, booking domain.BookingID, seq int64) ([]outbox.Happened, error)
	Newest(ctx context.Context, of []domain.BookingID) (map[domain.BookingID]int64, error)
}

// watch wakes whoever follows a booking when it has an event that they do not know yet. However many follow, that is one
// query at a time on one connection, and none while nobody does: a customer who waits holds nothing but memory.
type watch struct {
	events   Events
	interval time.Duration // between two looks
	logger   *slog.Logger

	mu        sync.Mutex
	followers map[*follower]struct{}
	stop      context.CancelFunc // ends the looking; nil while nobody follows
}

// follower is somebody who follows a booking.
type follower struct {
	woken   chan struct{} // has room for one
	booking domain.BookingID
	known   int64 // the newest event that they know; guarded by watch.mu
}

const lookTimeout = 5 * time.Second

// follow begins to wait for events of a booking after one of them. leave must be called in the end.
func (w *watch) follow(ctx context.Context, booking domain.BookingID, known int64) *follower {
	f := &follower{woken: make(chan struct{}, 1), booking: booking, known: known}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.followers[f] = struct{}{}
	if w.stop == nil {
		ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx)) // it looks for others, too
		go w.run(ctx)
	}
	return f
}

// learned says which event the follower knows now. Until then they are woken again and again: no event is missed
// because its reading failed.
func (w *watch) learned(f *follower, known int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.known = known
}

func (w *watch) leave(f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.followers, f)
	if len(w.followers) == 0 {
		w.stop()
		w.stop = nil
	}
}

func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := w.look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			w.logger.WarnContext(ctx, "events cannot be read; whoever follows a booking waits", "error", err.Error())
		}
		failing = err != nil
	}
}

// look wakes those for whose booking there is news.
func (w *watch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	newest, err := w.events.Newest(ctx, w.followed())
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for f := range w.followers {
		if newest[f.booking] > f.known {
			select {
			case f.woken <- struct{}{}:
			default: // they have not come to look yet
			}
		}
	}
	return nil
}

// followed lists each booking that is followed once.
func (w *watch) followed() []domain.BookingID {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[domain.BookingID]struct{}, len(w.followers))
	list := make([]domain.BookingID, 0, len(w.followers))
	for f := range w.followers {
		if _, twice := seen[f.booking]; !twice {
			seen[f.booking] = struct{}{}
			list = append(list, f.booking)
		}
	}
	return list
}
