package main

import (
	"time"

	"holdfast/domain"
	"holdfast/internal/cli"
)

// broker is where events go.
type broker struct {
	URL domain.Secret `kong:"-"` // NATS_URL; may hold credentials
}

func (b *broker) configure(getenv func(string) string, p *cli.Problems) {
	if b.URL = domain.Secret(getenv("NATS_URL")); b.URL == "" {
		p.Add("NATS_URL is not set; want nats://host:port")
	}
}

// protocol is the charge protocol's bounds, as the worker uses them.
type protocol struct {
	Sending     cli.Sending `embed:""`
	MaxSends    int         `default:"6" help:"Sends a worker makes for an effect before the reconciler takes it." setting:"MAX_SENDS"`
	LateRefunds int         `default:"20" help:"Refunds of money taken after a booking's end that are begun in an hour; more are parked for a person." setting:"LATE_REFUNDS_PER_HOUR"`
}

func (c *protocol) configure(getenv func(string) string, p *cli.Problems) {
	c.Sending.Configure(getenv, p)
	if c.MaxSends < 1 {
		p.Add("MAX_SENDS (--max-sends): %d is less than 1", c.MaxSends)
	}
	if c.LateRefunds < 1 {
		p.Add("LATE_REFUNDS_PER_HOUR (--late-refunds): %d is less than 1", c.LateRefunds)
	}
}

// publishing is how events go to the broker.
type publishing struct {
	PublishTimeout    time.Duration `default:"5s" help:"How long to wait for the broker's acknowledgement of an event." setting:"PUBLISH_TIMEOUT"`
	PublishBackoff    time.Duration `default:"1s" help:"Wait after the first trouble with the broker; doubles." setting:"PUBLISH_BACKOFF"`
	PublishMaxBackoff time.Duration `default:"30s" help:"Longest wait between two tries to publish an event." setting:"PUBLISH_MAX_BACKOFF"`
}

func (c *publishing) configure(p *cli.Problems) {
	if c.PublishTimeout <= 0 {
		p.Add("PUBLISH_TIMEOUT (--publish-timeout): %s is not more than 0", c.PublishTimeout)
	}
	if c.PublishBackoff <= 0 || c.PublishMaxBackoff < c.PublishBackoff {
		p.Add("PUBLISH_BACKOFF must be more than 0 and at most PUBLISH_MAX_BACKOFF, not %s and %s", c.PublishBackoff, c.PublishMaxBackoff)
	}
}

// jobs is how River's jobs are run.
type jobs struct {
	MaxWorkers  int           `default:"20" help:"Jobs at once, per kind of effect." setting:"MAX_WORKERS"`
	PollEvery   time.Duration `default:"100ms" help:"How often each queue is looked at without being woken." setting:"POLL_INTERVAL"`
	JobTimeout  time.Duration `default:"90s" help:"How long one run of a job may take; more than two exchanges with the provider." setting:"JOB_TIMEOUT"`
	RescueAfter time.Duration `default:"5m" help:"A job still running after this is run again." setting:"RESCUE_AFTER"`
}

func (c *jobs) configure(timeout time.Duration, p *cli.Problems) {
	if c.MaxWorkers < 1 {
		p.Add("MAX_WORKERS (--max-workers): %d is less than 1", c.MaxWorkers)
	}
	if c.JobTimeout <= 2*timeout {
		p.Add("JOB_TIMEOUT (--job-timeout): %s is not more than twice STRIPE_TIMEOUT, %s: a charge makes two exchanges", c.JobTimeout, timeout)
	}
	if c.RescueAfter <= c.JobTimeout {
		p.Add("RESCUE_AFTER (--rescue-after): %s is not more than JOB_TIMEOUT, %s", c.RescueAfter, c.JobTimeout)
	}
}
