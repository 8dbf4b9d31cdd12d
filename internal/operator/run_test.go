package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/operator"
	"holdfast/internal/testdb"
	"holdfast/outbox"
)

// runnerEnv tells a process that it is no test: it continues a run until it is killed.
const runnerEnv = "HOLDFAST_TEST_RUNNER"

func TestMain(m *testing.M) {
	if work, told := os.LookupEnv(runnerEnv); told {
		continueForEver(work)
		return
	}
	testdb.Main(m)
}

type runnerWork struct {
	URL string
	Run uuid.UUID
}

func continueForEver(text string) {
	var work runnerWork
	if err := json.Unmarshal([]byte(text), &work); err != nil {
		panic(err)
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, work.URL)
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	desk := operator.New(pool, bookings.New(pool, noWaker{}, bookings.Config{Budget: time.Minute}), nil, nil, operator.Config{}, quiet)
	for {
		if _, err := desk.ContinueRun(ctx, work.Run, 200); err != nil {
			panic(err)
		}
	}
}

// crowd makes n bookings whose charges are parked.
func (b *bed) crowd(n int) {
	b.Helper()
	b.exec(`
		WITH made AS (
			INSERT INTO bookings (id, client_id, resource_id, during, quantity, amount, currency, customer_name, customer_email, status,
			                      hold_expires_at, created_at, updated_at)
			SELECT gen_random_uuid(), $2, $3, tstzrange(t, t + interval '1 hour'), 1, 2500, 'EUR', 'Ada', 'ada@example.org', 'held',
			       now() + interval '1 hour', now(), now()
			  FROM (SELECT timestamptz '2040-01-01 00:00Z' + n * interval '1 hour' AS t FROM generate_series(1, $1) AS n) AS hours
			RETURNING id
		), paid AS (
			INSERT INTO payments (id, booking_id, amount, currency, payment_method, created_at, updated_at)
			SELECT gen_random_uuid(), id, 2500, 'EUR', 'pm_card_visa', now(), now() FROM made
		)
		INSERT INTO outbox (id, booking_id, kind, status, last_error, due_at, created_at)
		SELECT gen_random_uuid(), id, 'charge', 'parked', 'the provider was away', now(), now() - interval '1 hour' FROM made`, n, b.client, b.resource)
}

func runOf(act operator.Act, most int, f outbox.Filter) operator.RunOrder {
	return operator.RunOrder{ID: uuid.Must(uuid.NewV7()), Act: act, Filter: f, Cap: most, By: "ada", Reason: "the provider is back"}
}

// TestRun_TenThousand (G7): a replay of 10,000 effects is interrupted, by its caller and by the death of a process, continued by several
// at once, and does each effect once.
func TestRun_TenThousand(t *testing.T) {
	t.Parallel()
	const all = 10_000
	b := setup(t)
	b.crowd(all + 5)
	desk := b.desk()
	order := runOf(operator.Replay, all, outbox.Filter{Stuck: true, Kind: domain.EffectCharge, Status: domain.EffectParked})
	dry, err := desk.DryRun(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, all, dry.Matched)
	require.Equal(t, all, dry.Allowed)
	require.True(t, dry.More)
	require.Len(t, dry.Items, 100)
	require.Equal(t, []domain.Money{{Amount: all * 2500, Currency: "EUR"}}, dry.Money)
	require.Zero(t, b.audits())
	run, err := desk.StartRun(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, all, run.Total)
	require.Equal(t, all, run.Left)
	require.True(t, run.More)
	require.Zero(t, b.audits(), "nothing is done yet")

	// Its caller goes away.
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error {
		if _, err := desk.ContinueRun(ctx, run.ID, all); ctx.Err() == nil {
			return err
		}
		return nil
	})
	b.waitFor(func() bool { return b.audits() > 0 })
	cancel()
	require.NoError(t, group.Wait())
	done := b.audits()
	require.Less(t, done, all)

	// A process that continues it is killed.
	work, err := json.Marshal(runnerWork{URL: b.db.URL, Run: run.ID})
	require.NoError(t, err)
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), runnerEnv+"="+string(work))
	process.Stderr = os.Stderr
	require.NoError(t, process.Start())
	b.waitFor(func() bool { return b.audits() > done })
	require.NoError(t, process.Process.Kill())
	require.Error(t, process.Wait())
	require.Less(t, b.audits(), all)
	run, err = desk.Run(t.Context(), run.ID)
	require.NoError(t, err)
	require.Nil(t, run.FinishedAt)

	for range 3 {
		group.Go(func() error {
			for {
				run, err := b.desk().ContinueRun(t.Context(), run.ID, 500)
				if err != nil || run.FinishedAt != nil {
					return err
				}
			}
		})
	}
	require.NoError(t, group.Wait())
	run, err = desk.ContinueRun(t.Context(), run.ID, all) // of what is finished nothing is done again
	require.NoError(t, err)
	require.NotNil(t, run.FinishedAt)
	require.Equal(t, [3]int{all, 0, 0}, [3]int{run.Done, run.Refused, run.Left})
	require.Equal(t, all, b.audits())
	require.Equal(t, all, b.count(`SELECT count(DISTINCT effect_id) FROM operator_actions WHERE action = 'replay' AND actor = 'ada'`))
	require.Equal(t, all, b.count(`
		SELECT count(*) FROM operator_run_items i JOIN operator_actions a ON a.id = i.action_id AND a.effect_id = i.effect_id JOIN outbox o ON o.id = i.effect_id
		 WHERE i.run_id = $1 AND i.status = 'done' AND o.status = 'pending'`, run.ID))
	require.Equal(t, all, b.count(`SELECT count(*) FROM river_job WHERE kind = 'charge' AND state = 'available'`), "one job each")
	require.Equal(t, 5, b.count(`SELECT count(*) FROM outbox WHERE status = 'parked'`), "what the cap left out")
}

