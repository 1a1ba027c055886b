package route

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/route/measure"
	"gateway/shared/usage"
)

// Measures are the figures that strategies compare: latency, cost, least_busy.
type Measures struct {
	Workspace *measure.Workspace // of the workspace
	Class     measure.Class      // of the request
	Model     string             // that the request names, for targets that name none
	// KeyID is whose extra cost hedges count: the id of the key.
	KeyID string
	// Find returns the price of a target, which Room remembers for a second. The request, at the
	// time At, is expected to use Retries.
	Find func(*Leaf) (pricing.Price, bool)
	Used pricing.Usage
	At   time.Time
	// Cost estimates the cost of the request at a target, in place of Find and without memory.
	Cost func(*Leaf) (pricing.NanoDollars, bool)
	// Key identifies a target with its model; nil: by its provider, host and model.
	Key func(*Leaf) measure.Key
	// DryRun: nothing is noted, because no request is sent.
	DryRun bool
}

// Measured reports whether a strategy compares figures of its targets.
func (t *Tree) Measured() bool { return t.figures }

// Measured appends the choices by figures so far to dst.
func (w *Traversal) Measured(dst []usage.Measured) []usage.Measured {
	return append(dst, w.measured...)
}

// measured is the key of a leaf, without the model of the request.
func (l *Leaf) measured() measure.Key {
	text := make([]byte, 0, 128)
	for _, s := range [...]string{l.Slug, l.Provider, l.CustomHost, l.Model} {
		text = append(binary.AppendUvarint(text, uint64(len(s))), s...)
	}
	if l.Slug == "" && l.Provider == "" || l.Passthrough {
		text = append(text, l.Path...) // the request names it
	}
	sum := sha256.Sum256(text)
	return measure.Key(binary.LittleEndian.Uint64(sum[:]))
}

// measureKey is the key of a leaf for this request.
func measureKey(w *Traversal, n *node) measure.Key {
	if w.ctx.Measures.Key != nil {
		return w.ctx.Measures.Key(n.leaf)
	}
	if n.leaf.Model != "" || w.ctx.Measures.Model == "" {
		return n.key
	}
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(w.ctx.Measures.Model) {
		h = (h ^ uint64(w.ctx.Measures.Model[i])) * 1099511628211
	}
	return measure.Key(mix(uint64(n.key) ^ h))
}

// compareMeasures chooses the child with the best figure, or the one that the sticky rule
// remembers while it works.
func compareMeasures(w *Traversal, n *node, candidates []*node) (*node, *fault.Fault) {
	if weights(candidates) <= 0 {
		return nil, noWeight(n)
	}
	if w.ctx.Earlier != nil {
		if index, ok := w.ctx.Earlier.Measured(n.path, n.mode); ok {
			if c := usable(candidates, index); c != nil {
				w.measured = append(w.measured, usage.Measured{Path: n.path, By: n.mode, Index: index, Reason: usage.ReasonRecorded})
				return c, nil
			}
		}
	}
	number := func() uint32 {
		switch {
		case w.ctx.Earlier != nil:
			return w.ctx.Earlier.Number(n.path)
		case w.ctx.Random != nil:
			return w.ctx.Random()
		}
		return 0
	}
	m := w.ctx.Measures
	if m == nil {
		m = &Measures{Workspace: measure.NewWorkspace(noTime), DryRun: true}
		w.ctx.Measures = m
	}
	key, sticks := stickyKeyOf(w, n)
	sticks = sticks && w.ctx.Sticky != nil
	if sticks {
		if index, ok := w.ctx.Sticky.Index(key); ok {
			if c := usable(candidates, index); c != nil && !m.Workspace.Failing(measureKey(w, c.first())) {
				w.measured = append(w.measured, usage.Measured{Path: n.path, By: n.mode, Index: index, Reason: usage.ReasonSticky})
				return c, nil
			}
		}
	}
	var room [24]measure.Candidate
	list := candidatesOf(room[:0], w, n, candidates)
	rule := n.rule
	if w.ctx.Earlier != nil {
		rule.Floor, rule.Explore = 0, 0 // nothing can be measured any more
	}
	at, made := m.Workspace.Choose(n.id, rule, m.Class, list, number, m.DryRun)
	made.Path = n.path
	w.measured = append(w.measured, made)
	if sticks {
		w.ctx.Sticky.Store(key, candidates[at].index, n.sticky.TTL)
	}
	return candidates[at], nil
}

// candidatesOf appends the targets of a strategy to list, which is empty, as they are compared:
// with their costs if the strategy compares these.
func candidatesOf(list []measure.Candidate, w *Traversal, n *node, nodes []*node) []measure.Candidate {
	m := w.ctx.Measures
	for _, c := range nodes {
		list = append(list, measure.Candidate{Key: measureKey(w, c.first()), Index: c.index, Weight: c.weight})
	}
	switch {
	case n.mode != ModeCost:
	case m.Find != nil:
		m.Workspace.Prices(list, m.Class, m.At, &m.Used, func(i int) (pricing.Price, bool) { return m.Find(nodes[i].first().leaf) })
	case m.Cost != nil:
		for i := range list {
			list[i].Cost, list[i].Priced = m.Cost(nodes[i].first().leaf)
		}
	}
	return list
}

// first is the leaf by which a node is judged: the first one below it.
func (n *node) first() *node {
	for n.leaf == nil {
		n = n.children[0]
	}
	return n
}

// measuresAny reports whether the traversal notes what targets do.
func measuresAny(w *Traversal) bool {
	return w.tree.figures && w.ctx.Measures != nil && !w.ctx.Measures.DryRun
}

// countInFlight counts the request that goes to the leaf that was given last.
func countInFlight(w *Traversal) {
	if measuresAny(w) {
		w.ctx.Measures.Workspace.Begin(measureKey(w, w.at))
		w.inFlight = true
	}
}

// uncountInFlight ends what takeOff began.
func uncountInFlight(w *Traversal) {
	if w.inFlight {
		w.ctx.Measures.Workspace.End(measureKey(w, w.at))
		w.inFlight = false
	}
}

// observeOutcome notes the outcome of the leaf that was given last. A response that is still
// coming stays in flight.
func observeOutcome(w *Traversal, o Outcome) {
	if !measuresAny(w) {
		return
	}
	if !o.Rejected {
		w.ctx.Measures.Workspace.Observe(measureKey(w, w.at), w.ctx.Measures.Class, o.Status, o.Latency)
	}
	if !o.Pending || o.Rejected {
		uncountInFlight(w)
	}
}

// observeSettled notes how a response ended that was still coming.
func observeSettled(w *Traversal, status int) {
	if w.inFlight && measure.Failure(status) {
		w.ctx.Measures.Workspace.Observe(measureKey(w, w.at), w.ctx.Measures.Class, status, 0)
	}
	uncountInFlight(w)
}

// noTime is the clock of a traversal that has no figures.
func noTime() time.Time { return time.Time{} }
