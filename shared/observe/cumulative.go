package observe

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"

	"gateway/shared/observe/otlp"
)

// Temporalities of metrics: whether points count from the point before, or from the start of
// the process.
const (
	Delta      = "delta"
	Cumulative = "cumulative"
)

// Limits of the metrics since the start of the process.
const (
	maxTotals = 1000   // destinations
	maxSeries = 10_000 // of a destination
)

// totals are the metrics of destinations with cumulative temporality, since the start of
// the process. Each process is an instance of the service with separate series.
type totals struct {
	mu       sync.Mutex
	of       map[string]map[string]otlp.Point // by destination, then by metric and attributes
	instance string
}

// add adds metrics to the totals of a destination, and returns those points that changed
// with what they count since their start. Where a limit is reached, counting begins again,
// which the starts of points show.
func (t *totals) add(destination string, metrics []otlp.Metric) []otlp.Metric {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || t.of[destination] == nil && len(t.of) >= maxTotals {
		t.of = map[string]map[string]otlp.Point{}
	}
	series := t.of[destination]
	if series == nil || len(series) >= maxSeries {
		series = map[string]otlp.Point{}
		t.of[destination] = series
	}
	for i := range metrics {
		m := &metrics[i]
		m.Cumulative = true
		for j := range m.Points {
			p := &m.Points[j]
			key := m.Name + " " + fmt.Sprint(p.Attrs)
			if before, ok := series[key]; ok {
				p.Add(&before)
			}
			kept := *p
			kept.Buckets = slices.Clone(p.Buckets)
			series[key] = kept
		}
	}
	return metrics
}

// name returns the id of this process.
func (t *totals) name() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.instance == "" {
		t.instance = rand.Text()
	}
	return t.instance
}
