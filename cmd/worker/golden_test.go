package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/cli"
	"holdfast/internal/testdb"
	"holdfast/internal/testnats"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

var update = flag.Bool("update", false, "write the golden files anew")

// night is what the person on call finds: five bookings, each with a trouble of its own, on real parts.
type night struct {
	*testing.T
	db   *testdb.DB
	sim  *stripesim.Server
	nats *testnats.Server
	env  map[string]string

	booking map[string]domain.BookingID
	charge  map[string]domain.EffectID
	event   map[string]domain.EffectID
}

const (
	natsStopped   = "natsStopped"
	provider500   = "provider500"
	unpublishable = "unpublishable"
	workerKilled  = "workerKilled"
	jobDeleted    = "jobDeleted"
)

type asleep struct{}

func (asleep) Wake(domain.EffectKind) {}

func newNight(t *testing.T) *night {
	t.Helper()
	n := &night{
		T: t, db: testdb.New(t), nats: testnats.NewListening(t),
		booking: map[string]domain.BookingID{}, charge: map[string]domain.EffectID{}, event: map[string]domain.EffectID{},
	}
	var err error
	n.sim, err = stripesim.Start(t.Context(), "127.0.0.1:0", stripesim.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.sim.Close()) })
	n.env = map[string]string{
		"DATABASE_URL": n.db.URL, "STRIPE_API_KEY": "sk_test_night", "STRIPE_API_BASE": n.sim.URL, "NATS_URL": n.nats.URL(), "HOLDFAST_ACTOR": "ada",
	}
	n.book()
	n.spoil()
	return n
}

func (n *night) exec(query string, args ...any) {
	n.Helper()
	_, err := n.db.Pool.Exec(n.Context(), query, args...)
	require.NoError(n, err)
}

func (n *night) book() {
	n.Helper()
	service := bookings.New(n.db.Pool, asleep{}, bookings.Config{Budget: time.Minute})
	room, err := service.CreateResource(n.Context(), domain.Resource{
		Name: "Court 1", TimeZone: "Europe/Berlin", Places: 1, UnitMinutes: 60, Price: domain.Money{Amount: 2500, Currency: "EUR"}, Hold: 3 * time.Hour,
	})
	require.NoError(n, err)
	client := domain.NewID[domain.ClientID]()
	for i, trouble := range []string{natsStopped, provider500, unpublishable, workerKilled, jobDeleted} {
		start := time.Date(2030, 5, 1, 10+i, 0, 0, 0, time.UTC)
		made, err := service.Accept(n.Context(), client, trouble, bookings.Request{
			ResourceID: room.ID, Start: start, End: start.Add(time.Hour), CustomerName: "Ada", CustomerEmail: "ada@example.org", PaymentMethod: "pm_card_visa",
		})
		require.NoError(n, err)
		id, err := domain.ParseID[domain.BookingID](path.Base(made.Location))
		require.NoError(n, err)
		var charge, event domain.EffectID
		require.NoError(n, n.db.Pool.QueryRow(n.Context(), `SELECT (SELECT id FROM outbox WHERE booking_id = $1 AND kind = 'charge'),
			(SELECT id FROM outbox WHERE booking_id = $1 AND kind = 'publish')`, id).Scan(&charge, &event))
		n.booking[trouble], n.charge[trouble], n.event[trouble] = id, charge, event
	}
}

