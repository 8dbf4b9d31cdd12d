package console

import (
	"net/http"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/operator"
)

// requestsPage lists acts that wait for a second person, or all.
type requestsPage struct {
	Requests []operator.Request
	All      bool
}

// requestPage is one of them, with what it would do now.
type requestPage struct {
	operator.Request

	Preview   *operator.Preview // nil: it is decided, or not for this person to see
	Unread    string
	Own       bool // this person has asked for it
	MayDecide bool
}

func (c *Console) requests(v *visit) error {
	page := requestsPage{All: v.query("all") == "1"}
	var err error
	if page.Requests, err = c.config.Desk.Requests(v.r.Context(), page.All); err != nil {
		return err
	}
	v.render(http.StatusOK, "requests", "Second person", page)
	return nil
}

func (c *Console) request(v *visit) error {
	found, err := c.oneRequest(v)
	if err != nil {
		return err
	}
	page := requestPage{Request: found, Own: found.By == v.actor(), MayDecide: v.who.Can(scopeOf(found.Act))}
	if found.Status == operator.RequestOpen {
		on, amount := operator.Target{Booking: found.BookingID}, found.Money.Amount
		if found.EffectID != nil {
			on, amount = operator.Target{Effect: *found.EffectID}, 0
		}
		preview, err := c.config.Desk.Preview(v.r.Context(), found.Act, on, amount)
		if err != nil {
			page.Unread = v.explain(err).Detail
		} else {
			page.Preview = &preview
		}
	}
	v.render(http.StatusOK, "request", "Request "+short(found.ID), page)
	return nil
}

// oneRequest reads the request in a page's address.
func (c *Console) oneRequest(v *visit) (operator.Request, error) {
	id, err := uuid.Parse(v.r.PathValue("id"))
	if err != nil {
		return operator.Request{}, domain.ErrNotFound
	}
	return c.config.Desk.Request(v.r.Context(), id)
}

// decided reads which request a decision is about, and why; who decides needs the scope of the act.
func (c *Console) decided(v *visit) (operator.Request, error) {
	found, err := c.oneRequest(v)
	if err != nil {
		return found, err
	}
	if err := v.demand(scopeOf(found.Act)); err != nil {
		return found, err
	}
	if err := reasoned(v.form("reason")); err != nil {
		return found, err.with(link{"/requests/" + found.ID.String(), "The request"})
	}
	return found, nil
}

func (c *Console) approve(v *visit) error {
	found, err := c.decided(v)
	if err != nil {
		return err
	}
	result, err := c.config.Desk.Approve(v.r.Context(), found.ID, v.actor(), v.form("reason"))
	if err != nil {
		return v.explain(err).with(link{"/requests/" + found.ID.String(), "The request"})
	}
	path := "/bookings/" + result.BookingID.String()
	if result.EffectID != nil {
		path = "/effects/" + result.EffectID.String()
	}
	return v.done(result, path)
}

func (c *Console) withdraw(v *visit) error {
	found, err := c.decided(v)
	if err != nil {
		return err
	}
	if _, err := c.config.Desk.Withdraw(v.r.Context(), found.ID, v.actor(), v.form("reason")); err != nil {
		return v.explain(err).with(link{"/requests/" + found.ID.String(), "The request"})
	}
	v.say("The request is withdrawn. Nothing was done to what it was about.")
	return v.see("/requests/" + found.ID.String())
}
