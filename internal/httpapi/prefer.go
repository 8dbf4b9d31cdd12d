package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/payments"
)

const (
	longestWait = 10 * time.Second
	waitMargin  = 4 * time.Second // of the request's time, for all but waiting; asking the provider for next_action is most of it
)

// preferring reads for how long the client would rather wait for news than have an answer at once. A preference that
// cannot be read or kept is ignored (RFC 7240).
func (s *Server) preferring(_ http.ResponseWriter, r *http.Request, x *exchange) error {
	longest := min(longestWait, s.config.RequestTimeout-waitMargin).Truncate(time.Second)
	if wait, ok := preferredWait(r.Header.Values("Prefer")); ok && longest > 0 {
		wait = min(wait, longest)
		x.wait = &wait
	}
	return nil
}

// preferredWait takes the first wait out of Prefer headers, such as: respond-async, wait=10; of="no interest".
func preferredWait(headers []string) (time.Duration, bool) {
	for _, preference := range unquotedFields(strings.Join(headers, ","), ',') {
		name, value, _ := strings.Cut(unquotedFields(preference, ';')[0], "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "wait") {
			continue
		}
		value = strings.Trim(value, " \t")
		if value == "" || strings.Trim(value, "0123456789") != "" {
			return 0, false
		}
		seconds, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			return longestWait, true // more than can be counted
		}
		return time.Duration(seconds) * time.Second, true
	}
	return 0, false
}

// unquotedFields splits at a separator that is not inside a quoted string. There is always a first field.
func unquotedFields(s string, separator byte) []string {
	var fields []string
	begin, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && s[i] == separator:
			fields = append(fields, s[begin:i])
			begin = i + 1
		}
	}
	return append(fields, s[begin:])
}

// await returns the booking as soon as it is final or its customer has to act, or else as it stands when the time to
// wait is over or the process is about to stop. It holds no connection to the database meanwhile.
func (s *Server) await(ctx context.Context, x *exchange, view payments.View) (payments.View, error) {
	f := s.watch.follow(ctx, view.Booking.ID, view.Booking.EventSeq)
	defer s.watch.leave(f)
	end := time.NewTimer(*x.wait)
	defer end.Stop()
	for over := false; !over && !decided(view); {
		select {
		case <-f.woken:
		case <-end.C:
			over = true
		case <-s.stopping:
			over = true
		case <-ctx.Done():
			return view, ctx.Err()
		}
		var err error
		if view, err = s.config.Payments.View(ctx, x.principal.ClientID, view.Booking.ID); err != nil {
			return view, err
		}
		s.watch.learned(f, view.Booking.EventSeq)
	}
	return view, nil
}

// decided says that waiting brings nothing: the booking is final, or it is the customer's turn.
func decided(v payments.View) bool {
	turn := v.Payment.Status == domain.PaymentRequiresAction || v.Payment.Status == domain.PaymentDeclined
	return v.Booking.Status.Final() || v.Booking.Status == domain.BookingHeld && turn
}
