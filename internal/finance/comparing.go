package finance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"holdfast/domain"
	"holdfast/outbox"
)

// longestComparison ends a comparison that hangs. What it has done by then is kept, and the next goes on from there.
const longestComparison = 30 * time.Minute

// mostAsked is how many comparisons may run or wait their turn: who asks for many and leaves must not keep others from theirs.
const mostAsked = 8

// longestAsked is the longest period of a page, in days.
const longestAsked = 366

// Comparing is a desk for those who cannot wait long, such as whoever has asked for a page. A comparison goes on when they have gone,
// and the next to ask finds it done: the desk's Fresh must be more than 0. One comparison of this process runs at a time, since each
// takes connections, and bookings need them, too.
type Comparing struct {
	*Desk

	life  context.Context //nolint:containedctx // of what runs in the background
	wait  time.Duration
	asked singleflight.Group
	all   chan struct{}
	one   chan struct{}

	mu  sync.Mutex
	far Progress
}

// NewComparing makes a desk whose comparisons end with life, and whose callers wait so long at most.
func NewComparing(life context.Context, wait time.Duration, open func(tell func(Progress)) *Desk) *Comparing {
	c := &Comparing{life: life, wait: wait, all: make(chan struct{}, mostAsked), one: make(chan struct{}, 1)}
	c.Desk = open(c.tell)
	return c
}

// ComparingError says that the answer is not there yet, how far it is, and that asking again is the way to get it. It is a
// domain.ErrBusy.
type ComparingError struct{ Progress Progress }

func (e *ComparingError) Error() string {
	return fmt.Sprintf("the books are being compared (%s: %.0f %%)", e.Progress.Stage, 100*e.Progress.Done)
}

// Unwrap returns domain.ErrBusy.
func (e *ComparingError) Unwrap() error { return domain.ErrBusy }

// Report is [Desk.Report]'s, or a *ComparingError.
func (c *Comparing) Report(ctx context.Context, p Period) (Report, error) {
	if err := short(p); err != nil {
		return Report{}, err
	}
	return await(ctx, c, fmt.Sprintf("report %q", p), func(ctx context.Context) (Report, error) { return c.Desk.Report(ctx, p) })
}

// SignOffPeriod is [Desk.SignOffPeriod]'s, or a *ComparingError: the period is then signed off once it was compared, if nothing stands
// against it.
func (c *Comparing) SignOffPeriod(ctx context.Context, p Period, actor outbox.Actor, reason string) (SignedPeriod, error) {
	if err := short(p); err != nil {
		return SignedPeriod{}, err
	}
	return await(ctx, c, fmt.Sprintf("sign off %q %q %q", p, actor, reason), func(ctx context.Context) (SignedPeriod, error) {
		return c.Desk.SignOffPeriod(ctx, p, actor, reason)
	})
}

// short refuses a period of years, which would be read from the provider day by day. What is no day is refused by Window.
func short(p Period) error {
	if day(p.To).Sub(day(p.From)) > longestAsked*24*time.Hour {
		return &domain.ValidationError{Field: "to", Reason: fmt.Sprintf("must be at most %d days after from", longestAsked)}
	}
	return nil
}

// await begins the work, or joins it where it runs already, and waits for it.
func await[T any](ctx context.Context, c *Comparing, what string, work func(context.Context) (T, error)) (result T, err error) {
	done := c.asked.DoChan(what, func() (any, error) { //nolint:contextcheck // it outlives who has asked
		ctx, cancel := context.WithTimeout(c.life, longestComparison)
		defer cancel()
		select {
		case c.all <- struct{}{}:
			defer func() { <-c.all }()
		default:
			c.mu.Lock()
			defer c.mu.Unlock()
			return nil, &ComparingError{c.far}
		}
		select {
		case c.one <- struct{}{}:
			defer func() { <-c.one }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		c.tell(Progress{})
		return work(ctx)
	})
	patience := time.NewTimer(c.wait)
	defer patience.Stop()
	select {
	case r := <-done:
		result, _ = r.Val.(T) // nil with an error
		return result, r.Err
	case <-patience.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return result, &ComparingError{c.far}
}

func (c *Comparing) tell(p Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.far = p
}
