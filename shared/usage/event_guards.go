package usage

import (
	"encoding/binary"
	"math"
	"slices"
)

// version returns the lowest version of the encoding that can represent the record.
func (r *Record) version() byte {
	switch {
	case r.needsNotes():
		return eventVersion
	case slices.ContainsFunc(r.Guards, func(g Guard) bool { return g.Feedback != nil }):
		return eventRated
	case r.Tariff != "":
		return eventPriced
	case len(r.Guards) > 0:
		return eventGuarded
	case r.hasExplanation():
		return eventExplained
	}
	return eventPlain
}

const (
	guardPasses = 1 << iota
	guardDenies
	guardAside
	guardChanges
)

// appendGuards appends the part of version 3.
func (r *Record) appendGuards(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Guards)))
	for i := range r.Guards {
		g := &r.Guards[i]
		b = appendString(appendString(appendString(b, g.Hook), g.Phase), g.Path)
		flags := uint64(0)
		for flag, set := range map[uint64]bool{guardPasses: g.Verdict, guardDenies: g.Denied, guardAside: g.Async, guardChanges: g.Transformed} {
			if set {
				flags |= flag
			}
		}
		b = binary.AppendVarint(binary.AppendUvarint(b, flags), g.TookMS)
		for _, list := range [...][]string{g.Failed, g.Errored} {
			b = binary.AppendUvarint(b, uint64(len(list)))
			for _, id := range list {
				b = appendString(b, id)
			}
		}
	}
	return b
}

// weights is the fixed-point scale of feedback weights: parts per million.
const weights = 1_000_000

// appendFeedback appends the part of version 5: for each guardrail whether it has
// feedback, and the feedback.
func (r *Record) appendFeedback(b []byte) []byte {
	for i := range r.Guards {
		f := r.Guards[i].Feedback
		if f == nil {
			b = append(b, 0)
			continue
		}
		b = binary.AppendVarint(append(b, 1), f.Value)
		b = binary.AppendUvarint(b, uint64(math.Round(min(max(f.Weight, 0), 1)*weights)))
		b = appendString(b, f.Metadata)
	}
	return b
}

// feedback reads the output of appendFeedback. needed requires at least one feedback.
func (c *cursor) feedback(r *Record, needed bool) {
	given := false
	for i := range r.Guards {
		if c.uint() == 0 {
			continue
		}
		f := &GuardFeedback{Value: c.int()}
		parts := c.uint()
		f.Weight, f.Metadata = float64(parts)/weights, c.str()
		r.Guards[i].Feedback = f
		given, c.bad = true, c.bad || parts > weights
	}
	c.bad = c.bad || needed && !given // otherwise the event would have a lower version
}

// guards reads the output of appendGuards.
func (c *cursor) guards(r *Record) {
	n := c.count(7)
	if n == 0 {
		return
	}
	r.Guards = make([]Guard, n)
	for i := range r.Guards {
		g := &r.Guards[i]
		g.Hook, g.Phase, g.Path = c.str(), c.str(), c.str()
		flags := c.uint()
		g.Verdict, g.Denied, g.Async, g.Transformed = flags&guardPasses != 0, flags&guardDenies != 0, flags&guardAside != 0, flags&guardChanges != 0
		g.TookMS = c.int()
		for _, list := range [...]*[]string{&g.Failed, &g.Errored} {
			if n := c.count(1); n > 0 {
				*list = make([]string, n)
				for i := range *list {
					(*list)[i] = c.str()
				}
			}
		}
	}
}
