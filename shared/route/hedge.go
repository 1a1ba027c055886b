package route

import (
	"slices"
	"time"

	"gateway/shared/route/measure"
)

// HedgeRule has a strategy call a second target when the first one is slow.
type HedgeRule struct {
	After      time.Duration // time to wait; with Percentile, the time until that is known
	Percentile float64       // percentile of the first target's own latencies to wait; 0: After
	MaxExtra   float64       // cost of the attempts that were not used, as a share of that of the others, per key
	Stored     bool          // also requests whose response is stored
}

// Standards and bounds of a HedgeRule.
const (
	MinHedgePercentile = 50
	MaxHedgePercentile = 99
	MaxHedgeAfter      = 10 * time.Minute
	DefaultMaxExtra    = 0.1
)

// parseHedge reads the hedge of a strategy; nil: it is not enabled.
func parseHedge(r *reader, v value) *HedgeRule {
	out := &HedgeRule{MaxExtra: DefaultMaxExtra}
	enabled := false
	r.members(v, func(key string, v value) {
		switch key {
		case "enabled":
			enabled = r.flag(v)
		case "after_ms":
			if out.After = milliseconds(r.whole(v, 1)); out.After > MaxHedgeAfter {
				r.add(v.path, "must be at most %d", MaxHedgeAfter.Milliseconds())
			}
		case "after_percentile":
			out.Percentile = r.number(v, MinHedgePercentile, MaxHedgePercentile)
		case "max_extra_cost":
			out.MaxExtra = r.number(v, 0, 1)
		case "stored_responses":
			out.Stored = r.flag(v)
		default:
			r.unknown(v, "hedge")
		}
	})
	if !enabled {
		return nil
	}
	if out.After == 0 && out.Percentile == 0 {
		r.add(v.path, "needs after_ms or after_percentile")
	}
	return out
}

// Hedge is a second attempt that may be made at another target of a strategy. It does not refer to
// the Traversal: the goroutine that makes the attempt calls Begin and EndUnused, and RecordCost follows its end.
type Hedge struct {
	Leaf   *Leaf
	After  time.Duration
	Stored bool

	in, child, at *node // the strategy, its target, and the leaf of that
	key           measure.Key
	rule          *HedgeRule
	workspace     *measure.Workspace
	class         measure.Class
	spender       string
	breakers      Breakers
	pending       float64 // extra cost, while the attempt is made
}

// HedgeOf returns the second attempt for the target that Next has just returned; nil if the config
// has none for it: no hedge, no other target that works, or no known latency to wait for.
func HedgeOf(w *Traversal) *Hedge {
	m := w.ctx.Measures
	if !w.tree.hedges || m == nil || w.at == nil {
		return nil
	}
	for i := range w.stack {
		// The response that ends the race must be the final one.
		if w.stack[i].n.mode == ModeFallback && slices.ContainsFunc(w.stack[i].n.onStatus, func(s int) bool { return s >= 200 && s <= 299 }) {
			return nil
		}
	}
	for i := len(w.stack) - 1; i >= 0; i-- {
		n := w.stack[i].n
		if n.hedge == nil {
			continue
		}
		h := &Hedge{in: n, rule: n.hedge, workspace: m.Workspace, class: m.Class, spender: m.KeyID, Stored: n.hedge.Stored, breakers: w.ctx.Breakers}
		if h.After = n.hedge.After; n.hedge.Percentile > 0 {
			if d, ok := m.Workspace.Percentile(measureKey(w, w.at), m.Class, n.hedge.Percentile, m.DryRun); ok {
				h.After = d
			}
		}
		if h.child = secondTarget(w, &w.stack[i]); h.child == nil || h.After <= 0 {
			return nil
		}
		h.at = h.child.first()
		h.Leaf, h.key = h.at.leaf, measureKey(w, h.at)
		return h
	}
	return nil
}