// spoil brings the five troubles about. Whatever else there was to do is done.
func (n *night) spoil() {
	n.Helper()
	n.sim.AddFault(stripesim.Fault{Operation: "payment_intents.confirm", Fault: "error_500_before", Times: -1})
	gateway, err := stripe.New(stripe.Config{APIKey: "sk_test_night", BaseURL: n.sim.URL})
	require.NoError(n, err)
	engine := payments.New(n.db.Pool, gateway, asleep{}, payments.Config{MaxSends: 1, Backoff: time.Millisecond}, slog.New(slog.DiscardHandler))
	for range 10 {
		e, err := outbox.Load(n.Context(), n.db.Pool, n.charge[provider500])
		require.NoError(n, err)
		if e.Status == domain.EffectInDoubt {
			break
		}
		_, err = engine.Charge(n.Context(), outbox.Job{Effect: e.ID, Kind: e.Kind})
		require.NoError(n, err)
	}
	for _, trouble := range []string{natsStopped, unpublishable} {
		n.exec(`UPDATE outbox SET status = 'done', finished_at = now() WHERE id = $1`, n.charge[trouble])
	}
	for i, trouble := range []string{provider500, workerKilled, jobDeleted} {
		n.exec(`UPDATE outbox SET status = 'done', finished_at = now(), stream = 'BOOKINGS', stream_sequence = $2, duplicate = false WHERE id = $1`, n.event[trouble], i+1)
	}
	n.exec(`UPDATE outbox SET last_error = 'the broker does not answer', attempts = 9, due_at = now() + interval '1 minute',
		job_id = enqueue_job('publish', id, now() + interval '1 minute') WHERE id = $1`, n.event[natsStopped])
	n.exec(`UPDATE outbox SET status = 'parked', last_error = 'the event is larger than the stream takes', attempts = 1 WHERE id = $1`, n.event[unpublishable])
	n.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '2 hours', attempted_by = ARRAY['dead']
		WHERE id = (SELECT job_id FROM outbox WHERE id = $1)`, n.charge[workerKilled])
	n.exec(`DELETE FROM river_job WHERE id = (SELECT job_id FROM outbox WHERE id = $1)`, n.charge[jobDeleted])
	n.exec(`UPDATE outbox SET due_at = now() - interval '1 hour' WHERE id = $1`, n.charge[workerKilled])
	n.exec(`UPDATE outbox SET created_at = now() - interval '2 hours 20 seconds'`)
}

// run runs a command as a person would, and returns what stands on the screen afterwards.
func (n *night) run(args ...string) (screen string, code int) {
	n.Helper()
	var out, errs bytes.Buffer
	code = program().Run(n.Context(), append([]string{"outbox"}, args...), func(name string) string { return n.env[name] }, cli.IO{Out: &out, Err: &errs})
	return out.String() + errs.String(), code
}

// golden compares what commands print with the file of that name.
func (n *night) golden(name string, commands ...[]string) {
	n.Helper()
	var shown strings.Builder
	for _, args := range commands {
		// A busy machine would make what is old a minute older, and what is new old enough to be missed.
		n.exec(`UPDATE outbox SET created_at = CASE WHEN created_at < now() - interval '1 hour' THEN now() - interval '2 hours 20 seconds' ELSE now() END`)
		screen, code := n.run(args...)
		fmt.Fprintf(&shown, "$ worker outbox %s\n%s[exit %d]\n\n", shell(args), screen, code)
	}
	got := steady(shown.String())
	for line := range strings.Lines(got) {
		require.LessOrEqual(n, len([]rune(line)), 121, "a table for people fits 120 columns: %s", line)
	}
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(n, os.MkdirAll("testdata", 0o750))
		require.NoError(n, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(n, err, "make it: go test ./cmd/worker -run TestGolden -update")
	require.Equal(n, string(want), got, "%s; if this is what is meant: go test ./cmd/worker -run TestGolden -update", file)
}

func shell(args []string) string {
	words := make([]string, 0, len(args))
	for _, a := range args {
		if strings.Contains(a, " ") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

var (
	anID       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	theirID    = regexp.MustCompile(`\b(pi|ch|re|req|pm|evt)_[A-Za-z0-9_]+`)
	aMoment    = regexp.MustCompile(`20(?:2[0-9])-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?`)
	aCount     = regexp.MustCompile(`\b\d+/s\b`)
	aJobNumber = regexp.MustCompile(`(?m)^(job +)\d+$`)
)

// steady replaces what differs from run to run by something of the same length.
func steady(text string) string {
	ids := map[string]string{}
	text = anID.ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("00000000-0000-7000-8000-%012d", len(ids)+1)
		}
		return ids[id]
	})
	text = theirID.ReplaceAllStringFunc(text, func(id string) string {
		prefix, rest, _ := strings.Cut(id, "_")
		if strings.HasPrefix(rest, "card") { // pm_card_visa
			return id
		}
		return prefix + "_" + strings.Repeat("x", len(rest))
	})
	text = aMoment.ReplaceAllStringFunc(text, func(at string) string {
		return regexp.MustCompile(`\d`).ReplaceAllString(at, "9")
	})
	text = aCount.ReplaceAllString(text, "N/s")
	return aJobNumber.ReplaceAllString(text, "${1}N")
}

// From the alarm to the replay on the command line: what an operator sees of five troubles, and what each act says.
func TestGolden(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	doubt, killed, deleted, parked, late := n.charge[provider500].String(), n.charge[workerKilled].String(), n.charge[jobDeleted].String(),
		n.event[unpublishable].String(), n.event[natsStopped].String()
	n.golden("list", []string{"list", "--stuck"}, []string{"list", "--stuck", "--kind", "publish"}, []string{"list", "--status", "discarded"})
	n.golden("show", []string{"show", doubt}, []string{"show", n.booking[workerKilled].String()})
	n.golden("timeline", []string{"timeline", n.booking[provider500].String()}, []string{"timeline", parked})
	n.golden("preview", []string{"replay", doubt, "--dry-run"}, []string{"replay", killed, "--dry-run"}, []string{"discard", killed, "--dry-run"},
		[]string{"republish", n.event[jobDeleted].String(), "--dry-run"})
	const why = "--reason=the provider is back"
	n.golden("replay", []string{"replay", doubt, why, "--yes"}, []string{"replay", killed, why, "--yes"}, []string{"replay", late, why, "--yes"})
	n.golden("refused", []string{"replay", n.charge[natsStopped].String(), why, "--yes"}, []string{"resolve", late, why, "--yes"},
		[]string{"discard", doubt, why, "--yes"}, []string{"replay", deleted, why}, []string{"replay", n.booking[jobDeleted].String(), why, "--yes"})
	n.golden("republish", []string{"republish", n.event[jobDeleted].String(), why, "--yes"})
	n.golden("discard", []string{"discard", parked, "--reason=it cannot be mended", "--yes"})
	n.golden("pause", []string{"pause", "charge", "--reason=a wave of fraud"}, []string{"pauses"}, []string{"resume", "charge"}, []string{"pauses"})
	n.golden("many", []string{"replay", "--stuck", "--cap=10", "--dry-run"}, []string{"replay", "--stuck", "--cap=10", why, "--yes"}, []string{"runs"})
	n.exec(`UPDATE outbox SET created_at = now() - interval '2 hours 20 seconds'`)
	n.golden("audit", []string{"show", parked})
	n.env["TWO_PERSON_ABOVE"] = "eur=2000"
	n.golden("two_persons", []string{"replay", deleted, why, "--yes"}, []string{"requests"})
	var request string
	require.NoError(t, n.db.Pool.QueryRow(t.Context(), `SELECT id::text FROM operator_requests`).Scan(&request))
	n.golden("approve", []string{"approve", request, why, "--yes"}, []string{"approve", request, why, "--yes", "--actor=grace"},
		[]string{"withdraw", request, why}, []string{"requests"})
	n.exec(`UPDATE outbox SET status = 'done', finished_at = now(), stream = CASE WHEN kind = 'publish' THEN 'BOOKINGS' END,
		stream_sequence = CASE WHEN kind = 'publish' THEN 9 END, duplicate = CASE WHEN kind = 'publish' THEN false END WHERE status IN ('pending', 'in_doubt', 'parked')`)
	n.golden("nothing", []string{"list", "--stuck"}, []string{"list"}, []string{"list", "--kind", "charge"}, []string{"pauses"}, []string{"runs", "--unfinished"},
		[]string{"replay", "--stuck", "--cap=10", "--dry-run"})
	require.Empty(t, n.sim.Ledger().Charges, "none of it has moved money")
}

// A bulk act that is interrupted says how to go on, and goes on where it was: each effect is acted on once, each act with its row in
// the audit (G7).
func TestManyInterruptedAndResumed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const many = 30
	b.spoil(t, `INSERT INTO outbox (id, booking_id, kind, status, last_error, due_at, created_at)
		SELECT gen_random_uuid(), booking_id, 'refresh', 'parked', 'why', now(), now() FROM outbox, generate_series(1, $1) WHERE kind = 'charge'`, many)
	args := []string{"outbox", "discard", "--kind=refresh", "--cap=1000", "--reason=looked at", "--yes", "--json", "--actor=ada"}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	go func() {
		look := time.NewTicker(2 * time.Millisecond)
		defer look.Stop()
		for ctx.Err() == nil {
			<-look.C
			var n int
			if b.pool.QueryRow(ctx, `SELECT count(*) FROM operator_actions`).Scan(&n) == nil && n > 0 {
				interrupt()
			}
		}
	}()
	getenv := func(name string) string { return map[string]string{"DATABASE_URL": b.url}[name] }
	var out, errs bytes.Buffer
	require.Equal(t, cli.ExitUnknown, program().Run(ctx, args, getenv, cli.IO{Out: &out, Err: &errs}), errs.String())
	require.Contains(t, errs.String(), "interrupted")
	found := regexp.MustCompile(`worker outbox runs resume (\S+)`).FindStringSubmatch(errs.String())
	require.Len(t, found, 2, errs.String())
	before := b.audits(t)
	require.Less(t, before, many)

	code, listed, _ := b.run(t, nil, "runs", "--unfinished")
	require.Equal(t, cli.ExitDone, code)
	require.Contains(t, listed, found[1])
	code, lines, said := b.run(t, nil, "runs", "resume", found[1], "--json")
	require.Equal(t, cli.ExitDone, code, said)
	require.Equal(t, many, strings.Count(lines, `"status":"done"`), "a line for each")
	require.Equal(t, many, strings.Count(lines, "\n"))
	require.Contains(t, said, "30/30")
	code, again, _ := b.run(t, nil, "runs", "resume", found[1], "--json")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, lines, again, "nothing is left to do")
	require.Equal(t, many, b.audits(t))
	var acted int
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT count(DISTINCT effect_id) FROM operator_actions WHERE action = 'discard' AND actor = 'ada'`).Scan(&acted))
	require.Equal(t, many, acted)
}
