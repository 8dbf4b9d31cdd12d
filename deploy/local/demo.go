package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const pollEvery = 20 * time.Millisecond

// demoCommand is `local demo`.
type demoCommand struct {
	Bin string `help:"Directory with the binaries, instead of building them." type:"existingdir"`
}

// unmetError says that the demo ran to its end and not all of its summary holds.
type unmetError struct{ broken int }

func (e *unmetError) Error() string {
	return fmt.Sprintf("%d line(s) of the summary do not hold", e.broken)
}

// Help tells the exit statuses.
func (*demoCommand) Help() string {
	return "Exits 0 if all of the summary holds, 1 if not, 2 for wrong use or environment, 3 if it could not tell, 130 if interrupted. " +
		"make itself exits 2 whatever fails, and names the status in its last line."
}

// Run shows the story on a stack of its own, and fails unless all of the summary holds.
func (c *demoCommand) Run(ctx context.Context, out *printer) (err error) {
	if base, ok := os.LookupEnv("STRIPE_API_BASE"); ok && base != "" {
		return &usageError{reason: "the demo makes its own simulated Stripe fail: unset STRIPE_API_BASE"}
	}
	root, err := checkoutRoot()
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	// The logs are worth keeping when something went wrong.
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(state))
		} else {
			out.line("The logs of the stack are in %s.", filepath.Join(state, "logs"))
		}
	}()
	if err := os.Chmod(state, 0o755); err != nil { //nolint:gosec // PostgreSQL passes through as another account
		return fmt.Errorf("demo: %w", err)
	}
	out.title("Starting PostgreSQL, NATS, a simulated Stripe, and Holdfast's api, worker and reconciler")
	stack, err := startStack(ctx, out, stackOptions{
		root: root, state: state, bin: c.Bin,
		// The worker gives up after one silence, so that the reconciler's part is seen, and soon: a person is watching.
		extra: []string{"MAX_SENDS=1", "RECONCILE_INTERVAL=1s"},
	})
	if err != nil {
		return err
	}
	err = orInterrupted(ctx, tell(ctx, out, stack))
	out.progress("stopping")
	return errors.Join(err, stack.stop())
}

// tell is the story: a booking, a lost response, a replay, and what the provider, the database and the stream say.
func tell(ctx context.Context, out *printer, stack *stack) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	witness, err := newWitness(ctx, stack.description)
	if err != nil {
		return err
	}
	defer witness.close()
	d := &demo{
		out: out, stack: stack, witness: witness, run: strings.ToLower(rand.Text()[:6]),
		api: newAPIClient(stack.description), sim: newSimulator(stack.description),
	}
	for _, chapter := range []func(context.Context) error{d.bookAndPay, d.loseAResponse, d.replay} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return d.summarise(ctx)
}

// demo is the state of the story.
type demo struct {
	out     *printer
	stack   *stack
	witness *witness
	api     *apiClient
	sim     *simulator

	run           string   // tells this run's keys apart
	bookings      []string // in the order of the story
	replayed      string   // the effect that was replayed
	chargesBefore []charge // when the replay began
}

// bookAndPay is the story without trouble, and the same request sent twice.
func (d *demo) bookAndPay(ctx context.Context) error {
	d.out.title("1. A booking is made and paid")
	first, err := d.book(ctx, d.key("first"), 0)
	if err != nil {
		return err
	}
	d.out.progress("the same request is sent again under the same key")
	again, err := d.api.book(ctx, d.key("first"), d.slot(0))
	if err != nil {
		return err
	}
	if !again.Replayed || again.ID != first {
		return fmt.Errorf("the same key answered with booking %s (replayed: %t) after %s", again.ID, again.Replayed, first)
	}
	d.out.progress("    answer: booking %s once more, marked Idempotency-Replayed", again.ID)
	return d.awaitConfirmed(ctx, first)
}

// loseAResponse makes the provider charge and not say so, nor answer questions about it.
func (d *demo) loseAResponse(ctx context.Context) error {
	d.out.title("2. The provider takes the money, and its answer is lost")
	for _, f := range []fault{
		// More than one answer has to be lost: net/http itself sends a request again when a kept connection breaks.
		{Operation: "payment_intents.confirm", Times: -1, Fault: "reset_after"},
		{Operation: "payment_intents.retrieve", Times: -1, Fault: "error_503"},
	} {
		if err := d.sim.arm(ctx, f); err != nil {
			return err
		}
	}
	d.out.progress("from now on the simulated Stripe confirms payments but cuts the connection, and answers reads with 503")
	second, err := d.book(ctx, d.key("second"), 1)
	if err != nil {
		return err
	}
	return d.watch(ctx, second, "in_doubt")
}

