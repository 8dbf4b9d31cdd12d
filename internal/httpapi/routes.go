package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"holdfast/internal/clients"
)

// register lists the whole API: each operation with what it asks of its caller, in the order of asking.
func (s *Server) register() error {
	api := humago.New(s.mux, s.describe())

	operation(s, api, describeCreateBooking(s.gate(s.authenticated, allowed(clients.BookingsWrite), keyed, withJSON)), s.createBooking)
	operation(s, api, describeListBookings(s.gate(s.authenticated, allowed(clients.BookingsRead))), s.listBookings)
	operation(s, api, describeGetBooking(s.gate(s.authenticated, allowed(clients.BookingsRead), s.preferring)), s.getBooking)
	operation(s, api, describeStreamBooking(s.gate(s.authenticated, allowed(clients.BookingsRead))), s.streamBooking)
	operation(s, api, describeChangePayment(s.gate(s.authenticated, allowed(clients.BookingsWrite), keyed, withJSON)), s.changePayment)
	operation(s, api, describeCancelBooking(s.gate(s.authenticated, allowed(clients.BookingsWrite), keyed, withJSON)), s.cancelBooking)
	operation(s, api, describePreviewCancellation(s.gate(s.authenticated, allowed(clients.BookingsRead))), s.previewCancellation)
	operation(s, api, describeRequestRefund(s.gate(s.authenticated, allowedAny(clients.OperatorRefund, clients.Finance), keyed, withJSON)), s.requestRefund)
	operation(s, api, describeListRefunds(s.gate(s.authenticated, allowedAny(clients.OperatorRead, clients.Finance))), s.listRefunds)
	s.registerOperators(api)
	s.registerFinance(api)
	operation(s, api, describeListResources(s.gate(s.authenticated, allowed(clients.BookingsRead))), s.listResources)
	operation(s, api, describeGetResource(s.gate(s.authenticated, allowed(clients.BookingsRead))), s.getResource)
	operation(s, api, describeWebhook(s.gate(s.withDelivery)), s.receiveWebhook)
	operation(s, api, describeHealth(), s.healthz)
	operation(s, api, describeReady(), s.readyz)

	document, err := finish(api.OpenAPI())
	if err != nil {
		return err
	}
	s.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	})
	s.registerDocs()
	if s.config.Console != nil {
		s.mux.Handle("/console", s.config.Console)
		s.mux.Handle("/console/", s.config.Console)
	}
	return nil
}

// operation registers a handler. Its errors become problems here, and nowhere else.
func operation[I, O any](s *Server, api huma.API, op huma.Operation, handler func(context.Context, *exchange, *I) (*O, error)) {
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		x := exchangeOf(ctx)
		out, err := handler(ctx, x, in)
		if err != nil {
			p := s.problem(err)
			x.note(p, err)
			return nil, p
		}
		return out, nil
	})
}

// humaConfig keeps of huma's defaults what the contract allows: JSON only, no pages that load code from elsewhere, no
// $schema members, no query parameter that is silently left out of the idempotency fingerprint.
func humaConfig(document *huma.OpenAPI) huma.Config {
	json := huma.Format{Marshal: marshal, Unmarshal: unmarshal}
	return huma.Config{
		OpenAPI:                      document,
		Formats:                      map[string]huma.Format{"application/json": json, problemContentType: json},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{problemOfHuma},
	}
}

func marshal(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func unmarshal([]byte, any) error { return errors.New("bodies are read by parseJSON") }

// problemOfHuma replaces what huma itself refuses with, for this API alone: its error constructor is a global. All that
// is left for huma to refuse is the query: a parameter that no operation has, or a limit that is none.
func problemOfHuma(ctx huma.Context, _ string, v any) (any, error) {
	refusal, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	if refusal.Status != http.StatusUnprocessableEntity {
		panic(fmt.Errorf("huma refused a request: %w", refusal)) // a bug of ours, and answered as one
	}
	p := newProblem(CodeValidationFailed, "The query is not valid.")
	for _, e := range refusal.Errors[:min(len(refusal.Errors), maxFaults)] {
		p.Errors = append(p.Errors, Fault{Location: shorten(strings.ToValidUTF8(e.Location, "\uFFFD")), Message: e.Message})
	}
	exchangeOf(ctx.Context()).note(p, refusal)
	return p, nil
}
