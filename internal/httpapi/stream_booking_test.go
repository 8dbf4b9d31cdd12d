package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/clients"
	"holdfast/internal/httpapi"
	"holdfast/internal/postgres"
	"holdfast/outbox"
	"holdfast/payments"
)

const eternity = 3 * time.Minute // no test waits for so long unless it fails

// happening is one server-sent event.
type happening struct{ id, event, data string }

// follower reads a stream as the standard says.
type follower struct {
	resp     *http.Response
	lines    *bufio.Scanner
	retry    string
	comments int
}

// follow opens a stream.
func (b *bed) follow(t *testing.T, booking string, headers ...string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eternity)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/v1/bookings/"+booking+"/stream", nil)
	require.NoError(t, err)
	for _, h := range append(headers, b.bearer()) {
		if name, value, ok := strings.Cut(h, ": "); ok {
			r.Header.Set(name, value)
		}
	}
	resp, err := b.http.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	return &follower{resp: resp, lines: bufio.NewScanner(resp.Body)}
}

// next reads the next event; false: the stream has ended as it should.
func (f *follower) next(t *testing.T) (happening, bool) {
	t.Helper()
	var h happening
	for f.lines.Scan() {
		name, value, _ := strings.Cut(f.lines.Text(), ": ")
		switch name {
		case "id":
			h.id = value
		case "event":
			h.event = value
		case "data":
			require.Empty(t, h.data, "one line")
			h.data = value
		case "retry":
			f.retry = value
		case "":
			if h != (happening{}) {
				return h, true
			}
			if value != "" {
				f.comments++
			}
		default:
			require.Fail(t, "not the grammar of server-sent events", "%q", f.lines.Text())
		}
	}
	require.NoError(t, f.lines.Err())
	require.Zero(t, h, "half an event")
	return h, false
}

func (f *follower) gets(t *testing.T, id, event string) happening {
	t.Helper()
	h, ok := f.next(t)
	require.True(t, ok, "the stream has ended")
	require.Equal(t, id+" "+event, h.id+" "+h.event)
	return h
}

func (f *follower) ends(t *testing.T) {
	t.Helper()
	h, ok := f.next(t)
	require.False(t, ok, "%v", h)
}

// held books, and returns the booking's id.
func (b *bed) held(t *testing.T, key string) string {
	t.Helper()
	made := b.book(t, key, b.body())
	require.Equal(t, http.StatusCreated, made.status, "%s", made.body)
	return idOf(made)
}

func (b *bed) declined(t *testing.T, booking string) {
	t.Helper()
	b.event(t, booking, "payment_declined", `status = 'held'`, `status = 'declined', decline_code = 'insufficient_funds'`)
}

func (b *bed) confirmed(t *testing.T, booking string) {
	t.Helper()
	b.event(t, booking, "confirmed", `status = 'confirmed'`, `status = 'succeeded'`)
}

// listen puts the API on a listener of its own, with its time-outs.
func (b *bed) listen(t *testing.T) *served {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &served{api: b.api, address: listener.Addr().String(), done: make(chan error, 1), log: b.log}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s.stop = cancel
	t.Cleanup(cancel)
	go func() { s.done <- s.api.Serve(ctx, listener) }()
	b.url = "http://" + s.address
	return s
}

func TestStreamTellsWhatHappensUntilTheEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *httpapi.Config) { c.StreamHeartbeat = 20 * time.Millisecond })
	id := b.held(t, "one")
	shown := func() string { return string(b.get(t, "/v1/bookings/"+id).body) }
	f := b.follow(t, id)
	h := f.gets(t, "1", "held")
	require.Equal(t, shown(), h.data+"\n", "the document that GET shows, and nothing else")
	require.Regexp(t, `^[1-3]\d{3}$`, f.retry)
	b.declined(t, id)
	require.Equal(t, shown(), f.gets(t, "2", "payment_declined").data+"\n")
	require.NotRegexp(t, `(?i)secret|pm_card|next_action`, h.data)
	b.event(t, id, "payment_declined", `status = 'held'`, `status = 'declined'`)
	f.gets(t, "3", "payment_declined")
	b.confirmed(t, id)
	require.Equal(t, shown(), f.gets(t, "4", "confirmed").data+"\n")
	f.ends(t)
	require.Eventually(t, func() bool { return strings.Contains(b.log.String(), `/stream","status":200`) }, eternity, time.Millisecond)
}

