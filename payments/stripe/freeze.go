package stripe

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stripe/stripe-go/v76/form"

	"holdfast/domain"
	"holdfast/payments"
)

// Metadata names under which our ids travel with an intent, and by which a lost one is found again.
const (
	metadataBooking = "booking_id"
	metadataPayment = "payment_id"
	metadataRefund  = "refund_id"
	metadataOrdinal = "refund_ordinal"
)

// Freeze writes down the parameters of a send. If Stripe cannot take the amount (an unknown currency, a fraction that it
// does not count), the parameters have none, and Send rejects them.
func (g *Gateway) Freeze(op domain.Operation, c payments.Charge) payments.Params {
	switch op {
	case domain.OpCreate:
	case domain.OpUpdate:
		return payments.Params{"payment_method": c.PaymentMethod}
	case domain.OpConfirm: // without a method: a decline cleared the one on the intent, so that a stray confirm fails instead of charging
		if g.returnTo != "" {
			return payments.Params{"return_url": g.returnTo}
		}
		return payments.Params{}
	case domain.OpCancel:
		return payments.Params{}
	case domain.OpRefund: // FreezeRefund's
		return payments.Params{}
	default:
		return payments.Params{}
	}
	p := payments.Params{
		"currency":       strings.ToLower(c.Total.Currency),
		"payment_method": c.PaymentMethod,
		// Without the next line Stripe offers every method of the account, and a confirm then asks for a return URL.
		"payment_method_types[0]": "card",
		// Said aloud, since later versions default to one whose balance transaction comes late.
		"capture_method":                    "automatic",
		"metadata[" + metadataBooking + "]": c.BookingID.String(),
		"metadata[" + metadataPayment + "]": c.PaymentID.String(),
	}
	if amount, err := toProvider(c.Total); err == nil {
		p["amount"] = strconv.FormatInt(amount, 10)
	}
	return p
}

// FreezeRefund writes down the parameters of a refund, with an amount or without as Freeze does.
func (g *Gateway) FreezeRefund(r payments.Refund) payments.Params {
	p := payments.Params{
		"payment_intent":                    r.IntentID,
		"metadata[" + metadataBooking + "]": r.BookingID.String(),
		"metadata[" + metadataPayment + "]": r.PaymentID.String(),
		"metadata[" + metadataRefund + "]":  r.ID.String(),
		"metadata[" + metadataOrdinal + "]": strconv.Itoa(r.Ordinal),
	}
	if r.Category != "" {
		p["reason"] = r.Category
	}
	if amount, err := toProvider(r.Total); err == nil {
		p["amount"] = strconv.FormatInt(amount, 10)
	}
	return p
}

// encode puts the parameters in one order, so that every send of a key has equal bytes.
func encode(p payments.Params) *form.Values {
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	values := &form.Values{}
	for _, name := range names {
		values.Add(name, p[name])
	}
	return values
}
