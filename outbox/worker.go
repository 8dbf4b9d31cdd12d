package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"holdfast/domain"
)

// Job is one run of the River job that carries an effect. There may be several for one effect, at once or one after the
// other, and also after the effect is finished: a handler reads the effect's row before it acts.
type Job struct {
	ID      int64
	Effect  domain.EffectID
	Kind    domain.EffectKind
	Snoozes int // how often this job was put off, for back-off; a new job starts at 0

	// Complete queues the completion of the River job in the transaction that settles its effect, which saves a second run
	// after a crash. A job row that is gone, locked, rescued or no longer running never fails the settlement: the effect
	// row is the truth.
	Complete func(b *pgx.Batch)

	line *line
}

// Annotate adds attributes to the one line that is logged for this run.
func (j Job) Annotate(attrs ...slog.Attr) {
	if j.line != nil {
		j.line.attrs = append(j.line.attrs, attrs...)
	}
}

// Verdict says what becomes of the job. The zero value: nothing more is to do. Otherwise it runs again after After.
type Verdict struct{ After time.Duration }

// Handler carries out effects of one kind. An error means trouble of our own (the database is away, say), and the job
// is run again soon; what the outside world said is no error. The error is logged, so it must hold nothing secret; it
// is not stored. ctx ends with the job's time limit, and everything that a handler does must obey it.
type Handler func(ctx context.Context, job Job) (Verdict, error)

// WorkersConfig sets up workers. Zero values take the defaults.
type WorkersConfig struct {
	ID                string        // this process, unique among all that ever ran; default: host name and a random id
	MaxWorkers        int           // jobs at once, per kind; default 50
	FetchPollInterval time.Duration // how often each kind's queue is looked at without being woken; default 100 ms
	FetchCooldown     time.Duration // least time between two fetches of a queue; default 10 ms
	JobTimeout        time.Duration // of one run; default 90 s
	RescueAfter       time.Duration // a job still running after this is run again; default 5 min; must exceed JobTimeout
	DeadAfter         time.Duration // a process not heard of for so long is taken for dead; sets how often this one is heard of; default 15 s
	Retention         time.Duration // how long River keeps the rows of completed jobs; default 1 h
}

func (c WorkersConfig) withDefaults() WorkersConfig {
	if c.ID == "" {
		host, _ := os.Hostname() // for a person's eyes only: the random part makes the id unique
		c.ID = host[:min(len(host), 60)] + "_" + uuid.NewString()
	}
	c.MaxWorkers = cmp.Or(c.MaxWorkers, 50)
	c.FetchPollInterval = cmp.Or(c.FetchPollInterval, 100*time.Millisecond)
	c.FetchCooldown = cmp.Or(c.FetchCooldown, 10*time.Millisecond)
	c.JobTimeout = cmp.Or(c.JobTimeout, 90*time.Second)
	c.RescueAfter = cmp.Or(c.RescueAfter, 5*time.Minute)
	c.DeadAfter = cmp.Or(c.DeadAfter, DeadAfter)
	c.Retention = cmp.Or(c.Retention, time.Hour)
	return c
}

// Workers run the jobs of one process: one River queue per kind, so that one kind that is slow holds up no other.
type Workers struct {
	id        string
	client    *river.Client[pgx.Tx]
	heartbeat *heartbeat
}

// NewWorkers sets up workers for the kinds that have a handler. Nothing runs before Start.
func NewWorkers(
	pool *pgxpool.Pool, cfg WorkersConfig, handlers map[domain.EffectKind]Handler, logger *slog.Logger,
) (*Workers, error) {
	cfg = cfg.withDefaults()
	bundle := river.NewWorkers()
	queues := make(map[string]river.QueueConfig, len(handlers))
	for _, kind := range slices.Sorted(maps.Keys(handlers)) {
		if err := add(bundle, kind, handlers[kind], logger); err != nil {
			return nil, fmt.Errorf("set up workers for %s: %w", kind, err)
		}
		queues[string(kind)] = river.QueueConfig{MaxWorkers: cfg.MaxWorkers}
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID:                          cfg.ID,
		Workers:                     bundle,
		Queues:                      queues,
		FetchPollInterval:           cfg.FetchPollInterval,
		FetchCooldown:               cfg.FetchCooldown,
		JobTimeout:                  cfg.JobTimeout,
		RescueStuckJobsAfter:        cfg.RescueAfter,
		CompletedJobRetentionPeriod: cfg.Retention,
		RetryPolicy:                 retryPolicy{}, // River's own schedule would outlive the provider's key
		Logger:                      logger,
	})
	if err != nil {
		return nil, fmt.Errorf("set up workers: %w", err)
	}
	return &Workers{id: cfg.ID, client: client, heartbeat: newHeartbeat(pool, cfg.ID, beatEvery(cfg.DeadAfter), logger)}, nil
}

func add(bundle *river.Workers, kind domain.EffectKind, handle Handler, logger *slog.Logger) error {
	switch kind {
	case domain.EffectCharge:
		return river.AddWorkerSafely(bundle, newAdapter(kind, handle, logger,
			func(a domain.ChargeArgs) domain.EffectID { return a.EffectID }))
	case domain.EffectCancel:
		return river.AddWorkerSafely(bundle, newAdapter(kind, handle, logger,
			func(a domain.CancelArgs) domain.EffectID { return a.EffectID }))
	case domain.EffectRefund:
		return river.AddWorkerSafely(bundle, newAdapter(kind, handle, logger,
			func(a domain.RefundArgs) domain.EffectID { return a.EffectID }))
	case domain.EffectPublish:
		return river.AddWorkerSafely(bundle, newAdapter(kind, handle, logger,
			func(a domain.PublishArgs) domain.EffectID { return a.EffectID }))
	case domain.EffectRefresh:
		return errors.New("this kind has no job yet")
	default:
		return errors.New("there is no such kind")
	}
}

// Start begins to work and returns. ctx limits the starting only: the workers run until Stop.
func (w *Workers) Start(ctx context.Context) error {
	// The process must be known as alive before it takes its first job: the sweep would give that job to another.
	if err := w.heartbeat.start(ctx); err != nil {
		return err
	}
	if err := w.client.Start(context.WithoutCancel(ctx)); err != nil {
		w.heartbeat.stop(ctx)
		return fmt.Errorf("start workers: %w", err)
	}
	return nil
}

// Stop takes no more jobs and waits for those that run. When ctx ends first, it cancels them and waits a little longer;
// a job that does not obey even then makes it return an error, and is carried on by another process.
func (w *Workers) Stop(ctx context.Context) error {
	const grace = 5 * time.Second
	err := w.client.Stop(ctx)
	if err != nil {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		err = w.client.StopAndCancel(hard)
	}
	w.heartbeat.stop(ctx) // last: until now its jobs were alive
	if err != nil {
		return fmt.Errorf("stop workers: %w", err)
	}
	return nil
}

// ID is what this process is called in outbox_workers and in River's rows.
func (w *Workers) ID() string { return w.id }
