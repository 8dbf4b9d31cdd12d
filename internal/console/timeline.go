package console

import (
	"net/http"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/operator"
)

// timelinePage is all that has happened to a booking.
type timelinePage struct {
	operator.Timeline

	MayRefund bool
}

func (c *Console) timeline(v *visit) error {
	id, err := pathID[domain.BookingID](v)
	if err != nil {
		return err
	}
	line, err := c.config.Desk.Timeline(v.r.Context(), id)
	if err != nil {
		return err
	}
	v.render(http.StatusOK, "timeline", "Booking "+short(id), timelinePage{line, v.who.Can(clients.OperatorRefund)})
	return nil
}

// pathID reads the id in a page's address. One that cannot be is one that does not exist.
func pathID[T ~struct{ uuid.UUID }](v *visit) (T, error) {
	id, err := domain.ParseID[T](v.r.PathValue("id"))
	if err != nil {
		return id, domain.ErrNotFound
	}
	return id, nil
}
