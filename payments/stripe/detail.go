package stripe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	sdk "github.com/stripe/stripe-go/v76"

	"holdfast/payments"
)

// detail says what happened in words of our own. Nothing of the provider's goes in but status and codes: its messages,
// and the SDK's errors, hold bodies and client secrets.
func detail(out payments.Outcome, a answer) string {
	var b strings.Builder
	if a.status == 0 {
		b.WriteString(silence(a.err))
		if a.written == 0 {
			b.WriteString("; nothing was sent")
		}
	} else {
		fmt.Fprintf(&b, "answered %d", a.status)
		for _, code := range []string{out.Code, out.DeclineCode} {
			if code != "" {
				b.WriteString(" " + code)
			}
		}
		var refusal *sdk.Error
		if out.Class == payments.Unknown && (!errors.As(a.err, &refusal) || !fromStripe(refusal)) {
			b.WriteString(" with nothing that can be understood")
		}
		if out.Replayed {
			b.WriteString("; the stored answer of an earlier send")
		}
	}
	if a.written > 1 {
		fmt.Fprintf(&b, "; net/http sent it %d times", a.written)
	}
	return b.String()
}

// silence names the reason why there is no answer.
func silence(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "no answer: we stopped waiting"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer: timed out"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "no answer: connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "no answer: connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "no answer: connection closed"
	default:
		return "no answer: the exchange failed"
	}
}
