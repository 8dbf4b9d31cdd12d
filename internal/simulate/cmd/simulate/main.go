// Command simulate runs seeded schedules of the whole system (package simulate) and reports broken promises.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/internal/simulate"
	"holdfast/internal/testdb"
)

const (
	exitDone      = 0
	exitViolation = 1
	exitUsage     = 2
	exitUnknown   = 3 // it could not run, so nothing is known
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

type settings struct {
	options simulate.Options
	seed    int64
	upTo    int
	skip    string
	json    bool
	quiet   bool
	digests bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.options.Seeds, "seeds", 200, "how many seeds to run")
	flags.Uint64Var(&s.options.From, "from", 1, "the first seed")
	flags.Int64Var(&s.seed, "seed", -1, "run this seed alone, and print its history")
	flags.IntVar(&s.upTo, "up-to", 0, "with --seed: only so many steps of it")
	flags.StringVar(&s.skip, "skip", "", "with --seed: leave these steps out, as 3,4,17")
	flags.IntVar(&s.options.Workers, "workers", 3, "schedules at once, each on a database, a provider and a broker of its own")
	flags.BoolVar(&s.options.StopAtFirst, "stop-at-first", false, "end with the first seed that fails")
	flags.DurationVar(&s.options.Shrink, "shrink", 20*time.Second, "how long to look for a shorter schedule of a seed that fails; 0: not")
	flags.BoolVar(&s.json, "json", false, "print a line of JSON for each seed that fails, and one at the end")
	flags.BoolVar(&s.digests, "digests", false, "print a digest of each seed's history: equal wherever and however often it is run")
	flags.BoolVar(&s.quiet, "quiet", false, "print no histories: seed and violation in a line")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 || s.options.Seeds < 1 || s.options.Workers < 1 {
		_, _ = fmt.Fprintln(stderr, "simulate: want --seeds and --workers of at least 1, and no other arguments")
		return s, errors.New("usage")
	}
	if s.seed >= 0 {
		one := simulate.Plan{Seed: uint64(s.seed), UpTo: s.upTo, Skip: map[int]bool{}}
		for text := range strings.FieldsFuncSeq(s.skip, func(r rune) bool { return r == ',' }) {
			i, err := strconv.Atoi(text)
			if err != nil {
				_, _ = fmt.Fprintf(stderr, "simulate: --skip wants numbers of steps, as 3,4,17, and not %q\n", text)
				return s, err
			}
			one.Skip[i] = true
		}
		s.options.One, s.options.Seeds, s.options.Shrink = &one, 1, 0
	}
	s.options.AdminURL, _ = os.LookupEnv(testdb.URLEnv)
	return s, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		return exitUsage
	}
	p := printer{out: stdout, settings: s, began: time.Now()}
	if terminal(stderr) && !s.json {
		p.progress = stderr
	}
	s.options.Each = p.each
	summary, err := simulate.Run(ctx, s.options)
	p.clear()
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "simulate:", err)
	}
	p.end(summary)
	switch {
	case summary.Violations > 0:
		return exitViolation
	case err != nil:
		return exitUnknown
	default:
		return exitDone
	}
}

func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// printer writes what people, or with --json programs, read.
type printer struct {
	settings

	out      io.Writer
	progress io.Writer // nil: none
	began    time.Time
	done     int
	shown    time.Time
}

func (p *printer) each(v simulate.Verdict) {
	p.done++
	if p.digests {
		_, _ = fmt.Fprintf(p.out, "seed %d: %x\n", v.Seed, sha256.Sum256([]byte(strings.Join(v.History, "\n"))))
	}
	if len(v.Violations) == 0 && p.seed < 0 {
		if p.progress != nil && time.Since(p.shown) > 200*time.Millisecond {
			p.shown = time.Now()
			_, _ = fmt.Fprintf(p.progress, "\r%d of %d, %.1f/s ", p.done, p.options.Seeds, float64(p.done)/time.Since(p.began).Seconds())
		}
		return
	}
	p.clear()
	if p.json {
		_ = json.NewEncoder(p.out).Encode(v)
		return
	}
	if !p.quiet {
		for _, line := range v.History {
			_, _ = fmt.Fprintln(p.out, line)
		}
	}
	for _, violation := range v.Violations {
		_, _ = fmt.Fprintf(p.out, "seed %d violates %s: %s\n", v.Seed, violation.Invariant, violation.Text)
	}
	if len(v.Violations) > 0 && p.seed < 0 {
		_, _ = fmt.Fprintf(p.out, "the whole of it again: make simulate SEED=%d\nas above: go run ./internal/simulate/cmd/simulate --seed %d --up-to %d --skip \"%s\"\n",
			v.Seed, v.Seed, v.UpTo, strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Skip), " ", ","), "[]"))
	}
}

func (p *printer) clear() {
	if p.progress != nil {
		_, _ = fmt.Fprint(p.progress, "\r\033[K")
	}
}

func (p *printer) end(s simulate.Summary) {
	rate := float64(s.Seeds) / max(s.Elapsed.Seconds(), 0.001)
	if p.json {
		_ = json.NewEncoder(p.out).Encode(map[string]any{"seeds": s.Seeds, "violations": s.Violations, "rate": rate, "seconds": s.Elapsed.Seconds()})
		return
	}
	_, _ = fmt.Fprintf(p.out, "simulate: seeds=%d violations=%d rate=%.1f/s\n", s.Seeds, s.Violations, rate)
}
