package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/operator"
)

// overviewPage is how things stand.
type overviewPage struct {
	operator.Overview

	Kinds []kindRow
	Plot  plot
	Bands []bandRow
}

// kindRow is the backlog of a kind.
type kindRow struct {
	Kind                     domain.EffectKind
	Pending, InDoubt, Parked operator.Backlog
	Oldest                   float64
}

// bandRow is one line of the plot's table.
type bandRow struct {
	Text  string
	Short string // for the plot
	Older string // for the list's filter
	Count map[domain.EffectKind]int64
	Sum   int64
}

func kinds() []domain.EffectKind {
	return []domain.EffectKind{domain.EffectCharge, domain.EffectCancel, domain.EffectRefund, domain.EffectRefresh, domain.EffectPublish}
}

// start is the first page of whoever has signed in.
func (c *Console) start(v *visit) error {
	if home := v.home(); home.Path != "/" {
		return v.see(home.Path)
	}
	if err := v.demand(clients.OperatorRead); err != nil {
		return err
	}
	return c.overview(v)
}

// home is where that is.
func (v *visit) home() link {
	if v.c.config.Books != nil && v.who.Can(clients.Finance) && !v.who.Can(clients.OperatorRead) {
		return link{"/finance", "The month"}
	}
	return link{"/", "Overview"}
}

func (c *Console) overview(v *visit) error {
	seen, err := c.config.Desk.Overview(v.r.Context())
	if err != nil {
		return err
	}
	page := overviewPage{Overview: seen, Bands: bands(seen.Ages)}
	page.Plot = draw(page.Bands)
	for _, kind := range kinds() {
		row := kindRow{Kind: kind}
		for _, b := range seen.Backlog {
			if b.Kind != kind {
				continue
			}
			row.Oldest = max(row.Oldest, b.OldestSeconds)
			switch b.Status { //nolint:exhaustive // of unfinished effects alone
			case domain.EffectPending:
				row.Pending = b
			case domain.EffectInDoubt:
				row.InDoubt = b
			case domain.EffectParked:
				row.Parked = b
			}
		}
		page.Kinds = append(page.Kinds, row)
	}
	v.render(http.StatusOK, "overview", "Overview", page)
	return nil
}

// bands gathers the ages of all kinds by band, the youngest first.
func bands(ages []operator.AgeBand) []bandRow {
	var rows []bandRow
	at := map[float64]int{}
	for _, a := range ages {
		i, ok := at[a.From]
		if !ok {
			i = len(rows)
			at[a.From] = i
			older := time.Duration(a.From * float64(time.Second)).String()
			if a.From == 0 {
				older = ""
			}
			long, short := bandName(a)
			rows = append(rows, bandRow{Text: long, Short: short, Older: older, Count: map[domain.EffectKind]int64{}})
		}
		rows[i].Count[a.Kind] += a.Count
		rows[i].Sum += a.Count
	}
	return rows
}

// bandName is a band's ends, in the unit of the longer one: "5 to 15 min".
func bandName(a operator.AgeBand) (long, short string) {
	from, to, unit, letter := a.From, a.To, "s", "s"
	for _, u := range []struct {
		seconds      float64
		name, letter string
	}{{86400, "d", "d"}, {3600, "h", "h"}, {60, "min", "m"}} {
		if cmp.Or(to, from) > u.seconds || to == 0 && from == u.seconds || from == 0 && to == u.seconds {
			from, to, unit, letter = from/u.seconds, to/u.seconds, u.name, u.letter
			break
		}
	}
	f, t := strconv.FormatFloat(from, 'f', -1, 64), strconv.FormatFloat(to, 'f', -1, 64)
	switch {
	case to == 0:
		return "over " + f + " " + unit, ">" + f + letter
	case from == 0:
		return "under " + t + " " + unit, "<" + t + letter
	default:
		return f + " to " + t + " " + unit, f + "–" + t + letter
	}
}

// find goes to the effect or booking of an id.
func (c *Console) find(v *visit) error {
	text := v.query("q")
	id, err := domain.ParseID[domain.EffectID](text)
	if err != nil {
		return refusal(http.StatusNotFound, "This is no id",
			"Look for the id of an effect, an event or a booking: 36 characters such as 01890a5d-ac96-774b-bcce-b302099a8057, in lower case.")
	}
	shown, err := c.config.Desk.Show(v.r.Context(), id)
	if err != nil {
		return err
	}
	if shown.Effect.ID != id {
		return v.see("/bookings/" + url.PathEscape(text))
	}
	return v.see("/effects/" + url.PathEscape(text))
}
