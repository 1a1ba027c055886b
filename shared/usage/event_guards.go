package usage

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
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
		b = binary.AppendVarint(binary.AppendUvarint(b, flags), g.LatencyMS)
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
	present := false
	for i := range r.Guards {
		if c.uint() == 0 {
			continue
		}
		f := &GuardFeedback{Value: c.int()}
		parts := c.uint()
		f.Weight, f.Metadata = float64(parts)/weights, c.str()
		r.Guards[i].Feedback = f
		present, c.bad = true, c.bad || parts > weights
	}
	c.bad = c.bad || needed && !present // otherwise the event would have a lower version
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
		g.LatencyMS = c.int()
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
		b = binary.AppendVarint(binary.AppendVarint(appendString(b, m.Path), int64(m.Condition)), int64(m.Index))
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

// SetPrompt records which version of a prompt rendered the request's body, and the
// experiment that selected it, or "". PromptID contains all of them, as id@version or
// id@version@experiment: one field, which every gateway version can read.
func (r *Record) SetPrompt(id string, version int64, experiment string) {
	r.PromptID = id + "@" + strconv.FormatInt(version, 10)
	if experiment != "" {
		r.PromptID += "@" + experiment
	}
}

// PromptVersion returns the prompt's id and version; version 0 means unknown.
func (r *Record) PromptVersion() (id string, version int64) {
	id, rest, _ := strings.Cut(r.PromptID, "@")
	if n, _, _ := strings.Cut(rest, "@"); n != "" { // most requests have no prompt
		version, _ = strconv.ParseInt(n, 10, 64)
	}
	return id, version
}

// Experiment returns the id of the experiment that selected the version, or "".
func (r *Record) Experiment() string {
	_, rest, _ := strings.Cut(r.PromptID, "@")
	_, experiment, _ := strings.Cut(rest, "@")
	return experiment
}
