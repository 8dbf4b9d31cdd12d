package alerts_test

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"
)

// step is how often Prometheus scrapes, and looks at the rules.
const step = 15 * time.Second

// quiet is how long nothing is the matter before something is: longer than any span that a rule looks at.
const quiet = 70 * time.Minute

var promQL = parser.NewParser(parser.Options{})

// rules reads the rules as Prometheus does.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("holdfast.rules.yaml", false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	var all []rulefmt.Rule
	for _, g := range groups.Groups {
		require.Equal(t, model.Duration(step), g.Interval, g.Name)
		all = append(all, g.Rules...)
	}
	return all
}

// scrape is what one scrape of all processes has read, and which of it only ever grows.
type scrape struct {
	values map[string]float64 // by the series' labels
	labels map[string]labels.Labels
	grows  map[string]bool
}

// scrapeOf reads a registry, as a scrape would.
func scrapeOf(t *testing.T, registry *prometheus.Registry) scrape {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	s := scrape{map[string]float64{}, map[string]labels.Labels{}, map[string]bool{}}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			s.add(family, m)
		}
	}
	return s
}

func (s scrape) add(family *dto.MetricFamily, m *dto.Metric) {
	put := func(suffix string, value float64, grows bool, more ...string) {
		b := labels.NewBuilder(labels.EmptyLabels()).Set("__name__", family.GetName()+suffix).Set("instance", "a")
		for _, pair := range m.GetLabel() {
			b.Set(pair.GetName(), pair.GetValue())
		}
		if len(more) == 2 {
			b.Set(more[0], more[1])
		}
		ls := b.Labels()
		s.values[ls.String()], s.labels[ls.String()], s.grows[ls.String()] = value, ls, grows
	}
	switch {
	case m.GetGauge() != nil:
		put("", m.GetGauge().GetValue(), false)
	case m.GetCounter() != nil:
		put("", m.GetCounter().GetValue(), true)
	case m.GetHistogram() != nil:
		h := m.GetHistogram()
		put("_count", float64(h.GetSampleCount()), true)
		put("_sum", h.GetSampleSum(), true)
		for _, bucket := range h.GetBucket() {
			put("_bucket", float64(bucket.GetCumulativeCount()), true, "le", model.SampleValue(bucket.GetUpperBound()).String())
		}
		put("_bucket", float64(h.GetSampleCount()), true, "le", "+Inf")
	}
}

// history is two scrapes, spread over time: the one for as long as all was quiet, the other from then on. What has grown between
// them grows so again every so often, if the trouble goes on.
type history struct {
	before, after scrape
	again         time.Duration // 0: what happened, happened once
}

// series writes the samples. Time begins with the quiet, and trouble comes with the first scrape after it.
func (h history) series(lasts time.Duration) []promql.Series {
	all := maps.Clone(h.before.labels)
	maps.Copy(all, h.after.labels)
	var written []promql.Series
	for _, key := range slices.Sorted(maps.Keys(all)) {
		s := promql.Series{Metric: all[key]}
		for at := time.Duration(0); at <= quiet+lasts; at += step {
			from, then := h.before, at > quiet
			if then {
				from = h.after
			}
			value, there := from.values[key]
			if !there {
				continue
			}
			if then && h.again > 0 && h.after.grows[key] {
				value += float64((at-quiet)/h.again) * (value - h.before.values[key])
			}
			s.Floats = append(s.Floats, promql.FPoint{T: at.Milliseconds(), F: value})
		}
		written = append(written, s)
	}
	return written
}

// fired are the alerts that fire at the end of the quiet or after it: whose expression holds, for one set of labels, at every look for as
// long as the rule demands.
func (h history) fired(t *testing.T, all []rulefmt.Rule) []string {
	t.Helper()
	const lasts = 25 * time.Minute
	series := h.series(lasts)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promQL})
	defer func() { require.NoError(t, engine.Close()) }()
	var firing []string
	for _, rule := range all {
		query, err := engine.NewRangeQuery(t.Context(), queryable(series), nil, rule.Expr,
			time.UnixMilli((quiet - 5*step).Milliseconds()), time.UnixMilli((quiet + lasts).Milliseconds()), step)
		require.NoError(t, err, rule.Alert)
		result := query.Exec(t.Context())
		require.NoError(t, result.Err, rule.Alert)
		matrix, err := result.Matrix()
		require.NoError(t, err)
		if slices.ContainsFunc(matrix, func(s promql.Series) bool { return longest(s.Floats) >= time.Duration(rule.For) }) {
			firing = append(firing, rule.Alert)
		}
		query.Close()
	}
	slices.Sort(firing)
	return firing
}

// longest is the longest span in which a series had a value at every look.
func longest(points []promql.FPoint) (span time.Duration) {
	begun := 0
	for i := range points {
		if i > 0 && points[i].T-points[i-1].T > step.Milliseconds() {
			begun = i
		}
		span = max(span, time.Duration(points[i].T-points[begun].T)*time.Millisecond)
	}
	return span
}

// queryable lets the engine read the samples.
func queryable(series []promql.Series) storage.Queryable {
	return storage.QueryableFunc(func(int64, int64) (storage.Querier, error) {
		return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			var found []storage.Series
			for _, s := range series {
				if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
					found = append(found, promql.NewStorageSeries(s))
				}
			}
			return &seriesSet{SeriesSet: storage.EmptySeriesSet(), series: found, at: -1}
		}}, nil
	})
}

// seriesSet hands out series one by one.
type seriesSet struct {
	storage.SeriesSet // what it says of errors and warnings: none
	series            []storage.Series
	at                int
}

func (s *seriesSet) Next() bool         { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series { return s.series[s.at] }