// secondTarget returns another target of a strategy: the next one of a fallback, the default of
// conditions, else one by the rule of the strategy.
func secondTarget(w *Traversal, f *frame) *node {
	var list []*node
	switch f.n.mode {
	case ModeConditional:
		if f.n.def != nil {
			list = append(list, f.n.def)
		}
	case ModeFallback:
		list = f.candidates[min(f.at+1, len(f.candidates)):]
	default:
		list = f.candidates
	}
	open := make([]*node, 0, len(list))
	for _, c := range list {
		switch {
		case c.contains(w.at):
		case c.guarded && w.ctx.Breakers != nil && w.ctx.Breakers.State(c.path) != Closed:
		case w.ctx.Measures.Workspace.Failing(measureKey(w, c.first())):
		case f.n.mode != ModeFallback && f.n.mode != ModeConditional && c.weight <= 0:
		default:
			open = append(open, c)
		}
	}
	switch {
	case len(open) == 0:
		return nil
	case f.n.mode == ModeLoadbalance:
		return usable(f.n.children, pick(open, weights(open), number(w)))
	case Compares(f.n.mode):
		rule := f.n.rule
		rule.Floor, rule.Explore = 0, 0 // a second attempt is not for measuring
		at, _ := w.ctx.Measures.Workspace.Choose(f.n.id, rule, w.ctx.Measures.Class, candidatesOf(nil, w, f.n, open), func() uint32 { return number(w) }, true)
		return open[at]
	}
	return open[0]
}

func number(w *Traversal) uint32 {
	if w.ctx.Random != nil {
		return w.ctx.Random()
	}
	return 0
}

// contains reports whether a leaf is n or below it.
func (n *node) contains(leaf *node) bool {
	return n == leaf || slices.ContainsFunc(n.children, func(c *node) bool { return c.contains(leaf) })
}

// Begin counts the attempt as a request in flight. It reports false, and nothing is counted, if
// the key has no extra cost left.
func (h *Hedge) Begin() bool {
	var ok bool
	if h.pending, ok = h.workspace.AllowsHedge(h.spender, h.rule.MaxExtra); ok {
		h.workspace.Begin(h.key)
	}
	return ok
}

// EndUnused ends an attempt whose response is not used: status is that of its own failure, and 0 if
// it was canceled after a time.
func (h *Hedge) EndUnused(status int, after time.Duration) {
	if status == 0 {
		h.workspace.Exceeded(h.key, h.class, after)
	} else {
		h.workspace.Observe(h.key, h.class, status, 0)
		if h.child.guarded && h.breakers != nil {
			h.breakers.Record(h.child.path, h.child.breaker, status, false)
		}
	}
	h.workspace.End(h.key)
}

// RecordCost counts the cost of a request whose strategy has a hedge in nano-dollars: that of the
// attempt that was used, and that of the other one, if it began.
func (h *Hedge) RecordCost(used, unused int64) {
	h.workspace.RecordCost(h.spender, used, unused, h.pending)
}

// HedgeWon continues the traversal at the second attempt, whose response is used. The first one was
// canceled after a time, or had failed with a status.
func HedgeWon(w *Traversal, h *Hedge, status int, after time.Duration) {
	leave(w, status, after)
	for len(w.stack) > 0 {
		top := &w.stack[len(w.stack)-1]
		if top.n == h.in {
			top.at = max(top.at, slices.Index(top.candidates, h.child))
			break
		}
		w.giveBack(top.n, top.probe)
		w.stack = w.stack[:len(w.stack)-1]
	}
	w.at, w.probe, w.inFlight = h.at, false, measuresAny(w)
}

// leave reports the end of an attempt that another one replaces.
func leave(w *Traversal, status int, after time.Duration) {
	if status == 0 {
		w.giveBack(w.at, w.probe)
		if measuresAny(w) {
			w.ctx.Measures.Workspace.Exceeded(measureKey(w, w.at), w.ctx.Measures.Class, after)
		}
	} else {
		w.report(w.at, w.probe, Outcome{Status: status})
		if measuresAny(w) {
			w.ctx.Measures.Workspace.Observe(measureKey(w, w.at), w.ctx.Measures.Class, status, 0)
		}
	}
	uncountInFlight(w)
}

// HedgeFailed has a fallback not try the target of a failed second attempt again.
func HedgeFailed(w *Traversal, h *Hedge) {
	if h.child.leaf != nil {
		w.hedgeFailed = h.child
	}
}
