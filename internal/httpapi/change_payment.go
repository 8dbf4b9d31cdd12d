package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"holdfast/domain"
	"holdfast/payments"
)

type changePaymentInput struct {
	ID      string `path:"id" doc:"The booking's id."`
	RawBody []byte `contentType:"application/json"`
}

// paymentRequest is the body, as the OpenAPI document shows it.
type paymentRequest struct {
	PaymentMethod string `json:"payment_method" minLength:"1" maxLength:"255" pattern:"^[!-~]+$" doc:"The payment provider's token for the other card. A card number is refused." example:"pm_card_mastercard"`
}

func decodePayment(body []byte) (string, error) {
	value, err := parseJSON(body)
	if err != nil {
		return "", err
	}
	var found faults
	m := readObject(value, "", &found)
	method := m.text("payment_method", 1, maxPaymentMethod, visibleASCII())
	m.end()
	if len(found) > 0 {
		return "", found
	}
	return method, nil
}

// changePayment takes another card for a booking whose card was declined. What was decided is written byte for byte as it
// was stored.
func (s *Server) changePayment(ctx context.Context, x *exchange, in *changePaymentInput) (*decidedOutput, error) {
	id, err := domain.ParseID[domain.BookingID](in.ID)
	if err != nil {
		return nil, domain.ErrNotFound
	}
	x.booking = id.String()
	method, err := decodePayment(in.RawBody)
	if err != nil {
		return nil, err
	}
	decided, err := s.config.Desk.ChangeCard(ctx, x.ask(id), method, showCardChange)
	var tooMany *payments.TooManyCardsError
	if errors.As(err, &tooMany) {
		return nil, tooManyCards(tooMany)
	}
	if err != nil {
		return nil, err
	}
	return x.decided(decided), nil
}

func showCardChange(v payments.View, taken bool) (int, []byte, error) {
	if taken {
		body, err := json.Marshal(showBooking(v))
		return http.StatusAccepted, body, err
	}
	detail := "This booking is " + string(v.Booking.Status) + " and its payment " + string(v.Payment.Status) + "."
	if v.Booking.Status == domain.BookingHeld && v.Payment.Status == domain.PaymentDeclined {
		detail = "This booking's hold ended at " + v.Booking.HoldExpiresAt.UTC().Format(time.RFC3339) + "."
	}
	p := newProblem(CodePaymentNotDeclined, "Another card is taken while the booking is held and its card was declined. "+
		detail+" Look at it again, and send another card with a new key.")
	body, err := json.Marshal(p)
	return p.Status, body, err
}

func tooManyCards(e *payments.TooManyCardsError) *Problem {
	if e.RetryAfter == 0 {
		return newProblem(CodeTooManyCards, "No more cards are taken for this booking. When its hold ends, the slot becomes free, and can be booked again.")
	}
	return newProblem(CodeTooManyCards, "Too many other cards were tried lately. Send the same request again later.").
		with("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
}
