package observe

import (
	"strconv"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"gateway/shared/observe/otlp"
	"gateway/shared/usage"
)

// TestCumulativeMetrics: each export has what was counted since the start of the process.
func TestCumulativeMetrics(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		temporality string
		sums        []float64
		kind        metricspb.AggregationTemporality
	}{
		"delta":      {"", []float64{47, 47}, metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA},
		"cumulative": {Cumulative, []float64{47, 94}, metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE},
	} {
		c := newCollector(t)
		e := exporter(c, Destination{Signals: []string{Metrics}, Temporality: want.temporality})
		for n, sum := range want.sums {
			r := record()
			r.Start = r.Start.Add(time.Duration(n) * time.Minute)
			e.Export(t.Context(), []usage.Record{r})
			h := c.metrics(t)[metricTokens].GetHistogram()
			for _, p := range h.DataPoints {
				buckets := uint64(0)
				for _, b := range p.BucketCounts {
					buckets += b
				}
				if values(p.Attributes)[attrTokenType] == "input" && (*p.Sum != sum || buckets != p.Count || want.temporality != "" && p.StartTimeUnixNano != uint64(at.UnixNano())) {
					t.Errorf("%s: export %d has %v", name, n, p)
				}
			}
			if h.AggregationTemporality != want.kind {
				t.Errorf("%s: %s", name, h.AggregationTemporality)
			}
		}
	}
	if bad := (&Destination{Endpoint: "https://x", Temporality: "sometimes"}).Validate(); len(bad) != 1 || bad[0].Field != "metrics_temporality" {
		t.Errorf("%v", bad)
	}
}

// TestTotalsAreBounded: the memory of cumulative metrics does not grow with the number of
// destinations and series.
func TestTotalsAreBounded(t *testing.T) {
	t.Parallel()
	var all totals
	for n := range 2 * maxTotals {
		all.add(strconv.Itoa(n), []otlp.Metric{{Name: "m", Points: []otlp.Point{{Sum: 1}}}})
	}
	for n := range maxSeries + 10 {
		all.add("one", []otlp.Metric{{Name: "m", Points: []otlp.Point{{Sum: 1, Attrs: []otlp.Attr{{Key: "n", Value: strconv.Itoa(n)}}}}}})
	}
	if len(all.of) > maxTotals || len(all.of["one"]) > maxSeries {
		t.Errorf("%d destinations, %d series", len(all.of), len(all.of["one"]))
	}
}
