package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// errBodyCut says that the client went away in the middle of its body.
var errBodyCut = errors.New("the body ended before its announced length")

// readBody reads a body of at most limit bytes, whole. Its errors are problems, save errBodyCut: what a cut body means
// depends on who reads it.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	tooLarge := newProblem(CodeBodyTooLarge, fmt.Sprintf("A body of more than %d KiB is not read.", limit>>10))
	if r.ContentLength > limit {
		return nil, tooLarge.with("Connection", "close") // rather than reading the rest
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	var network net.Error
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &over):
		return nil, tooLarge
	case errors.As(err, &network) && network.Timeout():
		return nil, newProblem(CodeRequestTimeout, "The body did not arrive in time.").with("Connection", "close")
	default:
		return nil, errBodyCut
	}
}
