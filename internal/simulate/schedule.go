package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/outbox"
	"holdfast/payments"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

// Violation is a broken promise.
type Violation struct {
	Invariant string `json:"invariant"` // G1 to G9, or what else was expected
	Text      string `json:"text"`
}

// Verdict is what came of one seed.
type Verdict struct {
	Seed       uint64         `json:"seed"`
	UpTo       int            `json:"up_to"`          // so many steps, of which
	Skip       []int          `json:"skip,omitempty"` // these were left out
	Ends       map[string]int `json:"ends"`           // bookings by their end
	Violations []Violation    `json:"violations,omitempty"`
	History    []string       `json:"history,omitempty"`
}

// Plan says which steps of a seed are taken.
type Plan struct {
	Seed uint64
	UpTo int          // 0: all; else only so many
	Skip map[int]bool // these are left out
}

// schedule is one seed being run.
type schedule struct {
	ctx    context.Context
	site   *site
	plan   Plan
	chance *chance // of the present step
	names  names

	// The coroutines.
	live    []*actor
	current *actor
	back    chan struct{}
	actors  int // so many there were
	workers int
	healing bool // nothing goes wrong any more, and nobody pauses

	// How rough it is, in per cent.
	providerPauses  float64
	statementPauses float64
	deaths          float64
	cuts            float64
	mostBookings    int
	weights         []int // of the acts

	// Trouble that was armed.
	cutIn      int // the n-th COMMIT from now on is cut
	cutAs      cut
	slow       int // sends that arrive late
	lostReads  int
	brokerAway bool
	unsent     int // events that never reach the broker
	unacked    int // events whose acknowledgement is lost

	// The parts that live as long as the schedule.
	publisher *outbox.JetStream
	service   *bookings.Service
	desk      *payments.Desk
	inbox     *payments.Inbox
	config    payments.Config
	resources []domain.Resource
	clients   []domain.ClientID
	start     time.Time // of the first slot

	// What is known from outside.
	bookings []booking  // that exist, oldest first
	requests []*request // of customers
	acted    []operatorAct
	late     []payments.Call   // sends that have not arrived yet
	mail     []mail            // webhooks that have not been delivered, or may be again
	told     []message         // all that was ever in the stream
	heard    uint64            // the newest of the present stream that is in told
	cards    map[string]string // by charge: the method that the customer had chosen when it was made
	lies     int
	elapsed  time.Duration // by the virtual clock

	history    []string
	violations []Violation
	harness    error // the simulation itself could not go on
}

// booking is what its rows say of it when a step begins.
type booking struct {
	ID      uuid.UUID
	Client  uuid.UUID
	Status  string
	Payment uuid.UUID
	Paid    string // the payment's status
	Intent  string
}

type brokenError struct{ error }

// broken ends the schedule: it is the simulation that cannot go on, and nothing is known about what it checks.
func (s *schedule) broken(err error) {
	if s.ctx.Err() != nil {
		err = s.ctx.Err()
	}
	s.harness = err
	panic(brokenError{err})
}

// run runs a seed and checks what is left.
func (s *site) run(ctx context.Context, p Plan) (Verdict, error) { return newSchedule(ctx, s, p).run() }

func newSchedule(ctx context.Context, at *site, p Plan) *schedule {
	return &schedule{ctx: ctx, site: at, plan: p, back: make(chan struct{}), cards: map[string]string{}, names: names{}}
}

