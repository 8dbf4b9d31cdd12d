package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"time"
)

// stack is a running Holdfast.
type stack struct {
	opts        stackOptions
	env         environment // of the binaries
	supervisor  *supervisor
	description description // without pids, which change; the rest stays once every process serves

	mu        sync.Mutex // guards published, and what is written where
	published bool
}

// errInterrupted says that somebody did not want to wait.
var errInterrupted = errors.New("interrupted")

// interruptLag is how long an interrupt may take to get here once it has ended a command: a terminal sends it to both.
const interruptLag = 200 * time.Millisecond

// orInterrupted is err, or errInterrupted where that is what became of ctx: what it ended has nothing to tell.
func orInterrupted(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return errInterrupted
	case <-time.After(interruptLag):
		return err
	}
}

// startStack builds, starts and seeds a stack and returns once every process serves and is described. An error leaves
// nothing running.
func startStack(ctx context.Context, out *printer, opts stackOptions) (*stack, error) {
	s := &stack{opts: opts}
	s.supervisor = newSupervisor(out, func() {
		if err := s.describe(); err != nil {
			out.progress("%v", err)
		}
	})
	if err := orInterrupted(ctx, s.start(ctx, out)); err != nil {
		if errors.Is(err, errInterrupted) {
			out.progress("interrupted, stopping what has started")
		}
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *stack) start(ctx context.Context, out *printer) error {
	s.env = environment(os.Environ()).withDefaults(s.opts.extra...)
	if strings.HasPrefix(s.env.get("STRIPE_API_KEY"), "sk_live_") || strings.HasPrefix(s.env.get("STRIPE_API_KEY"), "rk_live_") {
		return &usageError{reason: "STRIPE_API_KEY is a live key: the local stack takes only test keys (sk_test_…)"}
	}
	if err := errors.Join(
		checkFree(ctx, "HTTP_ADDR", s.env.get("HTTP_ADDR")), checkFree(ctx, "METRICS_ADDR", s.env.get("METRICS_ADDR")),
	); err != nil {
		return err
	}
	if err := s.opts.prepare(); err != nil {
		return err
	}
	picked, err := pickPorts(ctx)
	if err != nil {
		return err
	}
	if err := build(ctx, out, &s.opts); err != nil {
		return err
	}
	if err := s.startServers(ctx, picked); err != nil {
		return err
	}
	binaries := s.configure(picked)
	out.progress("migrating and seeding the database")
	if err := seed(ctx, s.opts.binary("api"), s.env, &s.description); err != nil {
		return err
	}
	if err := s.supervisor.launch(ctx, binaries...); err != nil {
		return err
	}
	if s.opts.file != "" {
		if err := writeEnvironment(s.opts.envFile(), s.env, s.opts.bin); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.published = true
	s.mu.Unlock()
	return s.describe()
}

// startServers starts what Holdfast needs and the environment does not name.
func (s *stack) startServers(ctx context.Context, picked ports) error {
	d := &s.description
	d.DatabaseURL, d.NATSURL, d.StripeURL = s.env.get("DATABASE_URL"), s.env.get("NATS_URL"), s.env.get("STRIPE_API_BASE")
	// The simulator signs with the first of these.
	s.env = s.env.withDefaults("STRIPE_API_KEY=sk_test_local", "STRIPE_WEBHOOK_SECRETS=whsec_"+rand.Text())

	var servers []*service
	if d.DatabaseURL == "" {
		servers = append(servers, postgresService(s.opts, picked.postgres, &d.DatabaseURL))
	}
	if d.NATSURL == "" {
		d.NATSURL = natsURL(picked.nats)
		service, err := natsService(s.opts, picked.nats)
		if err != nil {
			return err
		}
		servers = append(servers, service)
	}
	if d.StripeURL == "" {
		d.StripeURL = browsable(localAddress(picked.stripe))
		servers = append(servers, s.stripeService(picked))
	}
	return s.supervisor.launch(ctx, servers...)
}

// stripeService is the simulated Stripe, which sends its webhooks to the api.
func (s *stack) stripeService(picked ports) *service {
	secret, _, _ := strings.Cut(s.env.get("STRIPE_WEBHOOK_SECRETS"), ",")
	env := s.env.with(
		"STRIPESIM_ADDR="+localAddress(picked.stripe),
		"STRIPESIM_WEBHOOK_URL="+browsable(s.apiAddress(picked))+"/v1/webhooks/stripe",
		"STRIPESIM_WEBHOOK_SECRET="+secret,
	)
	return program("stripesim", s.opts.log("stripesim"), env, answers(s.description.StripeURL+"/_sim/ledger"), s.opts.binary("stripesim"))
}

func (s *stack) apiAddress(picked ports) string {
	if address := s.env.get("HTTP_ADDR"); address != "" {
		return address
	}
	return localAddress(picked.api)
}

// configure completes the environment of the three binaries and the description, and returns their services. HTTP_ADDR
// and METRICS_ADDR of the caller are the api's: the others cannot listen there too.
func (s *stack) configure(picked ports) []*service {
	d := &s.description
	s.env = s.env.with("DATABASE_URL="+d.DatabaseURL, "NATS_URL="+d.NATSURL, "STRIPE_API_BASE="+d.StripeURL)
	metrics := map[string]string{
		"api": s.env.get("METRICS_ADDR"), "worker": localAddress(picked.workerMetrics), "reconciler": localAddress(picked.reconcilerMetrics),
	}
	if metrics["api"] == "" {
		metrics["api"] = localAddress(picked.apiMetrics)
	}
	api := s.apiAddress(picked)
	d.APIURL, d.MetricsURL = browsable(api), browsable(metrics["api"])+"/metrics"
	d.ConsoleURL = d.APIURL + "/console"
	d.MetricsURLs = map[string]string{}
	var services []*service
	for _, binary := range []struct{ name, verb, ready string }{
		{"api", "serve", d.APIURL + "/readyz"},
		{"worker", "run", browsable(metrics["worker"]) + "/readyz"},
		{"reconciler", "run", browsable(metrics["reconciler"]) + "/readyz"},
	} {
		env := s.env.with("HTTP_ADDR="+api, "METRICS_ADDR="+metrics[binary.name])
		d.MetricsURLs[binary.name] = browsable(metrics[binary.name]) + "/metrics"
		services = append(services,
			program(binary.name, s.opts.log(binary.name), env, answers(binary.ready), s.opts.binary(binary.name), binary.verb))
	}
	return services
}

// describe writes the description with the present pids, once the stack is complete and until it stops.
func (s *stack) describe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.published {
		return nil
	}
	if s.opts.file == "" {
		return nil
	}
	d := s.description // which others read meanwhile
	d.PIDs = s.supervisor.pids()
	return d.write(s.opts.file)
}

// stop takes away what tells of the stack, stops everything and removes the data that is not to be kept.
func (s *stack) stop() error {
	var problems []error
	s.mu.Lock()
	problems = append(problems, s.opts.removePublished())
	s.published = false
	s.mu.Unlock()
	problems = append(problems, s.supervisor.stop())
	if !s.opts.keep {
		problems = append(problems, s.opts.removeData())
	}
	return errors.Join(problems...)
}
