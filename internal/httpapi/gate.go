package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"holdfast/domain"
	"holdfast/internal/clients"
)

// maxBody is the longest body that is read, in bytes.
const maxBody = 64 << 10

// Authenticator finds out who holds a token.
type Authenticator interface {
	Authenticate(ctx context.Context, token domain.Secret) (clients.Principal, error)
}

// check is one step of the gate. It returns the refusal, or nil to let the request pass.
type check func(w http.ResponseWriter, r *http.Request, x *exchange) error

// gate puts checks before an operation, in this order, and one of its query after them.
func (s *Server) gate(checks ...check) huma.Middlewares {
	return huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		for _, passes := range checks {
			if err := passes(w, r, exchangeOf(r.Context())); err != nil {
				s.refuse(w, r, err)
				return
			}
		}
		if err := plain(r.URL.RawQuery, ctx.Operation()); err != nil {
			s.refuse(w, r, err)
			return
		}
		next(ctx)
	}}
}

// plain refuses a query that says less than it seems to: huma passes over what cannot be decoded, and takes the first of
// two values. A filter or a cursor that is lost would show everything, or the first page for ever.
func plain(query string, op *huma.Operation) error {
	if op.SkipValidateParams {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return newProblem(CodeValidationFailed, "The query is not valid.",
			Fault{Location: "query", Message: "want name=value pairs with & between them, and every other %, & and ; written as %25, %26 and %3B"})
	}
	for _, p := range op.Parameters {
		if p.In == "query" && len(values[p.Name]) > 1 && (p.Explode == nil || !*p.Explode) {
			return invalidQuery(p.Name, "is given more than once")
		}
	}
	return nil
}

// authenticated asks for a valid token.
func (s *Server) authenticated(_ http.ResponseWriter, r *http.Request, x *exchange) error {
	token, ok := bearer(r.Header)
	if !ok {
		return clients.ErrUnauthenticated
	}
	principal, err := s.config.Clients.Authenticate(r.Context(), token)
	if err != nil {
		return err
	}
	x.principal = principal
	return nil
}

// bearer takes the token out of the one Authorization header. Two of them could be two callers.
func bearer(h http.Header) (domain.Secret, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return domain.Secret(strings.TrimSpace(token)), ok && strings.EqualFold(scheme, "Bearer")
}

// allowed asks for a scope.
func allowed(scope clients.Scope) check {
	return func(_ http.ResponseWriter, _ *http.Request, x *exchange) error {
		if x.principal.Can(scope) {
			return nil
		}
		return newProblem(CodeForbidden, "The token needs the scope "+string(scope)+".").
			with("WWW-Authenticate", `Bearer realm="holdfast", error="insufficient_scope", scope="`+string(scope)+`"`)
	}
}

// allowedAny asks for one of several scopes.
func allowedAny(scopes ...clients.Scope) check {
	return func(_ http.ResponseWriter, _ *http.Request, x *exchange) error {
		if slices.ContainsFunc(scopes, x.principal.Can) {
			return nil
		}
		names := make([]string, 0, len(scopes))
		for _, scope := range scopes {
			names = append(names, string(scope))
		}
		return newProblem(CodeForbidden, "The token needs one of the scopes "+strings.Join(names, " and ")+".").
			with("WWW-Authenticate", `Bearer realm="holdfast", error="insufficient_scope", scope="`+string(scopes[0])+`"`)
	}
}

// keyed asks for one idempotency key. Two headers would be two keys for one intention.
func keyed(_ http.ResponseWriter, r *http.Request, x *exchange) (err error) {
	values := r.Header.Values("Idempotency-Key")
	switch len(values) {
	case 0:
		return domain.ErrKeyMissing
	case 1:
		x.key, err = domain.ParseKey(values[0])
		return err
	default:
		return domain.ErrKeyMalformed
	}
}

// withJSON reads the whole body, which must say that it is JSON and must not be too long, whether it announces its
// length or not.
func withJSON(w http.ResponseWriter, r *http.Request, _ *exchange) error {
	if !saysJSON(r.Header) {
		return newProblem(CodeUnsupportedMediaType, "Send the body as Content-Type: application/json, in UTF-8 and not compressed.")
	}
	body, err := readBody(w, r, maxBody)
	if errors.Is(err, errBodyCut) {
		return malformed(errBodyCut.Error())
	}
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return malformed("the body is empty")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func saysJSON(h http.Header) bool {
	types := h.Values("Content-Type")
	if len(types) != 1 || h.Get("Content-Encoding") != "" {
		return false
	}
	mediaType, params, err := mime.ParseMediaType(types[0])
	charset, given := params["charset"]
	return err == nil && mediaType == "application/json" && (!given || strings.EqualFold(charset, "utf-8"))
}
