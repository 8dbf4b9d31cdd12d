package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sample is one measurement.
type sample struct {
	Round       int     `json:"round"`
	Side        string  `json:"side"` // pgbench, store, http, replay, hot1, hot50
	Clients     int     `json:"clients"`
	FlushMicros int     `json:"flush_us"` // emulated; 0: the disk's own
	Rate        float64 `json:"rate"`     // requests decided in a second
	Calibration float64 `json:"calibration"`
	Won         int     `json:"won,omitempty"`       // of a hot resource: requests that got it
	Deadlocks   int     `json:"deadlocks,omitempty"` // during a measurement of a hot resource
}

// spread is a figure over the rounds.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Min, s.Max) }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	median := v[len(v)/2]
	if len(v)%2 == 0 {
		median = (v[len(v)/2-1] + median) / 2
	}
	return spread{Median: median, Min: v[0], Max: v[len(v)-1]}
}

// line is one figure of the table.
type line struct {
	Side        string  `json:"side"`
	Clients     int     `json:"clients"`
	FlushMicros int     `json:"flush_us"`
	Rate        spread  `json:"rate"`
	Against     string  `json:"against,omitempty"` // what the ratio divides by
	Ratio       *spread `json:"ratio,omitempty"`   // of the rates of one round
}

// pickupLine is the pick-up at one rate.
type pickupLine struct {
	Target    int        `json:"target"`
	Told      spread     `json:"told_per_second"`
	ChargeP50 spread     `json:"charge_p50_ms"`
	ChargeP99 spread     `json:"charge_p99_ms"`
	EventP50  spread     `json:"event_p50_ms"`
	EventP99  spread     `json:"event_p99_ms"`
	CPU       perBooking `json:"cpu_ms_per_booking"` // medians
}

// report is everything that a run found out.
type report struct {
	Started    time.Time      `json:"started"`
	Took       float64        `json:"took_s"`
	Machine    string         `json:"machine"`
	PostgreSQL string         `json:"postgresql"`
	Rounds     int            `json:"rounds"`
	Seconds    int            `json:"seconds"`
	Lines      []line         `json:"lines"`
	Pickup     []pickupLine   `json:"pickup"`
	Speed      spread         `json:"calibration"`
	Deadlocks  int            `json:"deadlocks"`
	Last       string         `json:"last_line"`
	Samples    []sample       `json:"samples"`
	Pickups    []pickupSample `json:"pickup_samples"`
}

// finish works out the figures from the samples.
func (r *report) finish(b *bed) {
	r.Took = time.Since(r.Started).Seconds()
	r.Machine = fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	r.PostgreSQL = b.version
	for _, flush := range []int{0, flushEmulated} {
		for _, clients := range []int{1, compareAt, 16} {
			for _, side := range []string{"pgbench", "store", "http"} {
				r.add(side, "pgbench", clients, flush)
			}
		}
	}
	r.add("replay", "store", compareAt, 0)
	r.add("hot1", "", 16, 0)
	r.add("hot50", "", 16, 0)
	r.Pickup = []pickupLine{r.pickupAt(lightRate), r.pickupAt(middleRate), r.pickupAt(pickupRate)}
	speeds := make([]float64, 0, len(r.Samples))
	for _, s := range r.Samples {
		speeds = append(speeds, s.Calibration)
	}
	r.Speed = spreadOf(speeds)
	r.Last = fmt.Sprintf("bench: store=%.2f http=%.2f replay=%.1f deadlocks=%d pickup_p50_ms=%.0f pickup_p99_ms=%.0f",
		r.ratio("store", compareAt, 0).Median, r.ratio("http", compareAt, 0).Median, r.ratio("replay", compareAt, 0).Median,
		r.Deadlocks, r.Pickup[2].ChargeP50.Median, r.Pickup[2].ChargeP99.Median)
}

