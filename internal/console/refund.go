package console

import (
	"net/http"
	"strconv"

	"holdfast/domain"
	"holdfast/internal/operator"
)

// previewRefund shows what giving money back would do: all that is left, or the amount asked for.
func (c *Console) previewRefund(v *visit) error {
	id, err := pathID[domain.BookingID](v)
	if err != nil {
		return err
	}
	path := "/bookings/" + id.String()
	page := actPage{Back: path, Post: path + "/refund", Amount: v.query("amount")}
	if page.Amount != "" {
		line, err := c.config.Desk.Timeline(v.r.Context(), id)
		if err != nil {
			return err
		}
		code := line.Booking.Total.Currency
		page.Minor, err = minor(page.Amount, code)
		if err != nil || page.Minor <= 0 {
			return refusal(http.StatusUnprocessableEntity, "This is no amount",
				"Write how much goes back in "+code+", such as "+money(domain.Money{Amount: 1250, Currency: code})+" without the currency. Nothing was done.",
				link{path + "/refund", "The refund"})
		}
	}
	page.Preview, err = c.config.Desk.Preview(v.r.Context(), operator.Refund, operator.Target{Booking: id}, page.Minor)
	if err != nil {
		return err
	}
	v.showAct(http.StatusOK, page)
	return nil
}

// doRefund gives the money back, or asks for the second person.
func (c *Console) doRefund(v *visit) error {
	id, err := pathID[domain.BookingID](v)
	if err != nil {
		return err
	}
	path := "/bookings/" + id.String()
	back := []link{{path, "The booking"}, {path + "/refund", "Preview again"}}
	amount, err := strconv.ParseInt(v.form("minor"), 10, 64)
	if err != nil || amount < 0 {
		return refusal(http.StatusUnprocessableEntity, "This is no amount", "The form does not say how much goes back. Nothing was done; preview it again.", back...)
	}
	order := operator.Order{
		Act: operator.Refund, On: operator.Target{Booking: id}, By: v.actor(), Reason: v.form("reason"), Seen: v.form("seen"), Amount: amount,
	}
	if err := reasoned(order.Reason); err != nil {
		return err.with(back...)
	}
	result, err := c.config.Desk.Do(v.r.Context(), order)
	if err != nil {
		return v.explain(err).with(back...)
	}
	return v.done(result, path)
}
