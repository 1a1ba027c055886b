package otlp

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Metric is a counter or, with Bounds, a histogram of the time from Start to End. Each
// request only reports the increase, unless the metric is Cumulative.
type Metric struct {
	Name, Unit, Doc string
	Bounds          []float64 // of a histogram's buckets, ascending; nil for a counter
	Points          []Point
	Cumulative      bool // points count from the start of the process, not from the point before
}

// Add adds what another point of the same series has counted.
func (p *Point) Add(o *Point) {
	if o.Start.Before(p.Start) {
		p.Start = o.Start
	}
	if o.End.After(p.End) {
		p.End = o.End
	}
	if o.Count > 0 && p.Count > 0 {
		p.Min, p.Max = min(p.Min, o.Min), max(p.Max, o.Max)
	}
	p.Sum, p.Count = p.Sum+o.Sum, p.Count+o.Count
	for i := range min(len(p.Buckets), len(o.Buckets)) {
		p.Buckets[i] += o.Buckets[i]
	}
}

// Point is the values of one set of attributes.
type Point struct {
	Attrs      []Attr
	Start, End time.Time
	Sum        float64 // an integer for a counter
	Count      uint64
	Min, Max   float64
	Buckets    []uint64 // one more than Bounds
}

// Observe adds a value to a point of a histogram.
func (p *Point) Observe(x float64, bounds []float64) {
	if p.Buckets == nil {
		p.Buckets = make([]uint64, len(bounds)+1)
		p.Min, p.Max = x, x
	}
	p.Sum, p.Count, p.Min, p.Max = p.Sum+x, p.Count+1, min(p.Min, x), max(p.Max, x)
	at, _ := slices.BinarySearch(bounds, x) // a bound belongs to the bucket below it
	p.Buckets[at]++
}

// Temporalities of values.
const (
	delta      = 1
	cumulative = 2
)

func (m *Metric) temporality() uint64 {
	if m.Cumulative {
		return cumulative
	}
	return delta
}

// Metrics is an ExportMetricsServiceRequest.
func Metrics(o *Origin, metrics []Metric) []byte {
	return o.request(func(b []byte) []byte {
		for i := range metrics {
			b = message(b, 2, metrics[i].append)
		}
		return b
	})
}

func (m *Metric) append(b []byte) []byte {
	b = text(text(text(b, 1, m.Name), 2, m.Doc), 3, m.Unit)
	if m.Bounds == nil {
		return message(b, 7, func(b []byte) []byte {
			for i := range m.Points {
				b = message(b, 1, m.Points[i].count)
			}
			return number(number(b, 2, m.temporality()), 3, 1) // it only increases
		})
	}
	return message(b, 9, func(b []byte) []byte {
		for i := range m.Points {
			b = message(b, 1, func(b []byte) []byte { return m.Points[i].spread(b, m.Bounds) })
		}
		return number(b, 2, m.temporality())
	})
}

// count is a NumberDataPoint.
func (p *Point) count(b []byte) []byte {
	b = instant(instant(b, 2, p.Start), 3, p.End)
	return attributes(word(b, 6, uint64(int64(p.Sum))), 7, p.Attrs)
}

// spread is a HistogramDataPoint.
func (p *Point) spread(b []byte, bounds []float64) []byte {
	b = instant(instant(b, 2, p.Start), 3, p.End)
	b = real(word(b, 4, p.Count), 5, p.Sum)
	b = message(b, 6, func(b []byte) []byte {
		for _, n := range p.Buckets {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	})
	b = message(b, 7, func(b []byte) []byte {
		for _, x := range bounds {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	})
	return real(real(attributes(b, 9, p.Attrs), 11, p.Min), 12, p.Max)
}
