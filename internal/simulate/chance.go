package simulate

import "math/rand/v2"

// chance makes the choices of one step of one schedule. Each step has one of its own, so that leaving a step out of a
// schedule changes nothing of what the others draw.
type chance struct{ r *rand.Rand }

func newChance(seed uint64, step int) *chance {
	return &chance{r: rand.New(rand.NewPCG(seed, uint64(step)+0x9e3779b97f4a7c15))} //nolint:gosec // a schedule is to be repeatable, not secret
}

// n draws from 0 to n-1.
func (c *chance) n(n int) int { return c.r.IntN(n) }

// percent is true so often.
func (c *chance) percent(p float64) bool { return c.r.Float64()*100 < p }

// pick draws one of several; what is there twice comes twice as often.
func pick[T any](c *chance, of ...T) T { return of[c.n(len(of))] }
