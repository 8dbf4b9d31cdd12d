package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	slowestBeat = 2 * time.Second
	stopTimeout = 2 * time.Second
)

// beatEvery lets several beats fail before the process counts as dead. It does not grow with a longer bound, since the
// processes that sweep may have been told a shorter one.
func beatEvery(deadAfter time.Duration) time.Duration { return min(slowestBeat, deadAfter/5) }

// heartbeat keeps this process's row in outbox_workers fresh while its workers run. A process whose row is missing or
// old is taken for dead, and the sweep gives its effects new jobs. That is a guess, and may be wrong (a stalled process,
// a slow database): then a job runs twice, which every handler bears.
type heartbeat struct {
	pool   *pgxpool.Pool
	id     string
	every  time.Duration
	logger *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
}

func newHeartbeat(pool *pgxpool.Pool, id string, every time.Duration, logger *slog.Logger) *heartbeat {
	return &heartbeat{pool: pool, id: id, every: every, logger: logger}
}

// start writes the first beat, for which it takes as long as ctx allows, and goes on beating.
func (h *heartbeat) start(ctx context.Context) error {
	if err := h.beat(ctx); err != nil {
		return err
	}
	ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.done = make(chan struct{})
	go h.run(ctx)
	return nil
}

func (h *heartbeat) run(ctx context.Context) {
	defer close(h.done)
	ticker := time.NewTicker(h.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		beat, cancel := context.WithTimeout(ctx, h.every)
		if err := h.beat(beat); err != nil && ctx.Err() == nil {
			h.logger.WarnContext(ctx, "heartbeat not written", "error", err.Error())
		}
		cancel()
	}
}

func (h *heartbeat) beat(ctx context.Context) error {
	_, err := h.pool.Exec(ctx, `
		INSERT INTO outbox_workers (id, seen_at) VALUES ($1, clock_timestamp())
		ON CONFLICT ON CONSTRAINT outbox_workers_pkey DO UPDATE SET seen_at = excluded.seen_at`, h.id)
	if err != nil {
		return fmt.Errorf("write heartbeat: %w", err)
	}
	return nil
}

// stop ends the beating and takes the row away, so that jobs left running are carried on at once. If that fails, the
// row grows old by itself.
func (h *heartbeat) stop(ctx context.Context) {
	if h.cancel == nil {
		return // never started
	}
	h.cancel()
	<-h.done
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if _, err := h.pool.Exec(ctx, `DELETE FROM outbox_workers WHERE id = $1`, h.id); err != nil {
		h.logger.WarnContext(ctx, "heartbeat not removed; it grows old by itself", "error", err.Error())
	}
}
