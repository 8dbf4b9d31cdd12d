package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/pkg/client"
)

const sentinel = "hf_sentinel-of-the-token"

// script is a server that answers in turn, the last answer again and again, at the times of a bubble's clock.
type script struct {
	answers []step
	sent    []time.Duration // since began
	keys    []string
	bodies  []string
	began   time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	s.sent = append(s.sent, time.Since(s.began))
	s.keys, s.bodies = append(s.keys, r.Header.Get("Idempotency-Key")), append(s.bodies, body)
	answer := s.answers[min(len(s.sent), len(s.answers))-1]
	return answer.answer(r)
}

// step is one answer, or none: then err, at once or when the request ends.
type step struct {
	status  int
	body    string
	headers []string
	err     error
	hang    bool
}

func (a step) answer(r *http.Request) (*http.Response, error) {
	if a.hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"r-1"}}
	if strings.Contains(a.body, `"code"`) {
		header.Set("Content-Type", "application/problem+json")
	}
	for _, h := range a.headers {
		name, value, _ := strings.Cut(h, ": ")
		header.Set(name, value)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func says(status int, body string, headers ...string) step {
	return step{status: status, body: body, headers: headers}
}

func refuses(status int, code string, headers ...string) step {
	return says(status, fmt.Sprintf(`{"code":%q,"detail":"because","errors":[{"location":"body.end","message":"later"}]}`, code), headers...)
}

var (
	breaks = step{err: errors.New("connection reset")}
	hangs  = step{hang: true}
)

const booking = `{"id":"b-1","status":"held"}`

// scripted makes a client of a script. Its first pause is 50 to 100 ms, and each at most twice the one before.
func scripted(t *testing.T, answers ...step) (*client.Client, *script) {
	t.Helper()
	s := &script{answers: answers}
	c, err := client.New(client.Config{URL: "https://holdfast.example/", Token: sentinel, Transport: s})
	require.NoError(t, err)
	return c, s
}

// What passes is sent again: the same bytes under the same key, until the answer.
func TestWhatPassesIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]step{
		"broken connection": breaks, "503": refuses(503, "busy"), "500": refuses(500, "internal"), "502 HTML": says(502, "<html>"),
		"504": says(504, ""), "429": says(429, ""), "408": refuses(408, "request_timeout"), "in progress": refuses(409, "request_in_progress"),
		"half a booking": says(201, `{"id":"b-`), "half a problem": says(409, `{"code":"slot_`), "a portal": says(200, "<html>"),
		"an empty object": says(201, "{}"), "hang": hangs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, first, first, says(201, booking, "Idempotency-Replayed: true"))
				made, err := c.CreateBooking(t.Context(), "k-1", client.BookingRequest{ResourceID: "r"})
				require.NoError(t, err)
				require.Equal(t, "b-1", made.Booking.ID)
				require.True(t, made.Replayed)
				require.Equal(t, 3, made.Tries)
				require.Equal(t, []string{"k-1", "k-1", "k-1"}, s.keys)
				require.NotEmpty(t, s.bodies[0])
				require.Equal(t, []string{s.bodies[0], s.bodies[0], s.bodies[0]}, s.bodies)
			})
		})
	}
}

// A key that the client makes itself is made once per call.
func TestAKeyOfItsOwnIsKeptThroughTheRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, breaks, says(201, booking))
		made, err := c.CreateBooking(t.Context(), "", client.BookingRequest{})
		require.NoError(t, err)
		require.NotEmpty(t, made.Key)
		require.Equal(t, []string{string(made.Key), string(made.Key)}, s.keys)
		second, err := c.CreateBooking(t.Context(), "", client.BookingRequest{})
		require.NoError(t, err)
		require.NotEqual(t, made.Key, second.Key, "another call is another intention")
	})
}

// Definite refusals come back at once, as what they are.
func TestDefiniteRefusalsAreNeverSentAgain(t *testing.T) {
	t.Parallel()
	for code, status := range map[client.Code]int{
		"malformed_json": 400, client.CodeUnauthenticated: 401, client.CodeForbidden: 403, client.CodeResourceNotFound: 404,
		"body_too_large": 413, "too_many_cards": 429, client.CodeSlotUnavailable: 409, client.CodePriceChanged: 409, client.CodeKeyExpired: 409,
		client.CodeValidationFailed: 422, client.CodeKeyReused: 422,
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, refuses(status, string(code), "Location: /v1/bookings/b-0"))
				_, err := c.CreateBooking(t.Context(), "k", client.BookingRequest{})
				require.Len(t, s.sent, 1)
				p, ok := errors.AsType[*client.Problem](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, client.Problem{
					Status: status, Code: code, Detail: "because", RequestID: "r-1", Location: "/v1/bookings/b-0",
					Faults: []client.Fault{{Location: "body.end", Message: "later"}},
				}, *p)
				_, unknown := errors.AsType[*client.UnknownError](err)
				require.False(t, unknown)
			})
		})
	}
}

