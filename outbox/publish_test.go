package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/postgres"
	"holdfast/internal/testnats"
)

// publisherFunc lets a test stand between the drain and the real stream.
type publisherFunc func(ctx context.Context, m Message) (Ack, error)

func (f publisherFunc) Publish(ctx context.Context, m Message) (Ack, error) { return f(ctx, m) }

// TestOneJobTellsAllOfItsBooking (G6): the held event has no job of its own, and comes first all the same.
func TestOneJobTellsAllOfItsBooking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	made := b.book(t)
	confirmed := b.event(t, made.booking, domain.EventConfirmed)

	verdict, err := b.drain(js).Work(t.Context(), Job{Effect: confirmed})
	require.NoError(t, err)
	require.Zero(t, verdict)
	messages := told(t, js)
	require.Len(t, messages, 2)
	require.Equal(t, "bookings.v1.held", messages[0].Subject)
	require.Equal(t, "bookings.v1.confirmed", messages[1].Subject)
	for i, id := range []domain.EffectID{made.held, confirmed} {
		require.Equal(t, id.String(), messages[i].Header.Get("Nats-Msg-Id"))
		e := b.load(t, id)
		require.Equal(t, domain.EffectDone, e.Status)
		require.Equal(t, StreamName, e.Stream)
		require.EqualValues(t, messages[i].Sequence, e.StreamSequence)
		require.Equal(t, 1, e.Attempts)
		require.False(t, e.Duplicate)
	}
}

// TestIncident10_BrokerDownLosesAndParksNothing (G6): the broker is away for longer than attempts and back-off together,
// one event is too large for it, and when it is back all others go out in order with nobody's help.
func TestIncident10_BrokerDownLosesAndParksNothing(t *testing.T) {
	t.Parallel()
	const bookings = 20
	b := setup(t)
	server := testnats.New(t)
	js := b.stream(t, server, StreamConfig{})
	server.Stop()

	made := make([]booked, bookings)
	for i := range made {
		made[i] = b.book(t)
		b.event(t, made[i].booking, domain.EventPaymentDeclined)
		b.event(t, made[i].booking, domain.EventConfirmed)
	}
	poison := b.event(t, made[0].booking, domain.EventCancelled)
	b.exec(t, `UPDATE outbox SET payload = jsonb_build_object('x', repeat('y', 2000000)) WHERE id = $1`, poison)
	behind := b.event(t, made[0].booking, domain.EventFailed)

	jobs := b.count(t, `SELECT count(*) FROM river_job WHERE kind = 'publish'`)
	var tries atomic.Int64
	enough := make(chan struct{})
	publisher := publisherFunc(func(ctx context.Context, m Message) (Ack, error) {
		if tries.Add(1) == int64(26*jobs) { // more than River's 25 attempts for each
			close(enough)
		}
		return js.Publish(ctx, m)
	})
	drain := NewDrain(b.pool, publisher, DrainConfig{FirstBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}, b.logger)
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectPublish: drain.Work})
	wait(t, enough)
	require.Zero(t, b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND (status <> 'pending' OR attempts > 0)`))
	require.Positive(t, b.count(t, `SELECT count(*) FROM outbox WHERE last_error = 'not connected to the broker'`))
	require.Zero(t, b.count(t, `SELECT count(*) FROM river_job WHERE errors IS NOT NULL OR attempt > 1`))

	server.Restart()
	b.eventually(t, 3*bookings, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done'`)
	b.eventually(t, 1, `SELECT count(*) FROM outbox WHERE status = 'parked'`)
	e := b.load(t, poison)
	require.Equal(t, domain.EffectParked, e.Status)
	require.Contains(t, e.LastError, "too large for the broker: 2000")
	require.Equal(t, domain.EffectPending, b.load(t, behind).Status, "what follows a parked event waits for it")
	requireInOrder(t, told(t, js), bookings)

	page, err := List(t.Context(), b.pool, Filter{Stuck: true, Kind: domain.EffectPublish})
	require.NoError(t, err)
	require.Equal(t, poison, page.Rows[0].ID)
	require.Contains(t, page.Rows[0].Reason, "too large")
}

