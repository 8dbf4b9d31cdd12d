package client

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// backoff is how long to wait after a try: doubling, between half and the whole of it, so that clients which failed
// together do not come back together.
func (c *Client) backoff(tries int) time.Duration {
	pause := c.maxBackoff
	if doublings := tries - 1; doublings < 30 && c.minBackoff < c.maxBackoff>>doublings {
		pause = c.minBackoff << doublings
	}
	return pause/2 + rand.N(pause/2+1) //nolint:gosec // jitter needs no cryptography
}

// retryAfter reads how long a server asks to be left alone: seconds, or a date (RFC 9110, section 10.2.3), which is
// judged by the server's own clock if the answer tells it.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now = date
	}
	return max(0, at.Sub(now))
}