func (s *schedule) run() (v Verdict, err error) {
	p := s.plan
	s.site.schedule = s
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("seed %d: %w", p.Seed, s.harness)
			if s.harness == nil {
				err = fmt.Errorf("seed %d: the simulation panicked: %v\n%s", p.Seed, what, debug.Stack())
			}
		}
		s.abandon()
		s.site.schedule = nil
	}()
	s.chance = newChance(p.Seed, -1)
	s.setUp()
	steps := s.chance.n(70) + 15
	if p.UpTo > 0 {
		steps = min(steps, p.UpTo)
	}
	for i := 0; i < steps && len(s.violations) == 0; i++ {
		if p.Skip[i] {
			continue
		}
		s.chance = newChance(p.Seed, i)
		s.step(i)
	}
	if len(s.violations) == 0 {
		s.chance = newChance(p.Seed, -2)
		s.heal()
	}
	if len(s.violations) == 0 {
		s.check()
	}
	v = Verdict{
		Seed: p.Seed, UpTo: steps, Skip: slices.Sorted(maps.Keys(p.Skip)), Violations: s.violations, History: s.history, Ends: map[string]int{},
	}
	for _, b := range s.bookings {
		v.Ends[b.Status]++
	}
	return v, nil
}

// abandon ends the actors that a broken schedule has left.
func (s *schedule) abandon() {
	s.healing = true
	for len(s.live) > 0 {
		a := s.live[0]
		s.live = s.live[1:]
		a.wake <- false
		<-s.back
	}
}

func (s *schedule) setUp() {
	must := func(err error) {
		if err != nil {
			s.broken(err)
		}
	}
	must(s.site.empty(s.ctx))
	began := time.Now().Truncate(time.Second)
	must(setClock(s.ctx, s.site.db, began))
	_, _ = s.site.gateway.Intent(s.ctx, "pi_none") // so that there is one kept-alive connection, whatever came before
	s.site.sim.Reset()
	_, err := s.site.sim.SetWebhooks(stripesim.Webhooks{Mode: "hold"})
	must(err)
	must(s.emptyStream())
	s.publisher, err = outbox.NewJetStream(s.site.conn, outbox.StreamConfig{RecreateAfter: 1}, quiet())
	must(err)
	verifier, err := stripe.NewVerifier([]domain.Secret{webhookSecret})
	must(err)
	s.inbox = payments.NewInbox(s.site.pool, verifier, nil)
	s.service = bookings.New(s.site.pool, asleep{}, bookings.Config{Budget: ready})
	s.desk = payments.NewDesk(s.service, asleep{}, payments.CardLimits{PerClient: 1 << 20}, quiet())

	c := s.chance
	s.config = payments.Config{Backoff: 1, MaxSends: c.n(4) + 1}
	s.providerPauses = pick(c, 0.0, 15, 30, 45)
	s.statementPauses = pick(c, 0.0, 0, 1, 3)
	s.deaths = pick(c, 0.0, 5, 15)
	s.cuts = pick(c, 0.0, 0, 1, 4)
	s.mostBookings = c.n(5) + 1
	for _, a := range acts() { // each schedule has its own idea of what happens often, and what never
		s.weights = append(s.weights, a.weight*pick(c, 0, 1, 2, 2, 6))
	}
	s.weights[0] = acts()[0].weight // without bookings nothing happens
	s.start = began.Truncate(24 * time.Hour).Add(30 * 24 * time.Hour)
	setup := bookings.New(s.site.db, asleep{}, bookings.Config{})
	for i, r := range []domain.Resource{
		{Name: "Room", Places: 1, Price: domain.Money{Amount: 2500, Currency: "EUR"}},
		{Name: "Court", Places: 2, Price: pick(c,
			domain.Money{Amount: 3000, Currency: "JPY"}, // not ISK: the provider's fees in it are no whole minor units of ours
			domain.Money{Amount: 500000, Currency: "MGA"}, domain.Money{Amount: 1990, Currency: "KWD"})},
	} {
		r.TimeZone, r.UnitMinutes = "Europe/Berlin", 60
		r.Hold = pick(c, 15*time.Minute, time.Hour, 12*time.Hour)
		r.Refunds = pick(c, policies()...)
		made, err := setup.CreateResource(s.ctx, r)
		must(err)
		s.resources = append(s.resources, made)
		client := domain.NewID[domain.ClientID]()
		s.exec(`INSERT INTO clients (id, name) VALUES ($1, $2)`, client, fmt.Sprintf("client %d", i))
		s.clients = append(s.clients, client)
	}
	for range 1 + c.n(min(s.mostBookings, 3)) {
		s.book()
	}
}

