package console

import (
	"net/http"
	"net/url"

	"holdfast/domain"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// auditPage is what was done by hand.
type auditPage struct {
	operator.AuditPage

	Booking, Actor, Action string
	Next                   string
	First                  bool
}

func (c *Console) audit(v *visit) error {
	page := auditPage{Booking: v.query("booking"), Actor: v.query("actor"), Action: v.query("action"), First: v.query("after") == ""}
	f := operator.AuditFilter{Actor: outbox.Actor(page.Actor), Action: page.Action, Limit: pageRows, After: v.query("after")}
	if page.Booking != "" {
		id, err := domain.ParseID[domain.BookingID](page.Booking)
		if err != nil {
			return refusal(http.StatusBadRequest, "The filter is not understood", "A booking is chosen by its id: 36 characters, in lower case.", link{"/audit", "Audit"})
		}
		f.Booking = id
	}
	found, err := c.config.Desk.Audit(v.r.Context(), f)
	if err != nil {
		return v.explain(err).with(link{"/audit", "Audit"})
	}
	page.AuditPage = found
	if found.Next != "" {
		next := url.Values{"after": {found.Next}}
		for name, value := range map[string]string{"booking": page.Booking, "actor": page.Actor, "action": page.Action} {
			if value != "" {
				next.Set(name, value)
			}
		}
		page.Next = "/audit?" + next.Encode()
	}
	v.render(http.StatusOK, "audit", "Audit", page)
	return nil
}
