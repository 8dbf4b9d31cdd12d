package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxAnswer is the longest answer that is read, in bytes.
const maxAnswer = 16 << 20

var errTooLong = errors.New("the answer is longer than 16 MiB; of a list, ask for shorter pages")

// call is one intention: what is sent, the same bytes at each try.
type call struct {
	method, path string // path with its query, escaped
	key          Key    // of a call that changes something; empty for a read
	body         []byte
	want         int                     // the status of success
	orWant       int                     // another one, or 0
	read         func(body []byte) error // takes the body of a success; an error says that it is none
}

// answer is what came back, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
	tries  int
}

// do sends a call until there is a definite answer or the context ends.
func (c *Client) do(ctx context.Context, call call) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, fmt.Errorf("nothing was sent: %w", err)
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	for tries := 1; ; tries++ {
		a, err := c.try(ctx, call)
		a.tries = tries
		if err == nil {
			return a, nil
		}
		problem, refused := errors.AsType[*Problem](err)
		if refused && !passes(problem) {
			if call.key != "" && tries > 1 && !problem.decidesTheKey() {
				return a, &UnknownError{Key: call.key, Tries: tries, Cause: err} // an earlier send may have been carried out
			}
			return a, err
		}
		if errors.Is(err, errTooLong) {
			return a, gaveUp(call, tries, err) // it would come again
		}
		if ended := c.wait(ctx, tries, a.header); ended != nil {
			return a, gaveUp(call, tries, fmt.Errorf("%w; the last try: %w", ended, err))
		}
	}
}

// passes says whether the same request may be answered otherwise later.
func passes(p *Problem) bool {
	switch p.Status {
	case http.StatusRequestTimeout:
		return true
	case http.StatusTooManyRequests:
		return p.Code != CodeTooManyCards // which no wait within a call cures
	case http.StatusConflict:
		return p.Code == CodeRequestInProgress
	default:
		return p.Status >= http.StatusInternalServerError
	}
}

func gaveUp(call call, tries int, cause error) error {
	if call.key == "" {
		return fmt.Errorf("no answer (sent: %d): %w", tries, cause)
	}
	return &UnknownError{Key: call.key, Tries: tries, Cause: cause}
}

// try sends once. Any error but a *Problem says that no whole answer of the API's came.
func (c *Client) try(ctx context.Context, call call) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.tryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, call.method, c.base+call.path, bytes.NewReader(call.body))
	if err != nil {
		return answer{}, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Authorization", c.authorization())
	request.Header.Set("User-Agent", "holdfast-go/1")
	if call.key != "" {
		// Without it, net/http does not send again by itself what may have been carried out: tries are counted here.
		request.GetBody = nil
		request.Header.Set("Idempotency-Key", string(call.key))
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	a := answer{status: response.StatusCode, header: response.Header}
	a.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return a, fmt.Errorf("the answer was cut: %w", err)
	case len(a.body) > maxAnswer:
		return a, errTooLong
	case a.status >= http.StatusMultipleChoices && a.status != call.want:
		return a, readRefusal(a)
	case a.status != call.want && a.status != call.orWant:
		return a, fmt.Errorf("status %d is no answer of the API's", a.status)
	}
	if err := call.read(a.body); err != nil {
		return a, fmt.Errorf("the answer is none of the API's: %w", err)
	}
	return a, nil
}

// wait waits before the next try. It returns an error at once if there is no time left for one.
func (c *Client) wait(ctx context.Context, tries int, header http.Header) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pause := c.backoff(tries) + retryAfter(header, time.Now())
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
		return fmt.Errorf("the next try is due in %s: %w", pause.Round(time.Millisecond), context.DeadlineExceeded)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read makes a reader of a JSON document that must hold what check asks for.
func read[T any](into *T, check func(*T) bool) func([]byte) error {
	return func(body []byte) error {
		var v T // afresh at each try: half an answer leaves nothing behind
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		if !check(&v) {
			return errors.New("it lacks what every such answer has")
		}
		*into = v
		return nil
	}
}
