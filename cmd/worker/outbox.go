package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/cli"
	"holdfast/internal/postgres"
	"holdfast/outbox"
)

// outboxCommands are the operators'. Only republish needs the broker, and none the provider.
type outboxCommands struct {
	List   outboxListCommand   `cmd:"" help:"List effects that are not finished, or only those that are stuck."`
	Show   outboxShowCommand   `cmd:"" help:"Show one effect, or a booking's charge, with the booking's other effects and what was done to them by hand."`
	Replay outboxReplayCommand `cmd:"" help:"Let an effect happen now. Safe at any moment, any number of times."`
	Pause  outboxPauseCommand  `cmd:"" help:"Take no more money, or publish no more events. Fences and reads go on."`
	Resume outboxResumeCommand `cmd:"" help:"Undo pause."`
	Pauses outboxPausesCommand `cmd:"" help:"List what is paused."`

	Republish outboxRepublishCommand `cmd:"" help:"Send the events of a span of time to the stream once more, under their own ids."`
}

// operator is who acts and why.
type operator struct {
	Reason string `placeholder:"TEXT" help:"Why; kept with what was done."`
	Actor  string `placeholder:"NAME" help:"Who, if not the user that runs this." setting:"HOLDFAST_ACTOR"`
}

func (o *operator) actor() outbox.Actor {
	if o.Actor != "" {
		return outbox.Actor(o.Actor)
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return outbox.Actor(name + "@" + host)
}

// once runs an operator's work on a small pool, and tells a refusal from not having been able to tell.
func once(ctx context.Context, d cli.Database, work func(ctx context.Context, pool *pgxpool.Pool) error) error {
	pool, err := d.Open(ctx, "holdfast-worker-command")
	if err != nil {
		return err
	}
	defer pool.Close()
	err = work(ctx, pool)
	var refused *outbox.RefusedError
	var exit *cli.ExitError
	var lost *postgres.CommitError
	switch {
	case err == nil, errors.As(err, &refused), errors.As(err, &exit):
		return err
	case errors.Is(err, domain.ErrNotFound):
		return &cli.ExitError{Code: cli.ExitUsage, Err: errors.New("there is no such effect; see: worker outbox list, or all those of a booking: worker outbox list --booking ID")}
	case errors.Is(err, outbox.ErrCursor):
		return &cli.ExitError{Code: cli.ExitUsage, Err: fmt.Errorf("--after: %w", err)}
	case errors.As(err, &lost):
		return &cli.ExitError{Code: cli.ExitUnknown, Err: fmt.Errorf("%w; see whether it was done: worker outbox show", err)}
	}
	if err = d.Explain(err); errors.As(err, &exit) {
		return err
	}
	return &cli.ExitError{Code: cli.ExitUnknown, Err: err}
}

// checkID notes an argument that cannot be an effect's id.
func checkID(text string, p *cli.Problems) domain.EffectID {
	id, err := domain.ParseID[domain.EffectID](text)
	if err != nil {
		p.Add("the argument: %s; see: worker outbox list", err)
	}
	return id
}

// printTable lists effects for people.
func printTable(w io.Writer, rows []outbox.Row) error {
	lines := make([][]string, 0, len(rows))
	for _, r := range rows {
		kind := string(r.Kind)
		if r.EventType != "" {
			kind = fmt.Sprintf("%s %d %s", kind, r.EventSeq, r.EventType)
		}
		stuck := ""
		if r.Stuck {
			stuck = "stuck"
		}
		lines = append(lines, []string{
			r.ID.String(), kind, string(r.Status), stuck, age(r.CreatedAt), strconv.Itoa(r.Attempts), r.BookingID.String(), r.Reason,
		})
	}
	return cli.PrintTable(w, []string{"ID", "KIND", "STATUS", "", "AGE", "ATTEMPTS", "BOOKING", "WHY"}, lines)
}

func age(since time.Time) string { return time.Since(since).Truncate(time.Second).String() }