func (b *bed) waitFor(so func() bool) {
	b.Helper()
	require.Eventually(b, so, time.Minute, 5*time.Millisecond)
}

// TestRun_RefusesEachByItself (G7): what is not allowed is refused with its reason, and the rest is done.
func TestRun_RefusesEachByItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, small := b.book()
	_, moved := b.book()
	_, large := b.book()
	for _, id := range []domain.EffectID{small, moved, large} {
		b.put(id, domain.EffectParked)
	}
	b.exec(`UPDATE payments SET amount = 500 WHERE booking_id = (SELECT booking_id FROM outbox WHERE id = $1)`, small)
	desk := b.strict()
	order := runOf(operator.Replay, 10, outbox.Filter{Status: domain.EffectParked})
	run, err := desk.StartRun(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, 3, run.Total)
	again, err := desk.StartRun(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, run, again)
	other := order
	other.Cap = 9
	var refused *outbox.RefusedError
	_, err = desk.StartRun(t.Context(), other)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, outbox.RefusedOtherRun, refused.Code)

	b.exec(`UPDATE payments SET amount = 500 WHERE booking_id = (SELECT booking_id FROM outbox WHERE id = $1)`, moved)
	b.put(moved, domain.EffectDone) // a worker was faster
	run, err = desk.ContinueRun(t.Context(), run.ID, 100)
	require.NoError(t, err)
	require.Equal(t, [3]int{1, 2, 0}, [3]int{run.Done, run.Refused, run.Left})
	require.NotNil(t, run.FinishedAt)
	items, err := desk.RunItems(t.Context(), run.ID, 1, 0)
	require.NoError(t, err)
	said := map[domain.EffectID]string{}
	for _, item := range items {
		said[item.EffectID] = item.Status + ": " + item.Said
		require.Equal(t, item.Status == "done", item.ActionID != nil)
	}
	require.Contains(t, said[small], "done: it is pending with a new job")
	require.Contains(t, said[moved], "refused: the charge is done")
	require.Contains(t, said[large], "refused: 25.00 EUR is more than one person may let move")
	require.Equal(t, 1, b.audits())
	require.Zero(t, b.count(`SELECT count(*) FROM operator_requests`), "nobody is asked for each of many")
}

// TestRun_Discard (G6): acts with more to know are done one by one, each in a commit of its own.
func TestRun_Discard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 12 {
		booking, _ := b.book()
		b.put(b.effect(booking, domain.EffectPublish), domain.EffectParked)
	}
	desk := b.desk()
	run, err := desk.StartRun(t.Context(), runOf(operator.Discard, 100, outbox.Filter{Status: domain.EffectParked, Kind: domain.EffectPublish}))
	require.NoError(t, err)
	part, err := desk.ContinueRun(t.Context(), run.ID, 5)
	require.NoError(t, err)
	require.Equal(t, [2]int{5, 7}, [2]int{part.Done, part.Left})
	require.Nil(t, part.FinishedAt)
	unfinished, err := desk.Runs(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, []operator.Run{part}, unfinished)
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			_, err := desk.ContinueRun(t.Context(), run.ID, 100)
			return err
		})
	}
	require.NoError(t, group.Wait())
	run, err = desk.ContinueRun(t.Context(), run.ID, 100)
	require.NoError(t, err)
	require.NotNil(t, run.FinishedAt)
	require.Equal(t, 12, run.Done)
	require.Equal(t, 12, b.count(`SELECT count(DISTINCT effect_id) FROM operator_actions WHERE action = 'discard'`))
	require.Equal(t, 12, b.audits())
	require.Equal(t, 12, b.count(`SELECT count(*) FROM outbox WHERE event_type = 'skipped' AND status = 'pending'`))
	unfinished, err = desk.Runs(t.Context(), true)
	require.NoError(t, err)
	require.Empty(t, unfinished)
}

