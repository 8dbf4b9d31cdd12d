package console

import (
	"fmt"

	"holdfast/domain"
)

// plot is the ages as bars, in the units of its own picture; the table below it says the same in words.
type plot struct {
	Width, Height int
	Says          string
	Bars          []bar
	Labels        []caption
}

type bar struct {
	Kind                domain.EffectKind
	X, Y, Width, Height int
}

type caption struct {
	X, Y  int
	Text  string
	Count bool
}

const (
	plotWidth  = 640
	plotHeight = 200
	plotTop    = 20 // for the numbers
	plotFoot   = 24 // for the names
)

// draw stacks the kinds of each band into one bar.
func draw(rows []bandRow) plot {
	p := plot{Width: plotWidth, Height: plotHeight}
	var most, all int64
	for _, r := range rows {
		most = max(most, r.Sum)
		all += r.Sum
	}
	p.Says = fmt.Sprintf("Bar chart: %d unfinished effects by age. The table below it has the numbers.", all)
	if most == 0 {
		return p
	}
	room := plotHeight - plotTop - plotFoot
	step := plotWidth / len(rows)
	for i, r := range rows {
		x, y := i*step, plotHeight-plotFoot
		for _, kind := range kinds() {
			height := int(r.Count[kind] * int64(room) / most)
			if r.Count[kind] > 0 {
				height = max(height, 2) // one among thousands is seen, too
			}
			y -= height
			if height > 0 {
				p.Bars = append(p.Bars, bar{kind, x + step/6, y, step * 2 / 3, height})
			}
		}
		p.Labels = append(p.Labels,
			caption{X: x + step/2, Y: y - 6, Text: thousands(r.Sum), Count: true},
			caption{X: x + step/2, Y: plotHeight - 6, Text: r.Short})
	}
	return p
}
