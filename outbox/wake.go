package outbox

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
)

const (
	wakeInterval = 10 * time.Millisecond // at most one notification in this time, whatever the load
	wakeTimeout  = 2 * time.Second
)

// Waker tells the workers of every process, after a commit, that there is work. A NOTIFY inside the transaction would
// take a lock over COMMIT that all others wait for; this one runs on its own, at most once in 10 ms for all kinds
// together. It may fail or be lost: workers poll anyway, and only the pick-up is later.
type Waker struct {
	pool   *pgxpool.Pool
	logger *slog.Logger
	signal chan struct{}
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	kinds map[domain.EffectKind]bool
}

// NewWaker starts a waker. It runs until Close.
func NewWaker(pool *pgxpool.Pool, logger *slog.Logger) *Waker {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Waker{
		pool: pool, logger: logger, signal: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{}),
		kinds: make(map[domain.EffectKind]bool),
	}
	go w.run(ctx)
	return w
}

// Wake asks for the workers of a kind to look for jobs now. It never blocks. Call it after the commit: before it, the
// workers would find nothing.
func (w *Waker) Wake(kind domain.EffectKind) {
	w.mu.Lock()
	w.kinds[kind] = true
	w.mu.Unlock()
	select {
	case w.signal <- struct{}{}:
	default: // a notification is on its way, and takes this kind along
	}
}

// Close stops the waker and returns when it has stopped. What was not yet sent is dropped.
func (w *Waker) Close() {
	w.cancel()
	<-w.done
}

func (w *Waker) run(ctx context.Context) {
	defer close(w.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
		}
		w.notify(ctx, w.take())
		select {
		case <-ctx.Done():
			return
		case <-time.After(wakeInterval):
		}
	}
}

func (w *Waker) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := make([]string, 0, len(w.kinds))
	for _, kind := range slices.Sorted(maps.Keys(w.kinds)) {
		kinds = append(kinds, string(kind))
	}
	clear(w.kinds)
	return kinds
}

// notify sends what River's own insert would send: its listeners take the topic with the schema before it.
func (w *Waker) notify(ctx context.Context, kinds []string) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	_, err := w.pool.Exec(ctx, `
		SELECT pg_notify(concat(current_schema(), '.river_insert'), json_build_object('queue', kind)::text)
		  FROM unnest($1::text[]) AS kind`, kinds)
	if err != nil && ctx.Err() == nil {
		w.logger.WarnContext(ctx, "workers not woken; they find the work by polling", "error", err.Error())
	}
}
