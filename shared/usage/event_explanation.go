package usage

import (
	"encoding/binary"
	"time"
)

// hasExplanation reports whether the record needs version 2 of the encoding: it explains
// why targets were selected, skipped or retried.
func (r *Record) hasExplanation() bool {
	if len(r.Matches)+len(r.Skips) > 0 {
		return true
	}
	for i := range r.Draws {
		if r.Draws[i].Sticky != "" {
			return true
		}
	}
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.Retry != 0 || a.Wait != 0 || a.WaitReason != "" {
			return true
		}
	}
	return false
}

// appendExplanation appends the part of version 2: matches, skips, then the additional
// fields of each draw and each attempt of version 1, in their order.
func (r *Record) appendExplanation(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Matches)))
	for i := range r.Matches {
		m := &r.Matches[i]
		b = binary.AppendVarint(binary.AppendVarint(appendString(b, m.Path), int64(m.Condition)), int64(m.Chosen))
	}
	b = binary.AppendUvarint(b, uint64(len(r.Skips)))
	for i := range r.Skips {
		s := &r.Skips[i]
		b = binary.AppendVarint(appendString(appendString(appendString(b, s.Path), s.Reason), s.Code), int64(s.Status))
	}
	for i := range r.Draws {
		b = appendString(b, r.Draws[i].Sticky)
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		b = appendString(binary.AppendVarint(binary.AppendVarint(b, int64(a.Retry)), int64(a.Wait)), a.WaitReason)
	}
	return b
}

// explanation reads the output of appendExplanation.
func (c *cursor) explanation(r *Record) {
	if n := c.count(3); n > 0 {
		r.Matches = make([]Match, n)
		for i := range r.Matches {
			r.Matches[i] = Match{c.str(), int(c.int()), int(c.int())}
		}
	}
	if n := c.count(4); n > 0 {
		r.Skips = make([]Skip, n)
		for i := range r.Skips {
			r.Skips[i] = Skip{c.str(), c.str(), c.str(), int(c.int())}
		}
	}
	for i := range r.Draws {
		r.Draws[i].Sticky = c.str()
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		a.Retry, a.Wait, a.WaitReason = int(c.int()), time.Duration(c.int()), c.str()
	}
}