// A cut connection loses nothing and repeats nothing, whatever happened meanwhile and whichever process answers then.
func TestStreamResumesAfterACut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := *b
	other.api, _ = httpapi.New(config(b.db), slog.New(slog.DiscardHandler))
	other.listen(t)
	id := b.held(t, "one")
	last, got := "", []string{}
	for round, reads := range []int{1, 2, 0, 3, 1, 4} {
		from := []*bed{b, &other}[round%2]
		f := from.follow(t, id, "Last-Event-ID: "+last)
		for read := range reads {
			if round > 0 && read%2 == 1 {
				b.declined(t, id) // while the stream waits, or between two events of it
			}
			h, ok := f.next(t)
			require.True(t, ok)
			got, last = append(got, h.id), h.id
		}
		require.NoError(t, f.resp.Body.Close()) // cut
		b.declined(t, id)                       // while nobody is there
		b.declined(t, id)
	}
	b.confirmed(t, id)
	f := b.follow(t, id, "Last-Event-ID: "+last)
	for {
		h, ok := f.next(t)
		if !ok {
			break
		}
		got = append(got, h.id)
	}
	var events int
	require.NoError(t, b.db.Pool.QueryRow(t.Context(), `SELECT event_seq FROM bookings WHERE id = $1`, id).Scan(&events))
	var want []string
	for n := range events {
		want = append(want, fmt.Sprint(n+1))
	}
	require.Greater(t, events, 14)
	require.Equal(t, want, got)
}

func TestStreamEndsAtEachFinalState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for event, set := range map[string]string{
		"confirmed": `status = 'confirmed'`,
		"expired":   `status = 'expired', ending_reason = 'expire', ended_at = now()`,
		"cancelled": `status = 'cancelled', ending_reason = 'cancel', ended_at = now()`,
		"failed":    `status = 'failed', ending_reason = 'refuse', ended_at = now()`,
	} {
		id := b.sow(t, "acme", 1)[0]
		f := b.follow(t, id)
		f.gets(t, "1", "held")
		b.event(t, id, event, set, `status = 'pending'`)
		f.gets(t, "2", event)
		f.ends(t)

		late := b.follow(t, id)
		require.Contains(t, late.gets(t, "1", "held").data, `"status":"`+event+`"`, "the booking as it stands now")
		late.gets(t, "2", event)
		late.ends(t)

		all := b.send(t, http.MethodGet, "/v1/bookings/"+id+"/stream", nil, b.bearer(), "Last-Event-Id: 2")
		require.Equal(t, http.StatusNoContent, all.status)
		require.Empty(t, all.body)
	}
	// What is final may be cancelled all the same: whoever asks again is told.
	id := b.held(t, "one")
	b.confirmed(t, id)
	b.event(t, id, "cancelled", `status = 'cancelled', ending_reason = 'cancel', ended_at = now()`, `status = 'succeeded'`)
	f := b.follow(t, id, "Last-Event-ID: 2")
	f.gets(t, "3", "cancelled")
	f.ends(t)
	// An end that is not the newest event does not keep the stream open.
	b.event(t, id, "refunded", `status = 'cancelled'`, `status = 'succeeded'`)
	f = b.follow(t, id, "Last-Event-ID: 2")
	f.gets(t, "3", "cancelled")
	f.gets(t, "4", "refunded")
	f.ends(t)
}

