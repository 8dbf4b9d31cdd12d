package main

import (
	"net"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/cli"
	"holdfast/payments"
)

// serving is what only serve has.
type serving struct {
	HTTPAddr             string          `default:"127.0.0.1:8080" help:"Where the API is served; nothing listens beyond loopback unless this says so." setting:"HTTP_ADDR"`
	WebhookSecrets       []domain.Secret `kong:"-"` // STRIPE_WEBHOOK_SECRETS, comma-separated; empty: webhooks are not taken in
	IdempotencyRetention time.Duration   `default:"24h" help:"How long the answer to a key is kept and replayed; the key itself is kept for good." setting:"IDEMPOTENCY_RETENTION"`
	RequestTimeout       time.Duration   `default:"10s" help:"For one request, once its headers are read." setting:"REQUEST_TIMEOUT"`
	BusyBudget           time.Duration   `default:"4s" help:"Of that, for trying again where the database is busy." setting:"BUSY_BUDGET"`
	ReadHeaderTimeout    time.Duration   `default:"5s" help:"For a request's headers to arrive." setting:"READ_HEADER_TIMEOUT"`
	ReadTimeout          time.Duration   `default:"10s" help:"For a request's headers and body to arrive." setting:"READ_TIMEOUT"`
	MaxCards             int             `default:"5" help:"How many cards may be tried for one booking, the first included." setting:"MAX_CARDS"`
	MaxCardsPerHour      int             `default:"60" help:"How many other cards one client may send within an hour, over all of its bookings." setting:"MAX_CARDS_PER_HOUR"`
	FollowInterval       time.Duration   `default:"250ms" help:"How often the database is asked for news, in one query for all who follow a booking." setting:"FOLLOW_INTERVAL"`
	StreamLifetime       time.Duration   `default:"5m" help:"After which a stream of events ends and its client comes back; a revoked token is good for no longer." setting:"STREAM_LIFETIME"`
	StreamHeartbeat      time.Duration   `default:"15s" help:"Between signs of life on a stream; less than what proxies take for silence." setting:"STREAM_HEARTBEAT"`
	StreamsPerClient     int             `default:"100" help:"How many streams a client may have open on this process." setting:"STREAMS_PER_CLIENT"`
	DrainDelay           time.Duration   `default:"0s" help:"How long /readyz says no before connections are refused; give it a load balancer's probe interval." setting:"DRAIN_DELAY"`
}

func (s *serving) configure(getenv func(string) string, p *cli.Problems) {
	if secrets := getenv("STRIPE_WEBHOOK_SECRETS"); secrets != "" {
		for secret := range strings.SplitSeq(secrets, ",") {
			if secret = strings.TrimSpace(secret); secret == "" {
				p.Add("STRIPE_WEBHOOK_SECRETS has an empty entry; want whsec_…, or several separated by commas")
			}
			s.WebhookSecrets = append(s.WebhookSecrets, domain.Secret(secret))
		}
	}
	if _, _, err := net.SplitHostPort(s.HTTPAddr); err != nil {
		p.Add("HTTP_ADDR (--http-addr): %q is not an address such as 127.0.0.1:8080", s.HTTPAddr)
	}
	for name, d := range map[string]time.Duration{
		"IDEMPOTENCY_RETENTION": s.IdempotencyRetention, "REQUEST_TIMEOUT": s.RequestTimeout, "BUSY_BUDGET": s.BusyBudget,
		"READ_HEADER_TIMEOUT": s.ReadHeaderTimeout, "READ_TIMEOUT": s.ReadTimeout,
		"FOLLOW_INTERVAL": s.FollowInterval, "STREAM_LIFETIME": s.StreamLifetime, "STREAM_HEARTBEAT": s.StreamHeartbeat,
	} {
		if d <= 0 {
			p.Add("%s: %s is not more than 0", name, d)
		}
	}
	for name, n := range map[string]int{"MAX_CARDS": s.MaxCards, "MAX_CARDS_PER_HOUR": s.MaxCardsPerHour} {
		if n < 1 {
			p.Add("%s: %d is not at least 1", name, n)
		}
	}
	if s.BusyBudget > s.RequestTimeout {
		p.Add("BUSY_BUDGET (%s) is more than REQUEST_TIMEOUT (%s)", s.BusyBudget, s.RequestTimeout)
	}
	if s.StreamsPerClient <= 0 {
		p.Add("STREAMS_PER_CLIENT: %d is not more than 0", s.StreamsPerClient)
	}
	if s.DrainDelay < 0 {
		p.Add("DRAIN_DELAY: %s is less than 0", s.DrainDelay)
	}
}

func (s *serving) cards(m *metrics) payments.CardLimits {
	return payments.CardLimits{PerBooking: s.MaxCards, PerClient: s.MaxCardsPerHour, Refusals: m.cardRefusals}
}

func (s *serving) bookings() bookings.Config {
	return bookings.Config{Retention: s.IdempotencyRetention, Budget: s.BusyBudget}
}
