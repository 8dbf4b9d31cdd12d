package stripesim

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
)

const (
	maxBody      = 1 << 20
	maxKeyLength = 255
)

// call is one request to the API, from arrival to answer.
type call struct {
	requestID string
	method    string
	path      string
	id        string // the object the path names
	about     string // the intent or charge that a refund names, whose writes it serialises with
	key       string // Idempotency-Key
	bearer    string
	params    params
	malformed *apiError // why params could not be read
	host      string    // that the client asked
	file      []byte    // what is answered instead of JSON
	reused    bool      // the connection carried an earlier request
	route     *route    // nil: no such URL
	fault     *Fault    // what was fired at this request, if anything
	spec      faultSpec
	entry     *JournalEntry // guarded by world.mu
}

// receive reads a request whole. Only then does net/http watch the connection, so that the request's context ends with the client.
func (s *Simulator) receive(r *http.Request) *call {
	c := &call{
		requestID: newID("req_", 14),
		method:    r.Method,
		path:      path.Clean(r.URL.Path), // some libraries send //v1
		key:       r.Header.Get("Idempotency-Key"),
		bearer:    secretKey(r),
		params:    params{},
		host:      r.Host,
		reused:    s.conns.reused(r),
	}
	c.route, c.id = s.match(c.method, c.path)
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errors.New("the body is larger than a megabyte")
	}
	if err == nil {
		c.params, err = parseParams(r.URL.RawQuery + "&" + string(body))
	}
	if kind := r.Header.Get("Content-Type"); len(body) > 0 && strings.HasPrefix(kind, "application/json") {
		err = errors.New("the body is JSON, and Stripe's API takes application/x-www-form-urlencoded")
	}
	if err != nil {
		c.params, c.malformed = params{}, invalid("", "", "The parameters cannot be read: %v.", err)
	}
	return c
}

// secretKey reads Bearer sk_test_…, or the same key as the user of basic authentication.
func secretKey(r *http.Request) string {
	if user, _, basic := r.BasicAuth(); basic {
		return user
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return bearer
}

func (c *call) authenticate() *apiError {
	switch {
	case c.bearer == "":
		return failure(http.StatusUnauthorized, typeInvalid, "", "No API key was given: send Authorization: Bearer sk_test_….")
	case !strings.HasPrefix(c.bearer, "sk_test_") && !strings.HasPrefix(c.bearer, "rk_test_"):
		return failure(http.StatusUnauthorized, typeInvalid, "", "Only test keys (sk_test_…) are known here.")
	}
	return nil
}

// operation is the name under which faults and the journal know the call.
func (c *call) operation() string {
	if c.route == nil {
		return "unknown"
	}
	return c.route.operation
}

func (c *call) writes() bool { return c.method == http.MethodPost }

// answer is what a request gets: status and body are what a key remembers, the rest belongs to this one delivery.
type answer struct {
	status      int
	body        []byte
	contentType string // default application/json
	replayed    bool
	original    string // the request that executed, for keyed writes
	shouldRetry string // "", "true" or "false"
	wire        string // one of the wire constants
}

// How an answer travels.
const (
	wireSend     = ""
	wireReset    = "reset"    // the connection is reset instead
	wireHang     = "hang"     // nothing is sent until the client leaves
	wireTruncate = "truncate" // half the body, then a reset
)

func (c *call) succeed(o object) answer {
	if c.file != nil {
		return answer{status: http.StatusOK, body: c.file, contentType: "text/csv"}
	}
	return answer{status: http.StatusOK, body: encode(o)}
}

func (c *call) fail(e *apiError) answer {
	return answer{status: e.status, body: encode(e.envelope(c.requestID))}
}

// answer picks between the two results of an operation.
func (c *call) answer(o object, e *apiError) answer {
	if e != nil {
		return c.fail(e)
	}
	return c.succeed(o)
}

func encode(o object) []byte {
	body, _ := json.MarshalIndent(o, "", "  ") // strings, numbers and maps: cannot fail
	return append(body, '\n')
}
