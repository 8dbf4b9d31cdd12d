package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// witness reads the database and the stream beside Holdfast, so that the summary does not take its word. It writes
// nothing.
type witness struct {
	db   *pgxpool.Pool
	nats *nats.Conn
}

func newWitness(ctx context.Context, d description) (*witness, error) {
	db, err := pgxpool.New(ctx, d.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	conn, err := nats.Connect(d.NATSURL)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return &witness{db: db, nats: conn}, nil
}

func (w *witness) close() {
	w.nats.Close()
	w.db.Close()
}

// effect is the newest effect of a kind for a booking.
func (w *witness) effect(ctx context.Context, booking, kind string) (string, error) {
	return one[string](ctx, w.db,
		`SELECT id::text FROM outbox WHERE booking_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1`, booking, kind)
}

// intent is the provider's id of a booking's payment.
func (w *witness) intent(ctx context.Context, booking string) (string, error) {
	return one[string](ctx, w.db, `SELECT provider_intent_id FROM payments WHERE booking_id = $1`, booking)
}

// charge says where a booking's charge stands, in words and as the status of its effect.
func (w *witness) charge(ctx context.Context, booking string) (state, effect string, err error) {
	var payment string
	var confirms int
	err = w.db.QueryRow(ctx, `
		SELECT o.status, p.status,
		       coalesce((SELECT sum(c.sends) FROM provider_calls c WHERE c.payment_id = p.id AND c.operation = 'confirm'), 0)
		  FROM outbox o JOIN payments p ON p.booking_id = o.booking_id
		 WHERE o.booking_id = $1 AND o.kind = 'charge'`, booking).Scan(&effect, &payment, &confirms)
	if err != nil {
		return "", "", fmt.Errorf("read the database: %w", err)
	}
	state = fmt.Sprintf("charge effect %s, payment %s, confirm sent %d time(s)", effect, payment, confirms)
	return state, effect, nil
}

// confirmed counts which of the bookings are confirmed and paid.
func (w *witness) confirmed(ctx context.Context, bookings []string) (int, error) {
	return one[int](ctx, w.db, `
		SELECT count(*) FROM bookings b JOIN payments p ON p.booking_id = b.id
		 WHERE b.id = ANY ($1::uuid[]) AND b.status = 'confirmed' AND p.status = 'succeeded'`, bookings)
}

// unfinished counts effects that are not carried out and payments in doubt.
func (w *witness) unfinished(ctx context.Context, bookings []string) (int, error) {
	return one[int](ctx, w.db, `
		SELECT (SELECT count(*) FROM outbox WHERE booking_id = ANY ($1::uuid[]) AND status NOT IN ('done', 'not_needed'))
		     + (SELECT count(*) FROM payments WHERE booking_id = ANY ($1::uuid[]) AND status = 'in_doubt')`, bookings)
}

// actions counts the audited replays of an effect.
func (w *witness) actions(ctx context.Context, effect string) (int, error) {
	return one[int](ctx, w.db, `SELECT count(*) FROM operator_actions WHERE effect_id = $1`, effect)
}

// event is an event's row and what the broker acknowledged.
type event struct {
	ID       string
	Type     string
	Stream   string
	Sequence int64
}

// events are the acknowledged events of a booking, in their order.
func (w *witness) events(ctx context.Context, booking string) ([]event, error) {
	rows, err := w.db.Query(ctx, `
		SELECT id::text, event_type AS type, stream, stream_sequence AS sequence FROM outbox
		 WHERE booking_id = $1 AND kind = 'publish' AND status = 'done' ORDER BY event_seq`, booking)
	if err != nil {
		return nil, fmt.Errorf("read the events of booking %s: %w", booking, err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[event])
}

// deliveries counts how often each event id is in the stream.
func (w *witness) deliveries(ctx context.Context, stream string) (map[string]int, error) {
	js, err := jetstream.New(w.nats)
	if err != nil {
		return nil, err
	}
	found, err := js.Stream(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("read the stream %s: %w", stream, err)
	}
	state := found.CachedInfo().State
	counts := map[string]int{}
	for sequence := state.FirstSeq; sequence <= state.LastSeq; sequence++ {
		message, err := found.GetMsg(ctx, sequence)
		if err != nil {
			return nil, fmt.Errorf("read message %d of the stream %s: %w", sequence, stream, err)
		}
		counts[message.Header.Get(nats.MsgIdHdr)]++
	}
	return counts, nil
}

// one reads a single value.
func one[T any](ctx context.Context, db *pgxpool.Pool, sql string, args ...any) (T, error) {
	var value T
	if err := db.QueryRow(ctx, sql, args...).Scan(&value); err != nil {
		return value, fmt.Errorf("read the database: %w", err)
	}
	return value, nil
}
