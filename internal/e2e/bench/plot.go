package main

import (
	"fmt"
	"os"
	"strings"
)

// writePlot draws the ratios to pgbench as bars, with the range over the rounds and the targets.
func writePlot(file string, r *report) error {
	const width, height, left, top, bottom = 760, 380, 50, 60, 300
	y := func(ratio float64) float64 { return bottom - min(ratio, 1.2)/1.2*(bottom-top) }
	var s strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, width, height)
	put(`<rect width="%d" height="%d" fill="white"/>`, width, height)
	put(`<text x="%d" y="24" font-size="15">Accepting a booking, as a share of pgbench calling the same function</text>`, left)
	put(`<text x="%d" y="42" fill="#555">median of %d rounds, range as a line; %s; PostgreSQL %s, fsync on</text>`, left, r.Rounds, r.Machine, r.PostgreSQL)
	for _, grid := range []float64{0, 0.25, 0.5, 0.75, 1} {
		put(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>`, left, width-10, y(grid), y(grid))
		put(`<text x="%d" y="%.1f" text-anchor="end" fill="#555">%.2f</text>`, left-6, y(grid)+4, grid)
	}
	for ratio, colour := range map[float64]string{storeTarget: "#1b6ca8", httpTarget: "#d1752a"} {
		put(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="4 4"/>`, left, width-10, y(ratio), y(ratio), colour)
	}
	x := left + 14
	for _, flush := range []int{0, flushEmulated} {
		for _, clients := range []int{1, compareAt, 16} {
			for i, colour := range []string{"#1b6ca8", "#d1752a"} {
				ratio := r.ratio([]string{"store", "http"}[i], clients, flush)
				at := x + i*38
				put(`<rect x="%d" y="%.1f" width="32" height="%.1f" fill="%s"/>`, at, y(ratio.Median), bottom-y(ratio.Median), colour)
				put(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="black"/>`, at+16, at+16, y(ratio.Min), y(ratio.Max))
				put(`<text x="%d" y="%d" text-anchor="middle" fill="white">%.2f</text>`, at+16, bottom-8, ratio.Median)
			}
			put(`<text x="%d" y="%d" text-anchor="middle">%d client(s)</text>`, x+35, bottom+18, clients)
			x += 110
		}
		put(`<text x="%d" y="%d" text-anchor="middle" fill="#555">%s</text>`, x-182, bottom+36, map[int]string{0: "the disk's own flush", flushEmulated: "flush + 1 ms"}[flush])
		x += 20
	}
	put(`<rect x="%d" y="%d" width="12" height="12" fill="#1b6ca8"/><text x="%d" y="%d">store, in process (target %.2f, dashed)</text>`, left, bottom+50, left+18, bottom+60, storeTarget)
	put(`<rect x="%d" y="%d" width="12" height="12" fill="#d1752a"/><text x="%d" y="%d">HTTP, the built api (target %.2f, dashed)</text>`, left+300, bottom+50, left+318, bottom+60, httpTarget)
	put(`</svg>`)
	return os.WriteFile(file, []byte(s.String()), 0o600)
}

// The targets, at 8 clients.
const (
	storeTarget = 0.85
	httpTarget  = 0.50
)
