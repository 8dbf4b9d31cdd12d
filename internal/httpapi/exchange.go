package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"holdfast/internal/clients"
)

// exchange is one request and its answer, as far as they concern more than one place: what the gate has found out, and
// what the log line tells. It is filled on the way.
type exchange struct {
	id    string // of the request; also in the answer
	route string // template, such as "POST /v1/bookings"; empty if there is none

	principal clients.Principal
	key       string         // never logged
	accept    string         // what the client wants to have, as it says it
	wait      *time.Duration // that the client prefers to an answer at once; nil: none

	open    context.Context          // the request's, without its time-out: it ends when the client leaves
	control *http.ResponseController // of the connection's deadlines

	booking    string
	effect     string
	replayed   bool
	problem    Code
	cause      error  // of a 5xx
	unprompted error  // why a booking is shown without its next action
	signature  string // of a webhook's delivery; never logged
	event      string // the provider's id of it
}

type exchangeKey struct{}

// exchangeOf returns the exchange that ctx belongs to.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{} // a handler called without the server around it
}

// note keeps a refusal for the log.
func (x *exchange) note(p *Problem, cause error) {
	x.problem = p.Code
	if p.Status >= http.StatusInternalServerError {
		x.cause = cause
	}
}

// log writes the one line of this request: what was asked, by whom, and what became of it. Only what is listed here is
// ever logged.
func (s *Server) log(ctx context.Context, method string, x *exchange, status int, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("method", known(method)), slog.String("route", x.route), slog.Int("status", status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.String("request_id", x.id),
	}
	if x.principal.Name != "" {
		attrs = append(attrs, slog.String("client_id", x.principal.ClientID.String()))
	}
	if x.booking != "" {
		attrs = append(attrs, slog.String("booking_id", x.booking))
	}
	if x.effect != "" {
		attrs = append(attrs, slog.String("effect_id", x.effect))
	}
	if x.event != "" {
		attrs = append(attrs, slog.String("event_id", x.event))
	}
	if x.replayed {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	if x.problem != "" {
		attrs = append(attrs, slog.String("problem", string(x.problem)))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("error", x.cause.Error()))
	}
	if x.unprompted != nil {
		attrs = append(attrs, slog.String("next_action_error", x.unprompted.Error()))
	}
	s.logger.LogAttrs(ctx, s.level(x, status), "request", attrs...)
}

func (s *Server) level(x *exchange, status int) slog.Level {
	switch {
	case x.route == routeHealth || x.route == routeReady: // asked every few seconds
		return slog.LevelDebug
	case status == http.StatusInternalServerError:
		return slog.LevelError
	case status > http.StatusInternalServerError, x.unprompted != nil:
		return slog.LevelWarn
	case x.route == routeWebhook && status >= http.StatusBadRequest: // a wrong secret, a wrong clock, or somebody else
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// known keeps a method that somebody made up out of logs and metrics.
func known(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	default:
		return "OTHER"
	}
}