// TestDrainsAtOnceKeepFirstDeliveriesInOrder (G6): several drains of each booking at once, with acknowledgements and
// sends lost at random and events still being appended. Publishing n+1 without the acknowledgement of n turns it red.
func TestDrainsAtOnceKeepFirstDeliveriesInOrder(t *testing.T) {
	t.Parallel()
	const bookings, events, drains = 6, 6, 4
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	flaky := publisherFunc(func(ctx context.Context, m Message) (Ack, error) {
		switch rand.IntN(4) {
		case 0:
			return Ack{}, errors.New("not sent")
		case 1:
			_, _ = js.Publish(ctx, m)
			return Ack{}, errors.New("acknowledgement lost")
		default:
			return js.Publish(ctx, m)
		}
	})
	drain := b.drain(flaky)
	group, ctx := errgroup.WithContext(t.Context())
	for i := range bookings {
		made := b.book(t)
		first := 2
		for ; i%2 == 0 && first <= events; first++ { // half of the bookings have all their events before the drains begin
			b.event(t, made.booking, domain.EventPaymentDeclined)
		}
		for range drains {
			group.Go(func() error {
				for {
					verdict, err := drain.Work(ctx, Job{Effect: made.held})
					if err != nil {
						return err
					}
					var left int
					err = b.pool.QueryRow(ctx, `
						SELECT count(*) FILTER (WHERE status <> 'done') + $2 - max(event_seq)
						  FROM outbox WHERE booking_id = $1 AND kind = 'publish'`, made.booking, events).Scan(&left)
					if err != nil || verdict.After == 0 && left == 0 {
						return err
					}
				}
			})
		}
		group.Go(func() error {
			for range events + 1 - first {
				err := postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error {
					return appendNext(ctx, tx, made.booking, domain.EventPaymentDeclined)
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, bookings*events, b.count(t, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done'`))
	requireInOrder(t, told(t, js), bookings)
}

// TestNothingOvertakesAnEventThatDidNotGoOut (G6): not by its own drain, and not by the job of a later event.
func TestNothingOvertakesAnEventThatDidNotGoOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	made := b.book(t)
	later := b.event(t, made.booking, domain.EventConfirmed)
	drain := b.drain(publisherFunc(func(ctx context.Context, m Message) (Ack, error) {
		if m.ID == made.held {
			return Ack{}, errors.New("not sent")
		}
		return js.Publish(ctx, m)
	}))
	for _, id := range []domain.EffectID{made.held, later} {
		verdict, err := drain.Work(t.Context(), Job{Effect: id})
		require.NoError(t, err)
		require.Positive(t, verdict.After)
		require.Empty(t, told(t, js))
	}
}

// TestIncident15_OnlyTheStreamsAcknowledgementCompletes (G6): the stream is gone and somebody else answers, or another
// stream takes the subject. No row is done; it goes out when the stream is back.
func TestIncident15_OnlyTheStreamsAcknowledgementCompletes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, answer := range map[string]string{
		"nobody answers":      "",
		"junk":                "thanks!",
		"empty object":        `{}`,
		"another stream":      `{"stream":"OTHER","seq":7}`,
		"no sequence":         `{"stream":"BOOKINGS"}`,
		"an error":            `{"error":{"code":503,"err_code":10077,"description":"full"}}`,
		"another real stream": "-",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testnats.New(t)
			js := b.stream(t, server, StreamConfig{RecreateAfter: time.Hour})
			require.NoError(t, js.js.DeleteStream(t.Context(), StreamName))
			heal := impostor(t, server.Connect(t), js, answer)
			made := b.book(t)
			drain := b.drain(js)
			for range 3 {
				verdict, err := drain.Work(t.Context(), Job{Effect: made.held})
				require.NoError(t, err)
				require.Positive(t, verdict.After)
				e := b.load(t, made.held)
				require.Equal(t, domain.EffectPending, e.Status)
				require.NotEmpty(t, e.LastError)
				require.Zero(t, e.Attempts)
				require.Zero(t, e.StreamSequence)
			}
			heal()
			require.NoError(t, js.EnsureStream(t.Context()))
			_, err := drain.Work(t.Context(), Job{Effect: made.held})
			require.NoError(t, err)
			require.Equal(t, domain.EffectDone, b.load(t, made.held).Status)
			require.Len(t, told(t, js), 1)
		})
	}
}

// impostor takes the stream's subjects and answers in its place, until what it returns is called.
func impostor(t *testing.T, conn *nats.Conn, js *JetStream, answer string) (stop func()) {
	t.Helper()
	switch answer {
	case "":
		return func() {}
	case "-":
		_, err := js.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"bookings.v1.>"}})
		require.NoError(t, err)
		return func() { require.NoError(t, js.js.DeleteStream(t.Context(), "OTHER")) }
	default:
		sub, err := conn.Subscribe("bookings.v1.>", func(m *nats.Msg) { _ = m.Respond([]byte(answer)) })
		require.NoError(t, err)
		require.NoError(t, conn.Flush())
		return func() {
			require.NoError(t, sub.Unsubscribe())
			require.NoError(t, conn.Flush())
		}
	}
}

