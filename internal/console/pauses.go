package console

import (
	"net/http"
	"slices"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/operator"
	"holdfast/outbox"
)

// pausesPage shows the switches.
type pausesPage struct {
	Kinds []pauseRow
	May   bool
}

type pauseRow struct {
	Kind    domain.EffectKind
	Paused  *outbox.Pausing // nil: it goes on
	Waiting operator.Backlog
	Means   string
}

// pausable are the kinds that can be paused, with what that means.
func pausable() map[domain.EffectKind]string {
	return map[domain.EffectKind]string{
		domain.EffectCharge: "No card is charged. Bookings are still taken and held; one whose hold ends before it is charged expires, and its slot is free again. " +
			"Cancels, reads and refunds go on.",
		domain.EffectPublish: "No event goes to the stream. Bookings, charges and refunds go on; events wait in order and lose nothing.",
	}
}

func (c *Console) pauses(v *visit) error {
	seen, err := c.config.Desk.Overview(v.r.Context())
	if err != nil {
		return err
	}
	page := pausesPage{May: v.who.Can(clients.OperatorPause)}
	for _, kind := range kinds() {
		means, ok := pausable()[kind]
		if !ok {
			continue
		}
		row := pauseRow{Kind: kind, Means: means}
		if at := slices.IndexFunc(seen.Pauses, func(p outbox.Pausing) bool { return p.Kind == kind }); at >= 0 {
			row.Paused = &seen.Pauses[at]
		}
		if at := slices.IndexFunc(seen.Backlog, func(b operator.Backlog) bool { return b.Kind == kind && b.Status == domain.EffectPending }); at >= 0 {
			row.Waiting = seen.Backlog[at]
		}
		page.Kinds = append(page.Kinds, row)
	}
	v.render(http.StatusOK, "pauses", "Pauses", page)
	return nil
}

func (c *Console) setPause(v *visit) error {
	kind, to := domain.EffectKind(v.r.PathValue("kind")), v.form("to")
	back := link{"/pauses", "Pauses"}
	if to != "paused" && to != "resumed" {
		return refusal(http.StatusBadRequest, "The form is not whole", "It does not say whether to pause or to resume. Nothing was done.", back)
	}
	if err := reasoned(v.form("reason")); err != nil {
		return err.with(back)
	}
	result, err := c.config.Desk.SetPause(v.r.Context(), kind, to == "paused", v.actor(), v.form("reason"))
	if err != nil {
		return v.explain(err).with(back)
	}
	v.say(sentence(result.Said))
	return v.see("/pauses")
}
