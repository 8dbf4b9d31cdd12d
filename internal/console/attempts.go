package console

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// attempts limits how often somebody may try to sign in. A token cannot be guessed; this keeps guessers off the database.
type attempts struct {
	mu        *sync.Mutex
	perMinute int
	from      map[string]*rate.Limiter
}

const maxAddresses = 10_000

func newAttempts(perMinute int) attempts {
	return attempts{mu: &sync.Mutex{}, perMinute: perMinute, from: map[string]*rate.Limiter{}}
}

// allow tells whether one more attempt from an address may be made now. Behind a proxy all come from one.
func (a attempts) allow(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	limiter := a.from[host]
	if limiter == nil {
		if len(a.from) >= maxAddresses { // forgetting all is kinder than refusing all
			clear(a.from)
		}
		limiter = rate.NewLimiter(rate.Every(time.Minute/time.Duration(a.perMinute)), a.perMinute)
		a.from[host] = limiter
	}
	return limiter.Allow()
}