// TestIncident15_WipedStoreHealsByItself (G6): a stream that has been missing for long is made again by whoever needs it.
func TestIncident15_WipedStoreHealsByItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{RecreateAfter: time.Nanosecond})
	require.NoError(t, js.js.DeleteStream(t.Context(), StreamName))
	made := b.book(t)
	drain := b.drain(js)
	verdict, err := drain.Work(t.Context(), Job{Effect: made.held})
	require.NoError(t, err)
	require.Positive(t, verdict.After)
	_, err = drain.Work(t.Context(), Job{Effect: made.held})
	require.NoError(t, err)
	require.Equal(t, domain.EffectDone, b.load(t, made.held).Status)
}

// TestParkedEventHoldsBackOnlyItsOwnBooking (G6, incident 10), and goes out in order once a person has replayed it.
func TestParkedEventHoldsBackOnlyItsOwnBooking(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	drain := b.drain(js)
	stuck, free := b.book(t), b.book(t)
	later := b.event(t, stuck.booking, domain.EventConfirmed)
	b.exec(t, `UPDATE outbox SET status = 'parked' WHERE id = $1`, stuck.held)
	for _, id := range []domain.EffectID{later, free.held} {
		verdict, err := drain.Work(t.Context(), Job{Effect: id})
		require.NoError(t, err)
		require.Zero(t, verdict)
	}
	require.Equal(t, domain.EffectPending, b.load(t, later).Status)
	require.Equal(t, domain.EffectDone, b.load(t, free.held).Status)

	_, err := Replay(t.Context(), b.pool, stuck.held, "ada", "made smaller")
	require.NoError(t, err)
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectPublish: drain.Work})
	b.eventually(t, 0, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status <> 'done'`)
	requireInOrder(t, told(t, js), 2)
}

// TestPausedPublishWaits: the switch is obeyed, costs nothing, and lets go.
func TestPausedPublishWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	made := b.book(t)
	changed, err := Pause(t.Context(), b.pool, domain.EffectPublish, "ada", "broker upgrade")
	require.NoError(t, err)
	require.Equal(t, PauseBegun, changed)
	verdict, err := b.drain(js).Work(t.Context(), Job{Effect: made.held})
	require.NoError(t, err)
	require.Positive(t, verdict.After)
	require.Empty(t, told(t, js))
	_, err = Resume(t.Context(), b.pool, domain.EffectPublish, "ada", "done")
	require.NoError(t, err)
	_, err = b.drain(js).Work(t.Context(), Job{Effect: made.held})
	require.NoError(t, err)
	require.Len(t, told(t, js), 1)
}

// TestIncident24_LateCommitIsNotPassedOver (G6): a booking whose transaction stays open while a hundred later ones go
// out is told when it commits, and holds up nobody meanwhile.
func TestIncident24_LateCommitIsNotPassedOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	js := b.stream(t, testnats.New(t), StreamConfig{})
	b.workers(t, WorkersConfig{}, map[domain.EffectKind]Handler{domain.EffectPublish: b.drain(js).Work})
	first := b.book(t)
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, appendNext(t.Context(), tx, first.booking, domain.EventConfirmed))
	for range 100 {
		b.event(t, b.book(t).booking, domain.EventConfirmed)
	}
	b.eventually(t, 200, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done'`)
	require.NoError(t, tx.Commit(t.Context()))
	b.eventually(t, 202, `SELECT count(*) FROM outbox WHERE kind = 'publish' AND status = 'done'`)
	requireInOrder(t, told(t, js), 101)
}

