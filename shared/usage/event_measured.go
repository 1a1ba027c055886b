package usage

import "encoding/binary"

// What a strategy compares.
const (
	ByLatency = "latency"
	ByCost    = "cost"
	ByLoad    = "least_busy"
)

// Why a strategy that compares figures chose a target.
const (
	ChosenBest      = "lowest"
	ChosenTie       = "tie"              // one of several equals
	ChosenToExplore = "explore"          // to measure it again
	ChosenTooFew    = "too_few_observed" // to have enough observations
	ChosenUnknown   = "no_figures"       // nothing was known of any target
	ChosenAllFail   = "all_failing"      // all targets were failing
	ChosenSticky    = "sticky"           // an earlier request with the same values went there
	ChosenRecorded  = "as_recorded"      // a simulation repeats the choice
)

// Measured is one choice by figures: Path is the place of the strategy, By what it
// compares, Chosen the index of the target.
type Measured struct {
	Path, By string
	Chosen   int
	Reason   string
	Figures  []Figure
}

// Figure is the measured value of one target. Value is the compared number: nanoseconds
// of latency, nano-dollars or requests in flight; -1 if unknown.
type Figure struct {
	Index    int
	Value    int64
	Observed int // latencies of the request's class
	InFlight int
	Avoided  bool // it had failed
}

// appendMeasured appends choices by figures. New fields must be appended after them.
func appendMeasured(b []byte, list []Measured) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		m := &list[i]
		b = binary.AppendVarint(appendString(appendString(appendString(b, m.Path), m.By), m.Reason), int64(m.Chosen))
		b = binary.AppendUvarint(b, uint64(len(m.Figures)))
		for j := range m.Figures {
			f := &m.Figures[j]
			b = binary.AppendVarint(binary.AppendVarint(b, int64(f.Index)), f.Value)
			b = append(binary.AppendVarint(binary.AppendVarint(b, int64(f.Observed)), int64(f.InFlight)), flags(f.Avoided, false, false, false))
		}
	}
	return b
}

// measured reads what appendMeasured wrote.
func (c *cursor) measured(r *Record) {
	n := c.count(5)
	if n == 0 {
		return
	}
	r.Measured = make([]Measured, n)
	for i := range r.Measured {
		m := &r.Measured[i]
		m.Path, m.By, m.Reason, m.Chosen = c.str(), c.str(), c.str(), int(c.int())
		if n := c.count(5); n > 0 {
			m.Figures = make([]Figure, n)
		}
		for j := range m.Figures {
			f := &m.Figures[j]
			f.Index, f.Value, f.Observed, f.InFlight = int(c.int()), c.int(), int(c.int()), int(c.int())
			c.flags(&f.Avoided)
		}
	}
}