// replay lets an operator repeat the charge whose answer was lost, before the provider answers again and after.
func (d *demo) replay(ctx context.Context) error {
	d.out.title("3. An operator replays the charge, and the provider answers again")
	second := d.bookings[1]
	var err error
	if d.replayed, err = d.witness.effect(ctx, second, "charge"); err != nil {
		return err
	}
	if d.chargesBefore, err = d.sim.charges(ctx); err != nil {
		return err
	}
	if err := d.replayOnce(ctx); err != nil {
		return err
	}
	d.out.progress("    accepted: the effect stays in doubt, and is the next that the reconciler looks at")
	if err := d.sim.disarm(ctx); err != nil {
		return err
	}
	d.out.progress("the simulated Stripe answers again")
	if err := d.watch(ctx, second, "done"); err != nil {
		return err
	}
	if err := d.awaitConfirmed(ctx, second); err != nil {
		return err
	}
	if err := d.showWire(ctx, second); err != nil {
		return err
	}
	var refused *exec.ExitError
	if err := d.replayOnce(ctx); !errors.As(err, &refused) || refused.ExitCode() != 1 {
		return fmt.Errorf("the replay of a finished charge should be refused with status 1, but: %w", err)
	}
	d.out.progress("    refused: the charge is done")
	return nil
}

func (d *demo) replayOnce(ctx context.Context) error {
	const reason = "customer asks whether she has paid"
	d.out.progress("worker outbox replay %s --reason '%s' --yes --json", d.replayed, reason)
	_, err := command(ctx, d.stack.env, d.stack.opts.binary("worker"),
		"outbox", "replay", d.replayed, "--reason", reason, "--yes", "--json")
	return err
}

// watch prints how a booking's charge goes on, as the database has it, until its effect has a status.
func (d *demo) watch(ctx context.Context, booking, until string) error {
	began := time.Now()
	last := ""
	return poll(ctx, "the charge of booking "+booking+" to be "+until, func() (bool, error) {
		state, status, err := d.witness.charge(ctx, booking)
		if err == nil && state != last {
			d.out.progress("    %s (after %d ms)", state, time.Since(began).Milliseconds())
			last = state
		}
		return status == until, err
	})
}

// book makes the booking of a slot and remembers it.
func (d *demo) book(ctx context.Context, key string, slot int) (string, error) {
	d.out.progress("POST /v1/bookings   Idempotency-Key: %s", key)
	made, err := d.api.book(ctx, key, d.slot(slot))
	if err != nil {
		return "", err
	}
	d.bookings = append(d.bookings, made.ID)
	d.out.progress("    answer: booking %s is %s, payment %s", made.ID, made.Status, made.Payment.Status)
	return made.ID, nil
}

// key is an idempotency key of this run: a database that is used again still knows those of the last.
func (d *demo) key(name string) string { return "demo-" + d.run + "-" + name }

// slot is the request for the nth hour of a day ahead.
func (d *demo) slot(n int) string {
	day := time.Now().UTC().AddDate(0, 0, 1).Truncate(24 * time.Hour)
	return firstBooking(d.stack.description.Resources[0].ID, day.Add(time.Duration(10+n)*time.Hour))
}

func (d *demo) awaitConfirmed(ctx context.Context, id string) error {
	began := time.Now()
	last := ""
	return poll(ctx, "booking "+id+" to be confirmed", func() (bool, error) {
		found, err := d.api.booking(ctx, id)
		if err != nil {
			return false, err
		}
		if state := found.Status + ", payment " + found.Payment.Status; state != last {
			d.out.progress("    booking %s is %s (after %d ms)", id, state, time.Since(began).Milliseconds())
			last = state
		}
		return found.Status == "confirmed", nil
	})
}

// showWire prints what went over the wire for a booking, as the provider saw it.
func (d *demo) showWire(ctx context.Context, booking string) error {
	entries, err := d.sim.journal(ctx)
	if err != nil {
		return err
	}
	intent, err := d.witness.intent(ctx, booking)
	if err != nil {
		return err
	}
	d.out.progress("    what the provider saw of %s:", intent)
	for _, entry := range entries {
		if entry.Object != intent {
			continue
		}
		key := entry.IdempotencyKey
		if key == "" {
			key = "-"
		}
		d.out.progress("      %-26s key %-52s %s", entry.Operation, key, entry.fate())
	}
	return nil
}

// poll repeats a question until its answer is yes.
func poll(ctx context.Context, what string, question func() (bool, error)) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		yes, err := question()
		if err != nil || yes {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
