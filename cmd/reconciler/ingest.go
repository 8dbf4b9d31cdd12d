package main

import (
	"time"

	"holdfast/internal/cli"
)

// ingest is how the provider's balance transactions are read.
type ingest struct {
	Interval time.Duration `default:"1m" help:"Pause between two readings of the provider's balance transactions." name:"ingest-interval" setting:"INGEST_INTERVAL"`
	Overlap  time.Duration `default:"1h" help:"How much of the window before is read again: a balance transaction may become visible late." name:"ingest-overlap" setting:"INGEST_OVERLAP"`
	Matching time.Duration `default:"15m" help:"Pause between two comparisons of the last days with the provider's books; what is found is on the list of exceptions." name:"matching-interval" setting:"FINANCE_INTERVAL"`
}

func (i *ingest) configure(p *cli.Problems) {
	for name, d := range map[string]time.Duration{"INGEST_INTERVAL": i.Interval, "INGEST_OVERLAP": i.Overlap, "FINANCE_INTERVAL": i.Matching} {
		if d <= 0 {
			p.Add("%s: %s is not more than 0", name, d)
		}
	}
}
