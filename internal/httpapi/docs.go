package httpapi

import (
	_ "embed"
	"net/http"
)

// The documentation page, its script and its style come from this binary: no other host is asked for anything.
var (
	//go:embed docs/index.html
	docsPage []byte
	//go:embed docs/docs.js
	docsScript []byte
	//go:embed docs/docs.css
	docsStyle []byte
)

const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

func (s *Server) registerDocs() {
	for pattern, file := range map[string]struct {
		contentType string
		content     []byte
	}{
		"GET /docs":          {"text/html; charset=utf-8", docsPage},
		"GET /docs/docs.js":  {"text/javascript; charset=utf-8", docsScript},
		"GET /docs/docs.css": {"text/css; charset=utf-8", docsStyle},
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file.contentType)
			w.Header().Set("Content-Security-Policy", docsPolicy)
			_, _ = w.Write(file.content)
		})
	}
}
