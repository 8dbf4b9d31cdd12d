package cli

import "time"

// Books is how the provider's books are read and compared with ours. It is the same for every process.
type Books struct {
	Lag            time.Duration `default:"5m" help:"How long ago a window of the provider's transactions must have ended to be read, and how long one side may be without the other." name:"ingest-lag" setting:"INGEST_LAG"`
	LateAfter      time.Duration `default:"72h" help:"How long what one side lacks is only late; then it is missing." name:"late-after" setting:"FINANCE_LATE_AFTER"`
	ReadsPerSecond float64       `default:"20" help:"Most pages of the provider's books that all processes together read in a second; leave most of what the provider allows to charges." name:"reads-per-second" setting:"FINANCE_READS_PER_SECOND"`
}

// Configure checks the bounds.
func (b *Books) Configure(_ func(string) string, p *Problems) {
	if b.Lag <= 0 {
		p.Add("INGEST_LAG (--ingest-lag): %s is not more than 0", b.Lag)
	}
	if b.LateAfter <= b.Lag {
		p.Add("FINANCE_LATE_AFTER (--late-after): %s is not more than INGEST_LAG, %s", b.LateAfter, b.Lag)
	}
	if b.ReadsPerSecond <= 0 {
		p.Add("FINANCE_READS_PER_SECOND (--reads-per-second): %g is not more than 0", b.ReadsPerSecond)
	}
}
