package main

import (
	"time"

	"holdfast/internal/cli"
)

// events is how the provider's events are heard.
type events struct {
	Interval      time.Duration `default:"250ms" help:"Pause between two looks for events that webhooks have delivered." name:"events-interval" setting:"EVENTS_INTERVAL"`
	Keep          time.Duration `default:"72h" help:"How long an event is tried whose booking is not here, or that the provider does not bear out, before it is parked for a person." name:"events-keep" setting:"EVENTS_KEEP"`
	SweepInterval time.Duration `default:"5m" help:"Pause between two sweeps of the provider's list of events, for those that no webhook has delivered." name:"events-sweep-interval" setting:"EVENTS_SWEEP_INTERVAL"`
	SweepLag      time.Duration `default:"1m" help:"How long ago a part of that list must have ended to be read." name:"events-sweep-lag" setting:"EVENTS_SWEEP_LAG"`
	SweepOverlap  time.Duration `default:"10m" help:"How much of the part before is read again: an event may become visible late." name:"events-sweep-overlap" setting:"EVENTS_SWEEP_OVERLAP"`
}

func (e *events) configure(p *cli.Problems) {
	for name, d := range map[string]time.Duration{
		"EVENTS_INTERVAL": e.Interval, "EVENTS_KEEP": e.Keep, "EVENTS_SWEEP_INTERVAL": e.SweepInterval,
		"EVENTS_SWEEP_LAG": e.SweepLag, "EVENTS_SWEEP_OVERLAP": e.SweepOverlap,
	} {
		if d <= 0 {
			p.Add("%s: %s is not more than 0", name, d)
		}
	}
}
