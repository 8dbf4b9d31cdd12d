package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Connect returns a connection that goes on trying for ever, from the start on: a broker that is down must not keep the
// workers from charging. Nothing is buffered while it is away: what was not acknowledged is published again from its
// row, and a buffer would only make it look sent.
func Connect(url, name string, logger *slog.Logger) (*nats.Conn, error) {
	conn, err := nats.Connect(url,
		nats.Name(name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(500*time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				logger.Warn("broker lost", "error", err.Error())
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { // the default writes to stderr, beside the log
			logger.Warn("trouble with the broker", "error", err.Error())
		}),
		nats.ReconnectHandler(func(*nats.Conn) { logger.Info("broker back") }),
	)
	if err != nil {
		// The client's own error may quote the URL, which may hold a password.
		return nil, errors.New("connect to NATS: NATS_URL cannot be used; want nats://host:port")
	}
	return conn, nil
}

// JetStream publishes events to the stream BOOKINGS.
type JetStream struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	cfg    StreamConfig
	logger *slog.Logger

	mu      sync.Mutex
	checked bool      // the stream was there, with the right settings
	suspect bool      // the last event was refused or not answered: the settings may have been changed
	missing time.Time // since when nothing has taken our events; zero: it has
}

// NewJetStream sets up publishing over a connection, which stays the caller's. It sends nothing: the stream is made or
// checked by EnsureStream, or else before the first event.
func NewJetStream(conn *nats.Conn, cfg StreamConfig, logger *slog.Logger) (*JetStream, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("set up JetStream: %w", err)
	}
	return &JetStream{conn: conn, js: js, cfg: cfg.withDefaults(), logger: logger}, nil
}

// Publish sends an event and waits for the stream's acknowledgement until ctx ends. A stream that has been missing for
// the time that the settings allow is made again, so that a broker that lost its store needs nobody's hand.
func (j *JetStream) Publish(ctx context.Context, m Message) (Ack, error) {
	if !j.conn.IsConnected() {
		return Ack{}, errors.New("not connected to the broker") // at once, instead of waiting for a time-out
	}
	if err := j.prepare(ctx); err != nil {
		return Ack{}, err
	}
	msg := &nats.Msg{Subject: m.Subject, Data: m.Body, Header: nats.Header{"Content-Type": {contentType}}}
	pub, err := j.js.PublishMsg(ctx, msg,
		jetstream.WithMsgID(m.ID.String()),
		jetstream.WithExpectStream(StreamName),
		jetstream.WithRetryAttempts(0)) // our own back-off retries
	if err == nil && (pub.Stream != StreamName || pub.Sequence == 0) {
		err = errForeignAck
	}
	j.note(err)
	if err != nil {
		return Ack{}, explain(err, len(m.Body))
	}
	return Ack{Stream: pub.Stream, Sequence: pub.Sequence, Duplicate: pub.Duplicate}, nil
}

// prepare makes sure of the stream before the first event, and after it has been missing for long.
func (j *JetStream) prepare(ctx context.Context) error {
	j.mu.Lock()
	gone := !j.missing.IsZero() && time.Since(j.missing) > j.cfg.RecreateAfter
	ready, suspect := j.checked && !gone, j.suspect
	if gone {
		j.missing = time.Now() // one attempt each time, by one of many publishers
	}
	j.mu.Unlock()
	if ready && suspect {
		return j.checkSettings(ctx)
	}
	if ready {
		return nil
	}
	err := j.EnsureStream(ctx)
	if wrong := (*StreamSettingsError)(nil); errors.As(err, &wrong) {
		return wrong
	} else if err != nil {
		return errors.New("the stream " + StreamName + " could not be looked up")
	}
	return nil
}

// checkSettings returns a *StreamSettingsError if the stream is there with wrong settings, and nothing otherwise: whether
// it takes the event is then seen by publishing.
func (j *JetStream) checkSettings(ctx context.Context) error {
	stream, err := j.js.Stream(ctx, StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		j.miss() // somebody else hears the subject, so that publishing alone would never tell
	}
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	if wrong := j.cfg.check(stream.CachedInfo().Config); len(wrong) > 0 {
		return &StreamSettingsError{Wrong: wrong}
	}
	return nil
}

// note keeps the time since when nothing has taken our events. After any other refusal or silence the stream's settings
// are looked at again before the next event: somebody may have changed them.
func (j *JetStream) note(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.suspect = err != nil && !errors.Is(err, jetstream.ErrNoStreamResponse)
	switch {
	case err == nil:
		j.missing = time.Time{}
	case errors.Is(err, jetstream.ErrNoStreamResponse) && j.missing.IsZero():
		j.missing = time.Now()
	}
}

// miss notes that the broker itself says that there is no stream.
func (j *JetStream) miss() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.missing.IsZero() {
		j.missing = time.Now()
	}
}

// errForeignAck says that somebody answered in the stream's place.
var errForeignAck = errors.New("the answer was no acknowledgement of the stream " + StreamName)

// explain puts what went wrong in words of ours, which are stored and shown.
func explain(err error, size int) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum) && size <= minMessage:
		return errors.New("the stream takes no event of this size: its settings are wrong")
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return errors.New("no stream takes the event")
	case errors.Is(err, errForeignAck):
		return err
	case errors.Is(err, jetstream.ErrInvalidJSAck):
		return errors.New("the answer was no acknowledgement")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return errors.New("no acknowledgement in time")
	case errors.As(err, &api):
		return fmt.Errorf("the broker refused the event (error %d)", api.ErrorCode)
	default:
		return errors.New("the connection to the broker broke")
	}
}
