package stripesim

import (
	"net/http"
	"strconv"
	"strings"
)

const (
	faultRefuse    = "refuse"
	faultSearchLag = "search_lag"
)

// When a fault holds the execution back.
const (
	waitGone    = "gone"    // until the client has left; the key is in flight, the object free
	waitHolding = "holding" // for delay_ms, holding the object's lock
)

// faultSpec is what a fault's name means. The zero value means "not executed, not stored".
type faultSpec struct {
	executes bool // the operation runs
	stored   bool // the faulty answer is what the key remembers
	partial  bool // the operation runs half-way: a charge is left pending
	delays   bool // delay_ms postpones the answer
	waits    string
	wire     string
	// answer turns the true answer (the zero answer if not executed) into what is sent.
	answer func(*call, answer) answer
	// only restricts the requests that the fault can hit at all.
	only func(*call) bool
}

// disturb applies the fault that hit the call, if any, to its answer.
func (c *call) disturb(a answer) answer {
	if c.fault == nil {
		return a
	}
	if c.spec.answer != nil {
		faulty := c.spec.answer(c, a)
		faulty.original, faulty.replayed = a.original, a.replayed
		a = faulty
	}
	if c.spec.wire != "" {
		a.wire = c.spec.wire
	}
	if c.fault.ShouldRetry != nil {
		a.shouldRetry = strconv.FormatBool(*c.fault.ShouldRetry)
	}
	return a
}

// faultSpecs is the table of faults.
func faultSpecs() map[string]faultSpec {
	lists := func(c *call) bool { return strings.HasSuffix(c.operation(), ".list") }
	writes := (*call).writes
	specs := map[string]faultSpec{
		faultRefuse:    {wire: wireReset},
		"reset_before": {wire: wireReset, delays: true},
		"reset_after":  {executes: true, wire: wireReset, delays: true},
		"reset_after_reused": {
			executes: true, wire: wireReset, delays: true,
			only: func(c *call) bool { return c.reused },
		},
		"hang_after": {executes: true, wire: wireHang},
		"slow":       {executes: true, waits: waitGone},
		"delay":      {executes: true, waits: waitHolding},

		"error_500_before": {stored: true, answer: failing(500), delays: true},
		"error_500_after":  {executes: true, stored: true, answer: failing(500), delays: true},
		"partial_500":      {executes: true, stored: true, partial: true, answer: failing(500), only: writes},

		"bad_body": {executes: true, answer: garbled, delays: true},

		"in_use_409":       {answer: refusing(keyInUse), delays: true, only: writes},
		"lock_timeout_429": {answer: refusing(lockTimeout), delays: true, only: writes},
		"rate_limit_429":   {answer: refusing(rateLimited), delays: true},
		"unauthorized_401": {answer: refusing(unauthorized), delays: true},
		"list_page_error":  {answer: failing(500), delays: true, only: lists},
		"list_page_empty":  {executes: true, answer: emptyPage, delays: true, only: lists},
		faultSearchLag: {
			executes: true,
			only:     func(c *call) bool { return strings.HasSuffix(c.operation(), ".search") },
		},
		"html_502":        {answer: html, delays: true},
		"html_502_after":  {executes: true, answer: html, delays: true},
		"error_424":       {answer: failing(424), delays: true},
		"error_424_after": {executes: true, answer: failing(424), delays: true},
		"error_502":       {answer: failing(502), delays: true},
		"error_502_after": {executes: true, answer: failing(502), delays: true},
		"error_503":       {answer: failing(503), delays: true},
		"error_503_after": {executes: true, answer: failing(503), delays: true},
		"error_504":       {answer: failing(504), delays: true},
		"error_504_after": {executes: true, answer: failing(504), delays: true},
	}
	return specs
}

func failing(status int) func(*call, answer) answer {
	return func(c *call, _ answer) answer { return c.fail(serverError(status)) }
}

func refusing(err func() *apiError) func(*call, answer) answer {
	return func(c *call, _ answer) answer { return c.fail(err()) }
}

func rateLimited() *apiError {
	return failure(http.StatusTooManyRequests, typeInvalid, "rate_limit", "Too many requests. Slow down.")
}

func unauthorized() *apiError {
	return failure(http.StatusUnauthorized, typeInvalid, "", "The API key is not accepted.")
}

// html is a proxy's page, which no Stripe library can parse.
func html(*call, answer) answer {
	return answer{
		status: http.StatusBadGateway, contentType: "text/html",
		body: []byte("<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"),
	}
}

// garbled spoils an answer whose operation ran.
func garbled(c *call, a answer) answer {
	switch c.fault.Body {
	case "empty":
		a.body = nil
	case "truncated":
		a.wire = wireTruncate
	case "no_error":
		a.status, a.body = http.StatusInternalServerError, []byte("{}\n")
	default:
		a.body = []byte("{\"id\": \"" + c.requestID + "\n")
	}
	return a
}

func emptyPage(c *call, _ answer) answer {
	return c.succeed(object{"object": "list", "data": []object{}, "has_more": false, "url": c.path})
}