func (r *report) pickupAt(rate int) pickupLine {
	over := func(pick func(pickupSample) float64) spread {
		var values []float64
		for _, p := range r.Pickups {
			if p.Target == rate {
				values = append(values, pick(p))
			}
		}
		return spreadOf(values)
	}
	return pickupLine{
		Target: rate, Told: over(func(p pickupSample) float64 { return p.Told }),
		ChargeP50: over(func(p pickupSample) float64 { return p.Charge.P50 }), ChargeP99: over(func(p pickupSample) float64 { return p.Charge.P99 }),
		EventP50: over(func(p pickupSample) float64 { return p.Event.P50 }), EventP99: over(func(p pickupSample) float64 { return p.Event.P99 }),
		CPU: perBooking{
			PostgreSQL: over(func(p pickupSample) float64 { return p.CPU.PostgreSQL }).Median,
			Worker:     over(func(p pickupSample) float64 { return p.CPU.Worker }).Median,
			Bench:      over(func(p pickupSample) float64 { return p.CPU.Bench }).Median,
		},
	}
}

func (r *report) add(side, against string, clients, flush int) {
	mine, theirs := r.rates(side, clients, flush), r.rates(against, clients, flush)
	l := line{Side: side, Clients: clients, FlushMicros: flush, Rate: spreadOf(mine)}
	if against != "" && side != against {
		ratios := make([]float64, 0, len(mine))
		for round := range mine {
			ratios = append(ratios, mine[round]/theirs[round])
		}
		s := spreadOf(ratios)
		l.Against, l.Ratio = against, &s
	}
	r.Lines = append(r.Lines, l)
}

// rates are a side's, by round.
func (r *report) rates(side string, clients, flush int) []float64 {
	var rates []float64
	for _, s := range r.Samples {
		if s.Side == side && s.Clients == clients && s.FlushMicros == flush {
			rates = append(rates, s.Rate)
		}
	}
	return rates
}

func (r *report) ratio(side string, clients, flush int) spread {
	for _, l := range r.Lines {
		if l.Side == side && l.Clients == clients && l.FlushMicros == flush && l.Ratio != nil {
			return *l.Ratio
		}
	}
	return spread{}
}

func (r *report) writeJSON(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// print is the table, and the line for machines last.
func (r *report) print(w io.Writer) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	say("%s; PostgreSQL %s, fsync on; %d rounds of %d s; %.0f s in all", r.Machine, r.PostgreSQL, r.Rounds, r.Seconds, r.Took)
	say("medians over the rounds, with their range")
	say("%-8s %7s %-9s %24s  %s", "side", "clients", "flush", "per second", "ratio")
	for _, l := range r.Lines {
		flush, ratio := "disk", ""
		if l.FlushMicros > 0 {
			flush = "+1 ms"
		}
		if l.Ratio != nil {
			ratio = fmt.Sprintf("%s of %s", l.Ratio, l.Against)
		}
		say("%-8s %7d %-9s %24s  %s", l.Side, l.Clients, flush, fmt.Sprintf("%.0f (%.0f–%.0f)", l.Rate.Median, l.Rate.Min, l.Rate.Max), ratio)
	}
	for _, p := range r.Pickup {
		say("at %d bookings/s: charge sent after p50 %s ms, p99 %s ms", p.Target, p.ChargeP50, p.ChargeP99)
		say("    event told after p50 %s ms, p99 %s ms, at %s/s", p.EventP50, p.EventP99, p.Told)
		say("    CPU ms for each booking: %.1f PostgreSQL, %.1f worker, %.1f bench (bookings, provider, broker)", p.CPU.PostgreSQL, p.CPU.Worker, p.CPU.Bench)
	}
	say("calibration, million hashes/s: %.2f (%.2f–%.2f)", r.Speed.Median/1e6, r.Speed.Min/1e6, r.Speed.Max/1e6)
	say("%s/bench.json, %s/bench.svg", outputDir, outputDir)
	say("%s", r.Last)
}

// calibrate says how many small hashes all cores together make in a second, right now: how fast the machine is, and how
// much of it others leave us.
func calibrate() float64 {
	const d = 30 * time.Millisecond
	var hashes atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			sum := sha256.Sum256(nil)
			n := int64(0)
			for ; n%64 != 0 || time.Since(began) < d; n++ {
				sum = sha256.Sum256(sum[:])
			}
			hashes.Add(n)
		})
	}
	all.Wait()
	return float64(hashes.Load()) / time.Since(began).Seconds()
}
