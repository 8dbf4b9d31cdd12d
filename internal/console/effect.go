package console

import (
	"net/http"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/operator"
)

// effectPage is one effect with its surroundings.
type effectPage struct {
	operator.Shown

	Offers []offer
}

// offer is an act as the page offers it.
type offer struct {
	operator.Choice

	Path string
}

func (c *Console) effect(v *visit) error {
	id, err := pathID[domain.EffectID](v)
	if err != nil {
		return err
	}
	shown, err := c.config.Desk.Show(v.r.Context(), id)
	if err != nil {
		return err
	}
	page := effectPage{Shown: shown}
	for _, choice := range shown.Acts {
		if !v.who.Can(scopeOf(choice.Act)) {
			continue // what one may not do is not offered
		}
		path := "/effects/" + shown.Effect.ID.String() + "/" + string(choice.Act)
		if choice.Act == operator.Refund {
			path = "/bookings/" + shown.Effect.BookingID.String() + "/refund"
		}
		page.Offers = append(page.Offers, offer{choice, path})
	}
	v.render(http.StatusOK, "effect", effectName(shown.Effect.Kind)+" "+short(shown.Effect.ID), page)
	return nil
}

// scopeOf is the scope that an act asks for.
func scopeOf(act operator.Act) clients.Scope {
	switch act {
	case operator.Replay:
		return clients.OperatorReplay
	case operator.Republish:
		return clients.OperatorRepublish
	case operator.Resolve:
		return clients.OperatorResolve
	case operator.Refund:
		return clients.OperatorRefund
	case operator.Discard:
		return clients.OperatorDiscard
	default:
		return clients.Operator
	}
}
