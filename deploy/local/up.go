package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const stateDir = ".holdfast"

// upCommand is `local up`.
type upCommand struct {
	Keep           bool   `help:"Keep the database and the stream from one run to the next. The simulated Stripe keeps nothing, so bookings of an earlier run are then unknown to it."`
	Bin            string `help:"Directory with the binaries, instead of building them." type:"existingdir"`
	StopWithParent bool   `help:"Stop when the process that started this one has ended."`
}

// Run starts the stack, describes it and waits for the interrupt.
func (c *upCommand) Run(ctx context.Context, out *printer) error {
	root, err := checkoutRoot()
	if err != nil {
		return err
	}
	state := filepath.Join(root, stateDir)
	unlock, err := lockState(state)
	if err != nil {
		return err
	}
	defer unlock()
	if c.StopWithParent {
		var cancel context.CancelFunc
		ctx, cancel = cancelWithParent(ctx)
		defer cancel()
	}
	stack, err := startStack(ctx, out, stackOptions{
		root: root, state: state, bin: c.Bin, keep: c.Keep, file: filepath.Join(state, "stack.json"),
	})
	if err != nil {
		return err
	}
	describe(out, stack)
	<-ctx.Done()
	out.progress("stopping")
	return stack.stop()
}

// describe prints what a person needs to try the stack out.
func describe(out *printer, s *stack) {
	d := s.description
	out.title("Holdfast is up")
	out.line("api        %s   (documentation: %s/docs)", d.APIURL, d.APIURL)
	out.line("console    %s   (token operator: what is stuck; token finance: the month, exceptions, payouts)", d.ConsoleURL)
	out.line("metrics    %s", d.MetricsURL)
	out.line("database   %s", d.DatabaseURL)
	out.line("nats       %s", d.NATSURL)
	out.line("stripe     %s", d.StripeURL)
	out.line("logs       %s", s.opts.logs())
	out.line("stack      %s", s.opts.file)
	for _, name := range tokenNames() {
		out.line("token      %-10s %s", name, d.Tokens[name])
	}
	for _, r := range d.Resources {
		out.line("resource   %s  %s, %d place(s), %d %s (minor units) for %d minutes", r.ID, r.Name, r.Places, r.Price, r.Currency, r.UnitMinutes)
	}
	start := time.Now().UTC().AddDate(0, 0, 1).Truncate(time.Hour)
	out.line("")
	out.line("A first booking:")
	out.line("")
	out.line("%s", strings.Join([]string{
		"curl -i " + d.APIURL + "/v1/bookings",
		"  -H 'Authorization: Bearer " + d.Tokens["customer"] + "'",
		"  -H 'Idempotency-Key: my-first-booking' -H 'Content-Type: application/json'",
		"  -d '" + firstBooking(d.Resources[0].ID, start) + "'",
	}, " \\\n"))
	out.line("")
	out.line("For the commands of api, worker and reconciler, in another terminal:")
	out.line("")
	out.line(". %s", s.opts.shown(s.opts.envFile()))
	out.line("worker outbox list")
	out.line("reconciler exceptions list")
	out.line("")
	out.line("What to do about what is stuck: docs/runbook.md. To see something stuck: kill -STOP the pid of nats or stripesim in stack.json, and book;")
	out.line("it is listed as stuck after about a minute. For the month's figures: docs/finance.md.")
	out.line("")
	out.line("Ctrl-C stops everything.")
}

func firstBooking(resource string, start time.Time) string {
	return fmt.Sprintf(`{"resource_id":%q,"start":%q,"end":%q,"customer":{"name":"Ada","email":"ada@example.com"},"payment_method":"pm_card_visa"}`,
		resource, start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339))
}

// checkoutRoot is the directory of go.mod: state and binaries belong there, and `go build` works there.
func checkoutRoot() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(root, "go.mod")) //nolint:gosec // a fixed name
	if err != nil || !strings.HasPrefix(string(text), "module holdfast\n") {
		return "", &usageError{reason: "run this from the root of Holdfast's checkout (no go.mod of module holdfast in " + root + ")"}
	}
	return root, nil
}

// lockState makes the state directory and takes its lock: two stacks over one directory would destroy each other.
func lockState(state string) (unlock func(), err error) {
	if err := makeWritable(state); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(state, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a fixed name
	if err != nil {
		return nil, cannotWrite(state, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(
			&usageError{reason: "a stack is up already over " + state + ": stop it first, or look at its stack.json"}, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// cancelWithParent ends the context when this process gets another parent, which means that its own has ended.
func cancelWithParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if os.Getppid() != parent {
					cancel()
				}
			}
		}
	}()
	return ctx, cancel
}