// oneAway is a broker that takes every event but one.
type oneAway struct{ not domain.EffectID }

func (p oneAway) Publish(_ context.Context, m outbox.Message) (outbox.Ack, error) {
	if m.ID == p.not {
		return outbox.Ack{}, errors.New("too large")
	}
	return outbox.Ack{Stream: "BOOKINGS", Sequence: 7}, nil
}

// away is a broker that takes nothing.
type away struct{}

func (away) Publish(context.Context, outbox.Message) (outbox.Ack, error) {
	return outbox.Ack{}, errors.New("no responders")
}

// told starts a run that republishes n events, on a desk with a broker of its own.
func (b *bed) told(n int, broker func(first domain.EffectID) outbox.Publisher) (*operator.Desk, operator.Run) {
	b.Helper()
	for range n {
		booking, _ := b.book()
		b.put(b.effect(booking, domain.EffectPublish), domain.EffectDone)
	}
	run, err := b.desk().StartRun(b.Context(), runOf(operator.Republish, 10, outbox.Filter{Status: domain.EffectDone, Kind: domain.EffectPublish}))
	require.NoError(b, err)
	items, err := b.desk().RunItems(b.Context(), run.ID, 1, 1)
	require.NoError(b, err)
	return operator.New(b.db.Pool, b.service(b.db.Pool), nil, broker(items[0].EffectID), operator.Config{}, quiet), run
}

// TestRun_OneThatAlwaysFails (G7): an act that always fails on one effect does not hold up the others, and is given up after five tries: the
// run comes to its end, and says why of each.
func TestRun_OneThatAlwaysFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk, run := b.told(4, func(first domain.EffectID) outbox.Publisher { return oneAway{not: first} })
	run, err := desk.ContinueRun(t.Context(), run.ID, 10)
	require.NoError(t, err)
	require.Equal(t, [4]int{3, 0, 0, 1}, [4]int{run.Done, run.Refused, run.Failed, run.Left})
	require.Equal(t, 3, b.audits())
	tries := func() operator.RunItem {
		items, err := desk.RunItems(t.Context(), run.ID, 1, 1)
		require.NoError(t, err)
		return items[0]
	}
	require.Equal(t, 1, tries().Tries)
	run, err = desk.ContinueRun(t.Context(), run.ID, 10)
	require.NoError(t, err)
	require.Equal(t, 1, tries().Tries, "not at once")
	for n := 2; n <= 5; n++ {
		require.Nil(t, run.FinishedAt)
		b.exec(`UPDATE operator_run_items SET try_at = now()`)
		run, err = desk.ContinueRun(t.Context(), run.ID, 10)
		require.NoError(t, err)
		require.Equal(t, n, tries().Tries)
	}
	require.NotNil(t, run.FinishedAt)
	require.Equal(t, [4]int{3, 0, 1, 0}, [4]int{run.Done, run.Refused, run.Failed, run.Left})
	require.Equal(t, "failed", tries().Status)
	require.Equal(t, "the broker did not acknowledge the event; tried 5 times", tries().Said)
	require.Nil(t, tries().ActionID)
	require.Equal(t, 3, b.audits())
}

// TestRun_BrokerAway (G7): if one after the other fails, what they need is away: the others are not tried, and the run goes on when it is back.
func TestRun_BrokerAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk, run := b.told(6, func(domain.EffectID) outbox.Publisher { return away{} })
	run, err := desk.ContinueRun(t.Context(), run.ID, 10)
	require.ErrorIs(t, err, operator.ErrBroker)
	require.Equal(t, 6, run.Left)
	require.Equal(t, 3, b.count(`SELECT count(*) FROM operator_run_items WHERE tries = 1`))
	b.exec(`UPDATE operator_run_items SET try_at = now() WHERE tries > 0`)
	desk = operator.New(b.db.Pool, b.service(b.db.Pool), nil, oneAway{}, operator.Config{}, quiet)
	run, err = desk.ContinueRun(t.Context(), run.ID, 10)
	require.NoError(t, err)
	require.NotNil(t, run.FinishedAt)
	require.Equal(t, 6, run.Done)
	require.Equal(t, 6, b.audits())
}