// TestEnsureStreamChangesNothing: an existing stream is checked, each wrong setting is named, and none is touched.
func TestEnsureStreamChangesNothing(t *testing.T) {
	t.Parallel()
	js, err := NewJetStream(testnats.New(t).Connect(t), StreamConfig{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	wrong := jetstream.StreamConfig{
		Name: StreamName, Subjects: []string{"bookings.v1.held"}, Storage: jetstream.MemoryStorage,
		Retention: jetstream.WorkQueuePolicy, Duplicates: time.Second, MaxAge: time.Hour, MaxMsgSize: 100, NoAck: true,
	}
	stream, err := js.js.CreateStream(t.Context(), wrong)
	require.NoError(t, err)
	before := stream.CachedInfo().Config
	var settings *StreamSettingsError
	require.ErrorAs(t, js.EnsureStream(t.Context()), &settings)
	text := settings.Error()
	for _, name := range []string{"storage", "subjects", "retention", "duplicate_window", "max_age", "max_msg_size", "no_ack"} {
		require.Contains(t, text, name)
	}
	require.Len(t, settings.Wrong, 7)
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, info.Config)
	_, err = js.Publish(t.Context(), Message{ID: domain.NewID[domain.EffectID](), Subject: "bookings.v1.held", Body: []byte("{}")})
	require.ErrorAs(t, err, &settings, "nothing is published to a stream that breaks the promise")
}

// TestEnsureStreamBySeveralAtOnce: all workers of a deployment start together.
func TestEnsureStreamBySeveralAtOnce(t *testing.T) {
	t.Parallel()
	server := testnats.New(t)
	var group errgroup.Group
	for range 8 {
		js, err := NewJetStream(server.Connect(t), StreamConfig{}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		group.Go(func() error { return js.EnsureStream(t.Context()) })
	}
	require.NoError(t, group.Wait())
}

// TestConnectSurvivesABrokerThatIsNotThereYet (G6), and never shows the password of its URL (G9, incident 17).
func TestConnectSurvivesABrokerThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := Connect("nats://user:s3cret@127.0.0.1:1", "test", b.logger)
	require.NoError(t, err)
	defer conn.Close()
	js, err := NewJetStream(conn, StreamConfig{}, b.logger)
	require.NoError(t, err)
	made := b.book(t)
	verdict, err := b.drain(js).Work(t.Context(), Job{Effect: made.held})
	require.NoError(t, err)
	require.Positive(t, verdict.After)
	require.NotContains(t, b.load(t, made.held).LastError, "s3cret")
	_, err = Connect("nats://user:s3cret%zz@127.0.0.1:1", "test", b.logger)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3cret")
}

// requireInOrder checks the first delivery of each event of each booking: sequence 1, 2, 3, … with none left out.
func requireInOrder(t *testing.T, messages []*jetstream.RawStreamMsg, bookings int) {
	t.Helper()
	next := map[string]int64{}
	seen := map[string]bool{}
	for _, m := range messages {
		var e struct {
			ID, Subject, Sequence string
		}
		require.NoError(t, json.Unmarshal(m.Data, &e))
		if seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		next[e.Subject]++
		seq, err := strconv.ParseInt(e.Sequence, 10, 64)
		require.NoError(t, err)
		require.Equal(t, next[e.Subject], seq, "booking %s", e.Subject)
	}
	require.Len(t, next, bookings)
}

// wait waits for a signal.
func wait(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		require.FailNow(t, "the signal never came")
	}
}

// Incident 10: somebody sets a limit by hand that no event fits. Expected: nothing is parked, the reason names the
// setting, and all goes out once it is mended (G6).
func TestIncident10_AWrongLimitParksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := testnats.New(t)
	js := b.stream(t, server, StreamConfig{})
	limit := func(size int32) {
		stream, err := js.js.Stream(t.Context(), StreamName)
		require.NoError(t, err)
		config := stream.CachedInfo().Config
		config.MaxMsgSize = size
		_, err = js.js.UpdateStream(t.Context(), config)
		require.NoError(t, err)
	}
	limit(100)
	made := b.book(t)
	drain := b.drain(js)
	for range 2 {
		verdict, err := drain.Work(t.Context(), Job{Effect: made.held})
		require.NoError(t, err)
		require.Positive(t, verdict.After)
	}
	e := b.load(t, made.held)
	require.Equal(t, domain.EffectPending, e.Status)
	require.Contains(t, e.LastError, "settings")
	limit(-1)
	_, err := drain.Work(t.Context(), Job{Effect: made.held})
	require.NoError(t, err)
	require.Equal(t, domain.EffectDone, b.load(t, made.held).Status)
}
