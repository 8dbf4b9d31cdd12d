package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"holdfast/domain"
	"holdfast/internal/testdb"
	"holdfast/payments/stripe"
	"holdfast/payments/stripesim"
)

const (
	apiKey        domain.Secret = "sk_test_simulate"
	webhookSecret domain.Secret = "whsec_simulate" //nolint:gosec // a secret of nobody's
	ready                       = time.Minute      // for what is there at once unless the machine is overrun
)

// site is what schedules run on, one after the other: a database, a provider and a broker of its own.
type site struct {
	db       *pgxpool.Pool // the simulation's own way to the database
	pool     *pgxpool.Pool // the actors' way, which is traced and can be cut
	sim      *stripesim.Server
	gateway  *stripe.Gateway
	mail     *mailbox
	broker   *server.Server
	conn     *nats.Conn
	js       jetstream.JetStream
	schedule *schedule // that runs now
	close    []func()  // in the order of opening
}

// openSite makes one on the database server at adminURL.
func openSite(ctx context.Context, adminURL string, number int) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err = s.openDatabase(ctx, adminURL, number); err != nil {
		return nil, err
	}
	if s.mail, err = openMailbox(ctx); err != nil {
		return nil, err
	}
	s.close = append(s.close, s.mail.close)
	s.sim, err = stripesim.Start(ctx, "127.0.0.1:0", stripesim.Config{WebhookURL: s.mail.url, WebhookSecret: webhookSecret.Reveal()})
	if err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	s.close = append(s.close, func() { _ = s.sim.Close() }) //nolint:contextcheck // it has a limit of its own
	s.gateway, err = stripe.New(stripe.Config{APIKey: apiKey, BaseURL: s.sim.URL, Timeout: ready})
	if err != nil {
		return nil, err
	}
	return s, s.openBroker()
}

// Close stops everything, the last first.
func (s *site) Close() {
	for i := len(s.close) - 1; i >= 0; i-- {
		s.close[i]()
	}
}

func (s *site) openDatabase(ctx context.Context, adminURL string, number int) error {
	template, err := testdb.Template(ctx, adminURL)
	if err != nil {
		return err
	}
	admin, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return fmt.Errorf("connect to the database server: %w", err)
	}
	defer func() { _ = admin.Close(ctx) }()
	name := fmt.Sprintf("simulate_%d_%d_%d", os.Getpid(), time.Now().UnixNano()%1e9, number)
	if _, err := admin.Exec(ctx, `CREATE DATABASE `+name+` TEMPLATE `+pgx.Identifier{template}.Sanitize()); err != nil {
		return fmt.Errorf("clone the template: %w", err)
	}
	s.close = append(s.close, func() { dropDatabase(context.WithoutCancel(ctx), adminURL, name) })
	u, err := url.Parse(adminURL)
	if err != nil {
		return errors.New("the database server's URL cannot be parsed")
	}
	u.Path = "/" + name
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	err = installClock(ctx, conn)
	_ = conn.Close(ctx)
	if err != nil {
		return err
	}
	if s.db, err = openPool(ctx, u.String(), nil); err != nil {
		return err
	}
	s.close = append(s.close, s.db.Close)
	s.pool, err = openPool(ctx, u.String(), &tracer{before: func(conn *pgx.Conn, sql string) {
		if s.schedule != nil {
			s.schedule.statement(conn, sql)
		}
	}})
	if err == nil {
		s.close = append(s.close, s.pool.Close)
	}
	return err
}

func dropDatabase(ctx context.Context, adminURL, name string) {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	admin, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return
	}
	_, _ = admin.Exec(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
	_ = admin.Close(ctx)
}

// openPool makes a pool as the binaries have it, on the virtual clock. A traced one is the actors'.
func openPool(ctx context.Context, databaseURL string, t *tracer) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errors.New("the database's URL cannot be parsed")
	}
	config.MaxConns = 16
	config.MaxConnIdleTime, config.MaxConnLifetime, config.HealthCheckPeriod = time.Hour, 24*time.Hour, time.Hour
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	params := config.ConnConfig.RuntimeParams
	params["search_path"], params["timezone"], params["application_name"] = searchPath, "UTC", "holdfast-simulate"
	params["lock_timeout"], params["statement_timeout"] = "10000", "30000"
	if t != nil {
		config.ConnConfig.Tracer = t
		config.ConnConfig.DialFunc = dialWire
		config.ConnConfig.TLSConfig, config.ConnConfig.Fallbacks = nil, nil // a wire must see what is said
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// empty empties the tables. Deleting from a few dozen small tables is quicker than truncating them.
func (s *site) empty(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `
		DO $$ DECLARE t regclass; BEGIN
			SET LOCAL session_replication_role = replica;
			FOR t IN SELECT c.oid FROM pg_class c
			          WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
			            AND c.relname NOT IN ('charge_currencies', 'charge_minimums', 'goose_db_version', 'river_migration')
			LOOP EXECUTE format('DELETE FROM %s', t); END LOOP;
		END $$`)
	if err != nil {
		return fmt.Errorf("empty the database: %w", err)
	}
	return nil
}

func (s *site) openBroker() error {
	store, err := os.MkdirTemp("", "holdfast-simulate-")
	if err != nil {
		return err
	}
	s.close = append(s.close, func() { _ = os.RemoveAll(store) })
	s.broker, err = server.NewServer(&server.Options{
		ServerName: "simulate", DontListen: true, JetStream: true, StoreDir: store,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	s.broker.Start()
	s.close = append(s.close, func() { s.broker.Shutdown(); s.broker.WaitForShutdown() })
	if !s.broker.ReadyForConnections(ready) {
		return errors.New("the broker did not become ready")
	}
	if s.conn, err = nats.Connect("", nats.InProcessServer(s.broker)); err != nil {
		return fmt.Errorf("connect to the broker: %w", err)
	}
	s.close = append(s.close, s.conn.Close)
	s.js, err = jetstream.New(s.conn)
	return err
}

// mailbox is where the provider's webhooks arrive. What is delivered from there to us, when, and how often, the seed says.
type mailbox struct {
	url   string
	close func()

	mu      sync.Mutex
	arrived []mail
	more    chan struct{}
}

type mail struct {
	signature string
	body      []byte
}

func openMailbox(ctx context.Context) (*mailbox, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	m := &mailbox{url: "http://" + listener.Addr().String(), more: make(chan struct{}, 1)}
	receiver := &http.Server{Handler: m, ReadHeaderTimeout: ready}
	go func() { _ = receiver.Serve(listener) }()
	m.close = func() { _ = receiver.Close() }
	return m, nil
}

func (m *mailbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	m.arrived = append(m.arrived, mail{signature: r.Header.Get("Stripe-Signature"), body: body})
	m.mu.Unlock()
	select {
	case m.more <- struct{}{}:
	default:
	}
}

// take waits until n deliveries have arrived, and takes them.
func (m *mailbox) take(n int) ([]mail, error) {
	limit := time.NewTimer(ready)
	defer limit.Stop()
	for {
		m.mu.Lock()
		if len(m.arrived) >= n {
			taken := m.arrived
			m.arrived = nil
			m.mu.Unlock()
			return taken, nil
		}
		m.mu.Unlock()
		select {
		case <-m.more:
		case <-limit.C:
			return nil, errors.New("the provider's webhooks did not arrive")
		}
	}
}