// TestRun_Ended (G7): a person ends a run. What was done stays done, nothing is done to the rest, and the end is on record once. What
// somebody is at is finished by them.
func TestRun_Ended(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk, run := b.told(5, func(domain.EffectID) outbox.Publisher { return oneAway{} })
	run, err := desk.ContinueRun(t.Context(), run.ID, 2)
	require.NoError(t, err)
	b.exec(`UPDATE operator_run_items SET claimed_until = now() + interval '1 minute' WHERE position = 3`) // somebody is at it
	var refused *outbox.RefusedError
	_, err = desk.EndRun(t.Context(), run.ID, "bob", " ")
	require.ErrorAs(t, err, &refused)
	_, err = desk.EndRun(t.Context(), uuid.New(), "bob", "enough")
	require.ErrorIs(t, err, domain.ErrNotFound)
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			_, err := desk.EndRun(t.Context(), run.ID, "bob", "the wrong filter")
			return err
		})
	}
	require.NoError(t, group.Wait())
	run, err = desk.ContinueRun(t.Context(), run.ID, 10)
	require.NoError(t, err)
	require.Nil(t, run.FinishedAt)
	require.Equal(t, [4]int{2, 2, 1, 5}, [4]int{run.Done, run.LeftOut, run.Left, run.Total})
	require.Equal(t, 1, b.count(`SELECT count(*) FROM operator_actions WHERE action = 'end_run' AND actor = 'bob' AND reason = 'the wrong filter'`))
	b.exec(`UPDATE operator_run_items SET claimed_until = now() WHERE position = 3`) // they have died
	run, err = desk.ContinueRun(t.Context(), run.ID, 10)
	require.NoError(t, err)
	require.NotNil(t, run.FinishedAt)
	require.Equal(t, [3]int{2, 3, 0}, [3]int{run.Done, run.LeftOut, run.Left})
	require.Equal(t, outbox.Actor("bob"), run.EndedBy)
	items, err := desk.RunItems(t.Context(), run.ID, 3, 10)
	require.NoError(t, err)
	for _, item := range items {
		require.Equal(t, "left_out", item.Status)
		require.Equal(t, "nothing was done: bob ended the run: the wrong filter", item.Said)
	}
	again, err := desk.EndRun(t.Context(), run.ID, "ada", "once more")
	require.NoError(t, err)
	require.Equal(t, run, again)
	require.Equal(t, 3, b.audits(), "two acts, and the end")
}

// TestRun_CannotBegin: an order that can never be carried out is refused before anything is written.
func TestRun_CannotBegin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := b.desk()
	for name, spoil := range map[string]func(o *operator.RunOrder){
		"no id": func(o *operator.RunOrder) { o.ID = uuid.Nil }, "a refund": func(o *operator.RunOrder) { o.Act = operator.Refund },
		"no cap": func(o *operator.RunOrder) { o.Cap = 0 }, "too many": func(o *operator.RunOrder) { o.Cap = 10_001 }, "no such act": func(o *operator.RunOrder) { o.Act = "dance" },
		"from the future": func(o *operator.RunOrder) { o.Filter.OlderThan = -1 },
	} {
		order := runOf(operator.Replay, 10, outbox.Filter{})
		spoil(&order)
		var invalid *domain.ValidationError
		_, err := desk.StartRun(t.Context(), order)
		require.ErrorAs(t, err, &invalid, name)
		_, err = desk.DryRun(t.Context(), order)
		require.ErrorAs(t, err, &invalid, name)
	}
	_, err := desk.ContinueRun(t.Context(), uuid.New(), 1)
	require.ErrorIs(t, err, domain.ErrNotFound)
	empty, err := desk.StartRun(t.Context(), runOf(operator.Replay, 10, outbox.Filter{Status: domain.EffectParked}))
	require.NoError(t, err)
	require.NotNil(t, empty.FinishedAt, "of nothing it is finished")
	require.Zero(t, b.count(`SELECT count(*) FROM operator_runs WHERE total > 0`))
}