// The time-outs of short answers end neither a stream nor its wait: not the one for writing, nor the one for reading,
// which net/http would take for the client's leaving, nor the one for the request.
func TestStreamOutlivesTheTimeoutsOfShortAnswers(t *testing.T) {
	t.Parallel()
	id := domain.NewID[domain.BookingID]()
	var paid atomic.Bool
	stamped := domain.Booking{ID: id, Status: domain.BookingHeld, EventSeq: 1}
	s := serve(t, fakes{
		view: func(context.Context, domain.BookingID) (payments.View, error) {
			v := payments.View{Booking: stamped}
			if paid.Load() {
				v.Booking.Status, v.Booking.EventSeq = domain.BookingConfirmed, 2
			}
			return v, nil
		},
		events: func(after int64) []outbox.Happened {
			all := []outbox.Happened{{EventSeq: 1, EventType: domain.EventHeld}}
			if paid.Load() {
				all = append(all, outbox.Happened{EventSeq: 2, EventType: domain.EventConfirmed})
			}
			return all[min(after, int64(len(all))):]
		},
	}, func(c *httpapi.Config) {
		c.ReadTimeout, c.RequestTimeout, c.StreamHeartbeat = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	})
	b := &bed{url: "http://" + s.address, http: &http.Client{}, token: "hf_fake"}
	defer b.http.CloseIdleConnections()
	began := time.Now()
	f := b.follow(t, id.String())
	f.gets(t, "1", "held")
	for time.Since(began) < 5500*time.Millisecond { // the server writes for 5.2 s
		require.True(t, f.lines.Scan(), "the stream was cut after %s: %v", time.Since(began), f.lines.Err())
	}
	paid.Store(true)
	f.gets(t, "2", "confirmed")
	f.ends(t)
	require.NoError(t, s.end(t))
}

func TestDrainEndsStreamsAndWaitsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *httpapi.Config) { c.DrainTimeout = eternity })
	s := b.listen(t)
	id := b.held(t, "one")
	var all []*follower
	for range 10 {
		f := b.follow(t, id)
		f.gets(t, "1", "held")
		all = append(all, f)
	}
	waited := b.waits(t, id, "wait=60")
	require.Eventually(t, func() bool { return b.api.Following() == 11 }, eternity, time.Millisecond)
	began := time.Now()
	require.NoError(t, s.end(t))
	require.Less(t, time.Since(began), eternity/2)
	for _, f := range all {
		f.ends(t)
	}
	a := <-waited
	require.Equal(t, http.StatusOK, a.status, "%s", a.body)
	require.Zero(t, b.api.Following())
}

// A customer who waits holds no connection to the database: 100 of them leave a pool of four to those who book.
func TestIdleStreamsStarveNobody(t *testing.T) {
	t.Parallel()
	const followers = 100
	b := setup(t)
	pool, err := postgres.Open(t.Context(), postgres.PoolConfig{URL: b.db.URL, ApplicationName: "small", MaxConns: 4})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	c := config(b.db)
	c.Clients, c.Bookings, c.Payments, c.Events = clients.New(pool), bookings.New(pool, noWaker{}, bookings.Config{Budget: eternity}), payments.NewViewer(pool), outbox.NewEvents(pool)
	c.StreamsPerClient, c.FollowInterval = followers, 250*time.Millisecond // as it is by default
	b.api, err = httpapi.New(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	b.listen(t)
	id := b.held(t, "one")
	all := make([]*follower, 0, followers)
	for range followers {
		f := b.follow(t, id)
		f.gets(t, "1", "held")
		all = append(all, f)
	}
	require.Equal(t, followers, b.api.Following())
	queries := pool.Stat().AcquireCount()
	began := time.Now()
	for n := range 20 {
		made := b.book(t, fmt.Sprint("two-", n), b.body(set("start", fmt.Sprintf("2028-01-%02dT10:00:00Z", n+1)), set("end", fmt.Sprintf("2028-01-%02dT11:00:00Z", n+1))))
		require.Equal(t, http.StatusCreated, made.status, "%s", made.body)
	}
	t.Logf("20 bookings beside %d streams took %s", followers, time.Since(began))
	looks := int64(time.Since(began)/c.FollowInterval) + 2
	require.LessOrEqual(t, pool.Stat().AcquireCount()-queries, 20*5+looks, "those who wait ask the database once between them")
	b.confirmed(t, id)
	for _, f := range all {
		f.gets(t, "2", "confirmed")
		f.ends(t)
	}
}

func TestStreamsOfAClientAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *httpapi.Config) { c.StreamsPerClient = 2 })
	id := b.held(t, "one")
	first := b.follow(t, id)
	b.follow(t, id)
	third := b.get(t, "/v1/bookings/"+id+"/stream")
	third.refused(t, http.StatusTooManyRequests, httpapi.CodeTooManyStreams)
	require.Equal(t, "10", third.header.Get("Retry-After"))
	rival := *b
	rival.token = b.newToken(t, "rival", clients.BookingsRead)
	rival.follow(t, b.sow(t, "rival", 1)[0])
	require.NoError(t, first.resp.Body.Close())
	require.Eventually(t, func() bool { return b.api.Following() == 2 }, eternity, time.Millisecond, "who leaves makes room")
	b.follow(t, id).gets(t, "1", "held")
}

func TestStreamRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.held(t, "one")
	rival := *b
	rival.token = b.newToken(t, "rival", clients.BookingsRead, clients.BookingsWrite)
	foreign := rival.get(t, "/v1/bookings/"+id+"/stream")
	foreign.refused(t, http.StatusNotFound, httpapi.CodeNotFound) // G9
	for _, unknown := range []string{uuid.NewString(), "x", strings.ToUpper(id)} {
		require.Equal(t, string(foreign.body), string(rival.get(t, "/v1/bookings/"+unknown+"/stream").body))
	}
	for _, bad := range []string{"x", "-1", "+1", "1.0", "2", "99", "0x1", "18446744073709551616", "1 " + "1"} {
		a := b.send(t, http.MethodGet, "/v1/bookings/"+id+"/stream", nil, b.bearer(), "Last-Event-Id: "+bad)
		p := a.refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
		require.Equal(t, "header.Last-Event-ID", p.Errors[0].Location, bad)
	}
	b.get(t, "/v1/bookings/"+id+"/stream?since=1").refused(t, http.StatusUnprocessableEntity, httpapi.CodeValidationFailed)
	b.send(t, http.MethodGet, "/v1/bookings/"+id+"/stream", nil).refused(t, http.StatusUnauthorized, httpapi.CodeUnauthenticated)
	rival.token = b.newToken(t, "writer", clients.BookingsWrite)
	rival.get(t, "/v1/bookings/"+id+"/stream").refused(t, http.StatusForbidden, httpapi.CodeForbidden)
	require.Equal(t, http.StatusOK, b.send(t, http.MethodHead, "/v1/bookings/"+id+"/stream", nil, b.bearer()).status, "and ends at once")
	require.Zero(t, b.api.Following())
}

// away is a database that does not answer for a while.
type away struct {
	httpapi.Events
	httpapi.Viewer

	now atomic.Bool
}

var errAway = errors.New("away")

func (a *away) After(ctx context.Context, id domain.BookingID, seq int64) ([]outbox.Happened, error) {
	if a.now.Load() {
		return nil, errAway
	}
	return a.Events.After(ctx, id, seq)
}

func (a *away) Newest(ctx context.Context, of []domain.BookingID) (map[domain.BookingID]int64, error) {
	if a.now.Load() {
		return nil, errAway
	}
	return a.Events.Newest(ctx, of)
}

func TestStreamWaitsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	var database away
	b := setup(t, func(c *httpapi.Config) {
		database.Events, c.Events = c.Events, &database
		c.StreamHeartbeat = 10 * time.Millisecond
	})
	id := b.held(t, "one")
	database.now.Store(true)
	f := b.follow(t, id) // not even its beginning can be read
	for f.comments < 20 {
		require.True(t, f.lines.Scan())
		if strings.HasPrefix(f.lines.Text(), ":") {
			f.comments++
		}
	}
	require.Equal(t, 1, strings.Count(b.log.String(), "events cannot be read"), "said once")
	database.now.Store(false)
	f.gets(t, "1", "held")
	b.confirmed(t, id)
	f.gets(t, "2", "confirmed")
	f.ends(t)
}

func TestStreamHasAnEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *httpapi.Config) { c.StreamLifetime = 200 * time.Millisecond })
	id := b.held(t, "one")
	f := b.follow(t, id)
	f.gets(t, "1", "held")
	f.ends(t)
	f = b.follow(t, id, "Last-Event-ID: 1")
	f.ends(t)
	_, err := io.ReadAll(f.resp.Body)
	require.NoError(t, err)
}
