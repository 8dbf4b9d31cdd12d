package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/domain"
	"holdfast/internal/postgres"
)

// Publisher sends an event to the stream.
type Publisher interface {
	// Publish returns nil only if the stream that was meant has acknowledged the event, for the first time or as a
	// duplicate. ErrTooLarge says that it never will. Any other error leaves it unknown whether the stream has the event:
	// it is to be published again. The text of an error is ours, and safe to store.
	Publish(ctx context.Context, m Message) (Ack, error)
}

// Ack is what the stream said. It means that the stream has the event; it does not mean that it is on disk.
type Ack struct {
	Stream    string
	Sequence  uint64
	Duplicate bool // the stream had the event already: as good as the first time
}

// ErrTooLarge says that the broker never takes an event of this size.
var ErrTooLarge = errors.New("the event is too large for the broker")

// DrainConfig sets up the publishing of events. Zero values take the defaults.
type DrainConfig struct {
	Timeout      time.Duration // for one acknowledgement; default 5 s
	FirstBackoff time.Duration // after the first trouble with the broker; it doubles; default 1 s
	MaxBackoff   time.Duration // default 30 s
	PausedFor    time.Duration // how often a paused job looks again; default 5 s

	Delivery prometheus.Observer // is told how long each event took until it was acknowledged, in seconds; default: nobody
}

// Drain publishes events. Its Work is the handler of publish effects: the job of any event publishes all that its
// booking has to tell so far, in order.
//
// First deliveries are in order per booking, with no lock or transaction held over the network and with any number of
// drains at once. It holds because of one rule: nobody publishes event n before the stream has acknowledged n-1, to
// itself or as a row that it has read. Each drain takes the booking's unfinished events from the lowest up, and goes on to
// the next only with the acknowledgement of the one before in hand; what it has in hand it records together at the end.
// Two drains may publish n both, under one message id; the stream drops the second, or stores a repeat, which consumers
// drop. Neither puts n+1 before the first n.
// That no lower event turns up later is the writers' part: event_seq is taken under the booking's lock, so that events
// become visible in their order.
type Drain struct {
	pool      *pgxpool.Pool
	publisher Publisher
	cfg       DrainConfig
	logger    *slog.Logger
}

// NewDrain sets up the publishing of events.
func NewDrain(pool *pgxpool.Pool, publisher Publisher, cfg DrainConfig, logger *slog.Logger) *Drain {
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	cfg.FirstBackoff = cmp.Or(cfg.FirstBackoff, time.Second)
	cfg.MaxBackoff = cmp.Or(cfg.MaxBackoff, 30*time.Second)
	cfg.PausedFor = cmp.Or(cfg.PausedFor, 5*time.Second)
	if cfg.Delivery == nil {
		cfg.Delivery = prometheus.ObserverFunc(func(float64) {})
	}
	return &Drain{pool: pool, publisher: publisher, cfg: cfg, logger: logger}
}

// Work publishes the unfinished events of the job's booking. Trouble with the broker is no failure: the job is put off,
// no attempt is used up and nothing is parked, however long it lasts. An event that can never be published is parked
// and holds back the later ones of its booking, and of no other.
func (d *Drain) Work(ctx context.Context, job Job) (Verdict, error) {
	for {
		events, paused, err := d.unfinished(ctx, job.Effect)
		switch {
		case err != nil:
			return Verdict{}, err
		case paused:
			return Verdict{After: d.cfg.PausedFor}, nil
		case len(events) == 0:
			return Verdict{}, nil
		}
		job.Annotate(slog.String("booking_id", events[0].BookingID.String()))
		verdict, again, err := d.publishAll(ctx, job, events)
		if err != nil || !again {
			return verdict, err
		}
	}
}

// publishAll publishes the events in order, as far as it can, and records what came of it in one commit. It returns again
// if somebody else finished or parked one of them meanwhile, so that what the caller knows of the booking is out of date.
// Events that were committed since have jobs of their own.
func (d *Drain) publishAll(ctx context.Context, job Job, events []Effect) (v Verdict, again bool, err error) {
	var b pgx.Batch
	var acks []*delivered
	for _, e := range events {
		if e.Status == domain.EffectParked {
			break // a person's turn; the replay of it brings a new job
		}
		ack, err := d.publish(ctx, e)
		if err == nil {
			acks = append(acks, recordAck(&b, e.ID, ack))
			continue
		}
		switch {
		case ctx.Err() != nil: // the run is over, not the broker's fault
		case errors.Is(err, ErrTooLarge), errors.Is(err, errMalformed):
			d.logger.ErrorContext(ctx, "event parked: it can never be published", "booking_id", e.BookingID.String(),
				"event_id", e.ID.String(), "error", err.Error())
			Park(&b, e.ID, err.Error())
		default:
			v.After = backoff(d.cfg.FirstBackoff, d.cfg.MaxBackoff, job.Snoozes)
			job.Annotate(slog.String("event_id", e.ID.String()), slog.String("reason", err.Error()))
			Note(&b, e.ID, err.Error(), v.After)
		}
		break
	}
	// Also when the run is over: what the stream has acknowledged is recorded, and not published once more.
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	if err := errors.Join(postgres.Send(within, d.pool, &b), ctx.Err()); err != nil {
		return Verdict{}, false, err
	}
	for _, ack := range acks {
		if !ack.Recorded {
			again = true
			continue
		}
		d.cfg.Delivery.Observe(ack.Seconds)
	}
	return v, again && v.After == 0, nil
}

const recordWithin = 5 * time.Second

// errMalformed says that a row holds no event.
var errMalformed = errors.New("the event cannot be encoded")

func (d *Drain) publish(ctx context.Context, e Effect) (Ack, error) {
	m, err := message(e)
	if err != nil {
		return Ack{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	return d.publisher.Publish(ctx, m)
}

// unfinished reads the unfinished events of the booking that the effect belongs to, lowest first, and whether publishing
// is paused.
func (d *Drain) unfinished(ctx context.Context, id domain.EffectID) (events []Effect, paused bool, err error) {
	var b pgx.Batch
	Paused(&b, domain.EffectPublish, &paused)
	postgres.All(&b, "read the events to publish", &events, `
		SELECT `+effectColumns+`
		  FROM outbox o
		 WHERE o.booking_id = (SELECT own.booking_id FROM outbox own WHERE own.id = $1)
		   AND o.kind = 'publish' AND o.status IN ('pending', 'in_doubt', 'parked')
		 ORDER BY o.event_seq`, id)
	err = postgres.Send(ctx, d.pool, &b)
	return events, paused, err
}

// delivered is what recording an acknowledgement has shown. Its zero value: the event was not pending any more.
type delivered struct {
	Recorded bool
	Seconds  float64 // from the event's commit until now
}

// recordAck queues that the stream's acknowledgement finishes an event. What it returns is whole once the batch has been
// sent.
func recordAck(b *pgx.Batch, id domain.EffectID, ack Ack) *delivered {
	var d delivered
	postgres.One(b, "record the acknowledgement of an event", func(row delivered) { d = row }, `
		UPDATE outbox
		   SET status = 'done', attempts = attempts + 1, last_error = NULL, finished_at = clock_timestamp(),
		       stream = $2, stream_sequence = $3, duplicate = $4
		 WHERE id = $1 AND status IN ('pending', 'in_doubt')
		RETURNING true AS recorded, greatest(extract(epoch FROM finished_at - created_at), 0)::float8 AS seconds`,
		id, ack.Stream, int64(ack.Sequence), ack.Duplicate) //nolint:gosec // a stream has fewer than 2^63 messages
	return &d
}