// step is one turn of somebody.
func (s *schedule) step(i int) {
	const most = 4 // actors at once
	s.look()
	c := s.chance
	if len(s.live) > 0 && (len(s.live) >= most || c.percent(45)) {
		a := s.live[c.n(len(s.live))]
		alive := !c.percent(s.deaths)
		if !alive {
			s.tell("%d: %s dies", i, a.name)
		} else {
			s.tell("%d: %s has the turn", i, a.name)
		}
		s.turn(a, alive)
	} else {
		total := 0
		for _, w := range s.weights {
			total += w
		}
		at := c.n(max(total, 1))
		for n, a := range acts() {
			if at -= s.weights[n]; at < 0 {
				s.tell("%d: %s", i, a.name)
				a.do(s)
				break
			}
		}
	}
	if s.harness != nil {
		panic(brokenError{s.harness})
	}
}

// look reads which bookings there are.
func (s *schedule) look() {
	s.bookings = rows[booking](s, `
		SELECT b.id, b.client_id AS client, b.status, p.id AS payment, p.status AS paid, coalesce(p.provider_intent_id, '') AS intent
		  FROM bookings b JOIN payments p ON p.booking_id = b.id ORDER BY b.created_at`)
	for n, b := range s.bookings {
		s.owns(b, n+1)
	}
}

// some picks a booking.
func (s *schedule) some() (booking, bool) {
	if len(s.bookings) == 0 {
		return booking{}, false
	}
	return s.bookings[s.chance.n(len(s.bookings))], true
}

// pass lets time pass, for us and for the provider. Over more than a few minutes nothing stays on its way: a send arrives or
// never does, and no process is stopped between recording a send and making it for as long as that.
func (s *schedule) pass(d time.Duration) {
	if d > 5*time.Minute {
		for len(s.late) > 0 {
			s.arrive(0)
		}
		s.settleSends()
	}
	s.elapsed += d
	if err := advanceClock(s.ctx, s.site.db, d); err != nil {
		s.broken(err)
	}
	s.site.sim.Advance(d)
	s.tell("  %s pass", d)
}

// settleSends lets everybody who is about to send do so.
func (s *schedule) settleSends() {
	for again := true; again; {
		again = false
		for _, a := range s.live {
			if a.aboutToSend {
				s.turn(a, true)
				again = true
				break
			}
		}
	}
}

// process is one process's engine: several of them are several processes, as far as database and provider can tell.
func (s *schedule) process() *payments.Payments {
	return payments.New(s.site.pool, &crossing{Gateway: s.site.gateway, s: s}, asleep{}, s.config, quiet())
}

func (s *schedule) drain() *outbox.Drain {
	return outbox.NewDrain(s.site.pool, &station{Publisher: s.publisher, s: s}, outbox.DrainConfig{
		Timeout: ready, FirstBackoff: time.Second, MaxBackoff: time.Second, PausedFor: time.Second,
	}, quiet())
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// asleep is a waker that wakes nobody: the schedule says who works.
type asleep struct{}

func (asleep) Wake(domain.EffectKind) {}

// fail notes a violation.
func (s *schedule) fail(invariant, format string, args ...any) {
	v := Violation{Invariant: invariant, Text: s.names.shorten(fmt.Sprintf(format, args...))}
	s.violations = append(s.violations, v)
	s.tell("VIOLATION of %s: %s", v.Invariant, v.Text)
}

// tell adds a line to the history.
func (s *schedule) tell(format string, args ...any) {
	s.history = append(s.history, s.names.shorten(fmt.Sprintf(format, args...)))
}
