package main

import (
	"time"

	"holdfast/internal/cli"
)

// ingest is how the provider's balance transactions are read.
type ingest struct {
	Interval       time.Duration `default:"1m" help:"Pause between two readings of the provider's balance transactions." name:"ingest-interval" setting:"INGEST_INTERVAL"`
	Lag            time.Duration `default:"5m" help:"How long ago a window of them must have ended to be read, and how long a charge may be without one." name:"ingest-lag" setting:"INGEST_LAG"`
	ReadsPerSecond float64       `default:"20" help:"Most pages of the provider's books that all processes together read in a second; leave most of what the provider allows to charges." name:"reads-per-second" setting:"FINANCE_READS_PER_SECOND"`
	Overlap        time.Duration `default:"1h" help:"How much of the window before is read again: a balance transaction may become visible late." name:"ingest-overlap" setting:"INGEST_OVERLAP"`
}

func (i *ingest) configure(p *cli.Problems) {
	if i.ReadsPerSecond <= 0 {
		p.Add("FINANCE_READS_PER_SECOND (--reads-per-second): %g is not more than 0", i.ReadsPerSecond)
	}
	for name, d := range map[string]time.Duration{"INGEST_INTERVAL": i.Interval, "INGEST_LAG": i.Lag, "INGEST_OVERLAP": i.Overlap} {
		if d <= 0 {
			p.Add("%s: %s is not more than 0", name, d)
		}
	}
}