// A refusal speaks of its own send. After one whose answer was lost, only what the key itself decides ends the doubt.
func TestARefusalAfterALostAnswerProvesNothing(t *testing.T) {
	t.Parallel()
	for code, c := range map[client.Code]struct {
		status  int
		unknown bool
	}{
		client.CodeUnauthenticated: {401, true}, client.CodeForbidden: {403, true}, client.CodeValidationFailed: {422, true},
		client.CodeSlotUnavailable: {409, false}, client.CodePriceChanged: {409, false}, client.CodeKeyExpired: {409, false}, client.CodeKeyReused: {422, false},
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api, s := scripted(t, breaks, refuses(c.status, string(code)))
				_, err := api.CreateBooking(t.Context(), "k", client.BookingRequest{})
				require.Len(t, s.sent, 2)
				doubt, unknown := errors.AsType[*client.UnknownError](err)
				require.Equal(t, c.unknown, unknown, "%v", err)
				if unknown {
					require.Equal(t, client.Key("k"), doubt.Key)
				}
				p, ok := errors.AsType[*client.Problem](err)
				require.True(t, ok)
				require.Equal(t, code, p.Code)
			})
		})
	}
}

// At the deadline the outcome is unknown, and the error carries the key. It never comes later than the deadline, and at
// once when there is no time for another try.
func TestTheDeadlineEndsInAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer    step
		within    time.Duration
		tries     int
		atTheEnd  bool // it waits until the deadline, since its last try does
		retryHint bool
	}{
		"broken":           {breaks, 400 * time.Millisecond, 0, false, false},
		"hangs":            {hangs, 3 * time.Second, 1, true, false},
		"Retry-After":      {refuses(503, "busy", "Retry-After: 60"), 30 * time.Second, 1, false, true},
		"a date":           {says(503, "", "Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 08:50:37 GMT"), 30 * time.Second, 1, false, true},
		"its own deadline": {refuses(503, "busy", "Retry-After: 20"), 0, 3, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api, s := scripted(t, c.answer)
				ctx := t.Context()
				limit := time.Minute
				if c.within > 0 {
					limit = c.within
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.within)
					defer cancel()
				}
				began := time.Now()
				_, err := api.CreateBooking(ctx, "k-7", client.BookingRequest{})
				took := time.Since(began)
				doubt, ok := errors.AsType[*client.UnknownError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, client.Key("k-7"), doubt.Key)
				require.Equal(t, len(s.sent), doubt.Tries)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, `under key "k-7"`)
				require.LessOrEqual(t, took, limit)
				require.Equal(t, c.atTheEnd, took == limit)
				if c.tries > 0 {
					require.Len(t, s.sent, c.tries)
				}
			})
		})
	}
}

// No try comes sooner than Retry-After asks, in seconds or as a date by the server's clock, nor much later.
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][]string{
		"seconds":               {"Retry-After: 7"},
		"date, server's clock":  {"Date: Sun, 06 Nov 1994 08:49:30 GMT", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"},
		"date, our own clock":   {"Retry-After: Sat, 01 Jan 2000 00:00:07 GMT"}, // the bubble's clock begins at 2000
		"seconds and a problem": {"Retry-After: 7", "Content-Type: application/problem+json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, says(503, "", headers...), says(201, booking))
				_, err := c.CreateBooking(t.Context(), "k", client.BookingRequest{})
				require.NoError(t, err)
				require.GreaterOrEqual(t, s.sent[1], 7*time.Second)
				require.Less(t, s.sent[1], 7200*time.Millisecond)
			})
		})
	}
}

// Pauses double up to the greatest, and no two clients pause alike.
func TestBackoffDoublesWithJitter(t *testing.T) {
	t.Parallel()
	pauses := func(t *testing.T) (all []time.Duration) {
		t.Helper()
		c, s := scripted(t, breaks)
		_, err := c.CreateBooking(t.Context(), "k", client.BookingRequest{})
		require.Error(t, err)
		for i := 1; i < len(s.sent); i++ {
			all = append(all, s.sent[i]-s.sent[i-1])
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) {
		one, other := pauses(t), pauses(t)
		most := 100 * time.Millisecond
		for _, pause := range one {
			require.GreaterOrEqual(t, pause, most/2)
			require.LessOrEqual(t, pause, most)
			most = min(2*most, 5*time.Second)
		}
		require.Greater(t, len(one), 10)
		require.NotEqual(t, one, other)
	})
}

func TestCancellingEndsAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, refuses(503, "busy", "Retry-After: 30"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		began := time.Now()
		_, err := c.CreateBooking(ctx, "k", client.BookingRequest{})
		require.ErrorIs(t, err, context.Canceled)
		_, unknown := errors.AsType[*client.UnknownError](err)
		require.True(t, unknown)
		require.Equal(t, 10*time.Second, time.Since(began))

		_, err = c.CreateBooking(ctx, "k", client.BookingRequest{})
		require.ErrorContains(t, err, "nothing was sent")
		_, unknown = errors.AsType[*client.UnknownError](err)
		require.False(t, unknown)
		require.Len(t, s.sent, 1)
	})
}

// An answer is read up to a bound, and one beyond it is not asked for again.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, says(201, `{"id":"`+strings.Repeat("a", 17<<20)+`"}`))
		_, err := c.CreateBooking(t.Context(), "k", client.BookingRequest{})
		_, unknown := errors.AsType[*client.UnknownError](err)
		require.True(t, unknown)
		require.Len(t, s.sent, 1)
		require.Less(t, len(err.Error()), 1000)
	})
}

func TestReadsAreRetriedAndEndInAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, breaks, says(200, booking))
		b, err := c.GetBooking(t.Context(), "b/1?x")
		require.NoError(t, err)
		require.Equal(t, client.Held, b.Status)
		require.Empty(t, s.keys[0])

		c, _ = scripted(t, breaks)
		_, err = c.GetResource(t.Context(), "r")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, unknown := errors.AsType[*client.UnknownError](err)
		require.False(t, unknown, "a read does nothing")

		c, _ = scripted(t, refuses(404, "not_found"))
		_, err = c.ListResources(t.Context(), client.Page{After: "r-1", Limit: 2})
		p, ok := errors.AsType[*client.Problem](err)
		require.True(t, ok)
		require.Equal(t, client.CodeNotFound, p.Code)
	})
}

// WaitForBooking ends with what is settled or waits for the customer, and gives what it saw if its time ends first.
func TestWaitForBooking(t *testing.T) {
	t.Parallel()
	show := func(status, payment string) step {
		return says(200, fmt.Sprintf(`{"id":"b-1","status":%q,"payment":{"status":%q}}`, status, payment))
	}
	for _, end := range [][2]string{
		{"confirmed", "succeeded"},
		{"expired", "canceled"},
		{"cancelled", "succeeded"},
		{"failed", "refused"},
		{"held", "requires_action"},
		{"held", "declined"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := scripted(t, show("held", "pending"), breaks, show("ending", "in_doubt"), show("ending", "declined"), show(end[0], end[1]))
			b, err := c.WaitForBooking(t.Context(), "b-1")
			require.NoError(t, err)
			require.Equal(t, end[0], string(b.Status))
			require.Len(t, s.sent, 5)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, _ := scripted(t, show("held", "in_doubt"))
		b, err := c.WaitForBooking(t.Context(), "b-1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, client.PaymentInDoubt, b.Payment.Status)
	})
}

// The token is in no error and in no formatting (G9), and is handed to nobody that the API's address does not name.
func TestIncident17_TheTokenStaysSecret(t *testing.T) {
	t.Parallel()
	config := client.Config{URL: "https://holdfast.example", Token: sentinel}
	c, err := client.New(config)
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{c, *c, config, &config, config.Token} {
			require.NotContains(t, fmt.Sprintf(verb, v), sentinel)
			require.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", sentinel))
		}
	}
	for name, answer := range map[string]step{
		"broken": breaks, "hangs": hangs, "refused": refuses(401, "unauthenticated"), "redirected": says(307, "", "Location: https://thief.example/"),
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := scripted(t, answer)
			_, err := c.CreateBooking(t.Context(), "k", client.BookingRequest{})
			require.Error(t, err, name)
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), sentinel)
		})
	}
	for _, url := range []string{"", "holdfast.example", "ftp://x", "https://user:pass@x", "https://x?y", "https://x#y", "https://"} {
		_, err := client.New(client.Config{URL: url, Token: sentinel})
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "pass")
	}
	for _, token := range []client.Token{"", "a b", "a\nb", "é"} {
		_, err := client.New(client.Config{URL: "https://x", Token: token})
		require.Error(t, err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		synctest.Test(t, func(t *testing.T) {
			c, s := scripted(t, says(status, "", "Location: https://thief.example/v1/bookings"))
			_, err := c.CreateBooking(t.Context(), "k", client.BookingRequest{})
			p, ok := errors.AsType[*client.Problem](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, client.Problem{Status: status, RequestID: "r-1"}, *p)
			require.Len(t, s.sent, 1)
		})
	}
}

func TestMalformedKeysAreNotSent(t *testing.T) {
	t.Parallel()
	for _, key := range []client.Key{`"quoted"`, "a b", "é", "a\n", client.Key(strings.Repeat("a", 256))} {
		c, s := scripted(t, says(201, booking))
		_, err := c.CreateBooking(t.Context(), key, client.BookingRequest{})
		require.ErrorContains(t, err, "nothing was sent")
		require.Empty(t, s.sent)
	}
}
