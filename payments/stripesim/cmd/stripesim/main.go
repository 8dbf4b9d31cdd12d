// Command stripesim runs a simulated Stripe on loopback, for development, demonstrations and tests.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"holdfast/payments/stripesim"
)

const description = `A Stripe that runs on loopback: PaymentIntents, charges, events and idempotency keys over real HTTP, with failures on
demand.

Point any Stripe library's base URL at the address printed, with any key that begins with sk_test_. The control surface (journal,
ledger, faults, clock, actions, reset) is beside the API under /_sim/. All state is in memory.`

// flags are the command line; each can be set by the environment too.
type flags struct {
	Addr           string        `env:"STRIPESIM_ADDR" default:"127.0.0.1:12111" help:"TCP address to listen on; port 0 picks a free one."`
	KeyRetention   time.Duration `env:"STRIPESIM_KEY_RETENTION" default:"24h" help:"How long an idempotency key is remembered."`
	LockWait       time.Duration `env:"STRIPESIM_LOCK_WAIT" default:"500ms" help:"How long a write waits for a busy object before 429 lock_timeout."`
	Account        string        `env:"STRIPESIM_ACCOUNT" default:"acct_1SimulatorAccount" help:"Id of the account."`
	WebhookURL     string        `env:"STRIPESIM_WEBHOOK_URL" help:"Where events are delivered, such as http://127.0.0.1:8080/v1/webhooks/stripe; none: nowhere."`
	WebhookSecret  string        `env:"STRIPESIM_WEBHOOK_SECRET" help:"What deliveries are signed with; several separated by commas while one is rolled."`
	WebhookBackoff time.Duration `env:"STRIPESIM_WEBHOOK_BACKOFF" default:"1s" help:"Pause after the first delivery that is not taken; then four times as long each time, eight tries."`
	AnyAddress     bool          `env:"STRIPESIM_ANY_ADDRESS" help:"Allow an address beyond loopback, the control surface included."`
	Verbose        bool          `short:"v" help:"Log each request to standard error."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var f flags
	kong.Parse(&f, kong.Name("stripesim"), kong.Description(description), kong.UsageOnError(), kong.Exit(exit))
	if err := run(ctx, f, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stripesim:", err)
		exit(2)
	}
}

// exit turns every complaint about the command line into status 2.
func exit(status int) {
	if status != 0 {
		status = 2
	}
	os.Exit(status)
}

// run serves until ctx ends.
func run(ctx context.Context, f flags, stdout io.Writer) error {
	if err := checkLoopback(f); err != nil {
		return err
	}
	level := slog.LevelInfo
	if f.Verbose {
		level = slog.LevelDebug
	}
	server, err := stripesim.Start(ctx, f.Addr, stripesim.Config{
		Account:      f.Account,
		KeyRetention: f.KeyRetention,
		LockWait:     f.LockWait,
		WebhookURL:   f.WebhookURL, WebhookSecret: f.WebhookSecret, WebhookBackoff: f.WebhookBackoff,
		OpenControl: f.AnyAddress,
		Logger:      slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--addr: %s is in use; port 0 picks a free one", f.Addr)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "stripesim listens on %s\n", server.URL)
	<-ctx.Done()
	return server.Close() //nolint:contextcheck // ctx has ended: that is why we close
}

func checkLoopback(f flags) error {
	host, _, err := net.SplitHostPort(f.Addr)
	if err != nil {
		return fmt.Errorf("--addr: want host:port, such as 127.0.0.1:12111: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && !f.AnyAddress {
		return fmt.Errorf("--addr: %s is not loopback; --any-address allows it", f.Addr)
	}
	if f.KeyRetention <= 0 || f.LockWait <= 0 {
		return fmt.Errorf("--key-retention and --lock-wait must be longer than 0")
	}
	if f.WebhookURL != "" && f.WebhookSecret == "" {
		return fmt.Errorf("--webhook-url needs --webhook-secret: deliveries are signed")
	}
	return nil
}
