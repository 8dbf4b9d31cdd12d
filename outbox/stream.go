package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// StreamName is the stream that events go to.
const StreamName = "BOOKINGS"

const (
	minDuplicates = 2 * time.Minute
	minAge        = 24 * time.Hour
	minMessage    = 64 << 10
)

// StreamConfig sets up the stream. Zero values take the defaults.
type StreamConfig struct {
	Replicas        int           // copies in a cluster; default 1
	MaxAge          time.Duration // how long the stream keeps an event; default 30 days
	DuplicateWindow time.Duration // in which it drops an event that it has already; default, and for a live system least, 2 min
	RecreateAfter   time.Duration // how long the stream may be missing before it is made again; default 15 s
}

func (c StreamConfig) withDefaults() StreamConfig {
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.MaxAge = cmp.Or(c.MaxAge, 30*24*time.Hour)
	c.DuplicateWindow = cmp.Or(c.DuplicateWindow, minDuplicates)
	c.RecreateAfter = cmp.Or(c.RecreateAfter, 15*time.Second)
	return c
}

// StreamSettingsError says which settings of an existing stream are wrong. The stream was left as it is: whoever made it
// may have had reasons, and changing it may drop events.
type StreamSettingsError struct{ Wrong []string }

func (e *StreamSettingsError) Error() string {
	return "the stream " + StreamName + " has wrong settings: " + strings.Join(e.Wrong, "; ")
}

// EnsureStream makes the stream if there is none, and checks its settings if there is one. An existing stream is never
// changed: wrong settings are a *StreamSettingsError that names each. Several processes may call it at once.
func (j *JetStream) EnsureStream(ctx context.Context) error {
	stream, err := j.js.Stream(ctx, StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = j.js.CreateStream(ctx, j.cfg.wanted())
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was faster
			stream, err = j.js.Stream(ctx, StreamName)
		}
	}
	if err != nil {
		return fmt.Errorf("ensure the stream %s: %w", StreamName, err)
	}
	if wrong := j.cfg.check(stream.CachedInfo().Config); len(wrong) > 0 {
		return &StreamSettingsError{Wrong: wrong}
	}
	j.mu.Lock()
	j.checked = true
	j.mu.Unlock()
	return nil
}

func (c StreamConfig) wanted() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        StreamName,
		Description: "What happened to bookings; at least once, in order per booking",
		Subjects:    []string{SubjectPrefix + ">"},
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy, // consumers come and go, and each reads all
		Discard:     jetstream.DiscardNew,   // a full stream refuses, and the event waits in its row
		MaxAge:      c.MaxAge,
		Duplicates:  c.DuplicateWindow,
		Replicas:    c.Replicas,
		DenyDelete:  true, // what was told is not untold
		AllowDirect: true,
	}
}

// check names what would break a promise. What is only a matter of taste (replicas, compression, placement) is the
// operator's.
func (c StreamConfig) check(got jetstream.StreamConfig) []string {
	var wrong []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	need(got.Storage == jetstream.FileStorage, "storage is %s, want file", strings.ToLower(got.Storage.String()))
	need(got.PersistMode == jetstream.DefaultPersistMode, "persist_mode is not the default: acknowledged would not mean stored")
	need(slices.Contains(got.Subjects, SubjectPrefix+">"), "subjects are %v, want %s", got.Subjects, SubjectPrefix+">")
	need(got.Retention == jetstream.LimitsPolicy, "retention is %s, want limits", strings.ToLower(got.Retention.String()))
	need(got.Duplicates >= c.DuplicateWindow, "duplicate_window is %s, want at least %s", got.Duplicates, c.DuplicateWindow)
	age := min(minAge, c.MaxAge)
	need(got.MaxAge == 0 || got.MaxAge >= age, "max_age is %s, want none or at least %s", got.MaxAge, age)
	need(got.MaxMsgSize <= 0 || got.MaxMsgSize >= minMessage, "max_msg_size is %d, want none or at least %d", got.MaxMsgSize, minMessage)
	need(!got.NoAck, "no_ack is set: nothing would be acknowledged")
	need(!got.Sealed, "sealed is set: nothing can be published")
	need(got.Mirror == nil, "mirror is set: nothing can be published")
	need(got.SubjectTransform == nil, "subject_transform is set: consumers would not find the events")
	return wrong
}
