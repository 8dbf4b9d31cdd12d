package outbox

import (
	"context"
	"errors"
	"sync"

	"holdfast/domain"
)

// carrier is the handler of a kind that keeps the contract: it reads the effect before it acts. It counts its acts, which
// a provider would see, and the rows alone would not tell.
type carrier struct {
	b      *testBundle
	before func(ctx context.Context, job Job) error // what happens to a run before it reads; may be nil

	mu   sync.Mutex
	acts map[domain.EffectID]int
}

func (c *carrier) work(ctx context.Context, job Job) (Verdict, error) {
	if c.before != nil {
		if err := c.before(ctx, job); err != nil {
			return Verdict{}, err
		}
	}
	e, err := Load(ctx, c.b.pool, job.Effect)
	if errors.Is(err, domain.ErrNotFound) || err == nil && e.Status != domain.EffectPending {
		return Verdict{}, nil
	}
	if err != nil {
		return Verdict{}, err
	}
	c.mu.Lock()
	if c.acts == nil {
		c.acts = map[domain.EffectID]int{}
	}
	c.acts[e.ID]++
	c.mu.Unlock()
	_, err = c.b.pool.Exec(ctx, `
		UPDATE outbox SET status = 'done', finished_at = clock_timestamp(),
		       stream = CASE kind WHEN 'publish' THEN 'none' END, stream_sequence = CASE kind WHEN 'publish' THEN 1 END
		 WHERE id = $1 AND status = 'pending'`, e.ID)
	return Verdict{}, err
}

func (c *carrier) acted(id domain.EffectID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acts[id]
}
