package route

import (
	"encoding/json"
	"slices"
	"time"

	"gateway/shared/fault"
	"gateway/shared/usage"
)

// Context is what decisions depend on. Every field may be empty.
type Context struct {
	Metadata map[string]string
	Params   func(name string) (json.RawMessage, bool) // top-level field of the client's body
	Path     string                                    // of the URL, with /v1
	Random   func() uint32                             // uniform; nil draws 0
	Breakers Breakers                                  // nil: no breakers
	Sticky   Sticky                                    // nil: sticky rules use only their hash
	Earlier  EarlierDecisions                          // nil: decisions by weight are made again
	Measures *Measures                                 // nil: figures are unknown
}

// EarlierDecisions are the decisions by weight of an earlier request, by the paths of strategies,
// for a traversal that repeats it.
type EarlierDecisions interface {
	// Number is the number that was drawn at a path, or a substitute, in place of Random.
	Number(path string) uint32
	// StickyIndex returns the target that a sticky rule remembered.
	StickyIndex(path string) (index int, ok bool)
	// Measured is the target that was chosen by figures, if that choice is to be repeated.
	Measured(path, by string) (index int, ok bool)
}

// Outcome is the response of the target that was tried last.
type Outcome struct {
	Status    int
	Exception bool // made inside the gateway: no other target is tried
	// Rejected: the gateway rejected the target before anything was sent. That is handled like a
	// response, but does not affect the target's health.
	Rejected bool
	Final    bool // the response has begun to be sent: no other target can be tried
	// Pending: the response has begun well and is still being read. Traversal.Settle reports it to
	// the breakers when its end is known.
	Pending bool
	// Latency is the time of the response: to the first content of a stream, else to its
	// end; 0: unknown.
	Latency time.Duration
}

// Traversal is the state of one request in a tree. It must not be used by several goroutines at
// once.
type Traversal struct {
	tree        *Tree
	ctx         Context
	stack       []frame // the strategies that the traversal is inside of
	frames      [4]frame
	at          *node // the leaf that was given last
	probe       bool  // the traversal has claimed its probe
	started     bool
	done        bool
	pending     []claim // claims with pending responses
	claims      [4]claim
	inFlight    bool  // the leaf in at is counted as in flight
	hedgeFailed *node // by a second attempt that failed; nil: none

	draws    []usage.Draw
	measured []usage.Measured
	compared [1]usage.Measured // the memory of measured
	breakers []usage.Breaker
	matches  []usage.Match
	skips    []usage.Skip
}

// claim is a node of the tree, and whether the traversal has claimed its probe: the one request
// that tests whether a half-open circuit may close.
type claim struct {
	n     *node
	probe bool
}

// frame is a strategy that the traversal is inside of.
type frame struct {
	n          *node
	probe      bool    // the traversal has claimed the probe of n itself
	candidates []*node // of a fallback, in order
	at         int
	bypass     bool // no candidate is healthy: breakers are ignored
}

// maxStates bounds the breaker states and skips that one traversal records.
const maxStates = 100

// Start begins a traversal.
func (t *Tree) Start(ctx Context) *Traversal {
	w := new(Traversal)
	t.StartIn(w, ctx)
	return w
}

// StartIn is Start in memory of the caller, which no other traversal may use any more.
func (t *Tree) StartIn(w *Traversal, ctx Context) {
	*w = Traversal{tree: t, ctx: ctx}
	w.stack = w.frames[:0]
	w.measured = w.compared[:0]
}

// Prompts are the prompts of the tree's leaves; nil unless each leaf has one.
func (w *Traversal) Prompts() []string { return w.tree.Prompts() }

// Mode, Slugs and FetchIntegrated are those of the tree.
func (w *Traversal) Mode() string          { return w.tree.Mode() }
func (w *Traversal) Slugs() []string       { return w.tree.Slugs() }
func (w *Traversal) FetchIntegrated() bool { return w.tree.FetchIntegrated() }

// Tree returns the tree.
func (w *Traversal) Tree() *Tree { return w.tree }

// Leaves returns all targets of the tree.
func (w *Traversal) Leaves() []*Leaf { return w.tree.leaves }

// IsSingle reports whether the tree has one target.
func (w *Traversal) IsSingle() bool { return len(w.tree.leaves) == 1 }

// AppendDraws appends the decisions by weight so far to dst.
func (w *Traversal) AppendDraws(dst []usage.Draw) []usage.Draw { return append(dst, w.draws...) }

// Breakers appends the breaker states on which decisions were based to dst: those of the
// targets that were chosen, and of all that were not closed.
func (w *Traversal) Breakers(dst []usage.Breaker) []usage.Breaker { return append(dst, w.breakers...) }

// Matches appends the choices of conditional strategies to dst.
func (w *Traversal) Matches(dst []usage.Match) []usage.Match { return append(dst, w.matches...) }

// Skips appends the targets that were skipped to dst.
func (w *Traversal) Skips(dst []usage.Skip) []usage.Skip { return append(dst, w.skips...) }

// Reject notes that the gateway rejected the target that Next has just given.
func (w *Traversal) Reject(code fault.Code, status int) {
	if w.at != nil {
		w.skip(usage.Skip{Path: w.at.path, Reason: usage.SkipRejected, Code: string(code), Status: status})
	}
}

// Next returns the target to try: first with any Outcome, then with the outcome of the
// previous target. It returns nil if the previous response is final, thus never at the first
// call. A fault ends the request.
func (w *Traversal) Next(prev Outcome) (*Leaf, *fault.Fault) {
	switch {
	case w.done:
		return nil, nil
	case !w.started:
		w.started = true
		return w.descend(w.tree.root, false)
	}
	w.report(w.at, w.probe, prev)
	observeOutcome(w, prev)
	for len(w.stack) > 0 {
		top := &w.stack[len(w.stack)-1]
		if top.n.mode == ModeFallback && !prev.Final && !top.n.stops(prev) {
			if child, probe := w.following(top); child != nil {
				w.Settle(prev.Status) // the pending response is abandoned
				return w.descend(child, probe)
			}
		}
		// The response of a child strategy is the response of its node.
		w.report(top.n, top.probe, prev)
		w.stack = w.stack[:len(w.stack)-1]
	}
	w.done = true
	return nil, nil
}

// Settle reports the end of pending responses to the breakers: with the first status, or with
// the status of what interrupted them. It does nothing if none is pending.
func (w *Traversal) Settle(status int) {
	observeSettled(w, status)
	for _, c := range w.pending {
		w.ctx.Breakers.Record(c.n.path, c.n.breaker, status, c.probe)
	}
	w.pending = w.pending[:0]
}

// End ends a traversal without a response of its last target, so that no probe stays claimed. It
// does nothing after the end.
func (w *Traversal) End() {
	if w.started && !w.done {
		w.giveBack(w.at, w.probe)
		uncountInFlight(w)
		w.unwind()
	}
}

// unwind releases the probes of all strategies and ends the traversal.
func (w *Traversal) unwind() {
	for i := range w.stack {
		w.giveBack(w.stack[i].n, w.stack[i].probe)
	}
	w.done = true
}

func (w *Traversal) giveBack(n *node, probe bool) {
	if probe {
		w.ctx.Breakers.Release(n.path)
	}
}

// report reports the final response of n to its breaker.
func (w *Traversal) report(n *node, probe bool, o Outcome) {
	switch {
	case w.ctx.Breakers == nil || !n.guarded:
	case o.Pending && !o.Rejected:
		if w.pending == nil {
			w.pending = w.claims[:0]
		}
		w.pending = append(w.pending, claim{n, probe})
	case !o.Rejected:
		w.ctx.Breakers.Record(n.path, n.breaker, o.Status, probe)
	default:
		w.giveBack(n, probe)
	}
}

// stops reports whether a fallback ends with an outcome: one that the gateway itself made, one
// whose status on_status_codes does not list, or, without that list, a success.
func (n *node) stops(o Outcome) bool {
	if o.Exception {
		return true
	}
	if n.onStatus != nil {
		return !slices.Contains(n.onStatus, o.Status)
	}
	return o.Status >= 200 && o.Status <= 299
}

// following returns the next candidate of a fallback that may be tried.
func (w *Traversal) following(f *frame) (*node, bool) {
	for f.at+1 < len(f.candidates) {
		f.at++
		if f.candidates[f.at] == w.hedgeFailed {
			continue
		}
		if probe, ok := w.admit(f.candidates[f.at], f.bypass); ok {
			return f.candidates[f.at], probe
		}
	}
	return nil, false
}

// descend chooses from n down to a leaf. probe: the probe of n was claimed.
func (w *Traversal) descend(n *node, probe bool) (*Leaf, *fault.Fault) {
	for n.leaf == nil {
		next, nextProbe, f := w.choose(n, probe)
		if f != nil {
			w.unwind()
			return nil, f
		}
		n, probe = next, nextProbe
	}
	w.at, w.probe = n, probe
	countInFlight(w)
	return n.leaf, nil
}

// choose picks a child of n and leaves a frame for n.
func (w *Traversal) choose(n *node, probe bool) (child *node, claimed bool, f *fault.Fault) {
	w.stack = append(w.stack, frame{n: n, probe: probe})
	top := &w.stack[len(w.stack)-1]
	if n.mode == ModeConditional {
		child, f = w.match(n)
		return child, false, f
	}
	top.candidates, top.bypass = w.healthy(n)
	for {
		if (n.mode == ModeLoadbalance || Compares(n.mode)) && !top.bypass && weights(top.candidates) <= 0 {
			top.candidates, top.bypass = n.children, true // an open breaker is better than no target
		}
		if child, f = w.pick(n, top.candidates); f != nil {
			return nil, false, f
		}
		top.at = slices.Index(top.candidates, child)
		var ok bool
		if claimed, ok = w.admit(child, top.bypass); ok {
			return child, claimed, nil
		}
		// Another request has just claimed the probe.
		rest := make([]*node, 0, len(top.candidates))
		for _, c := range top.candidates {
			if c != child {
				rest = append(rest, c)
			}
		}
		if top.candidates = rest; len(rest) == 0 {
			top.candidates, top.bypass = n.children, true
		}
	}
}

// pick takes one of the candidates, as specified by the strategy.
func (w *Traversal) pick(n *node, candidates []*node) (*node, *fault.Fault) {
	switch {
	case n.mode == ModeLoadbalance:
		return w.balance(n, candidates)
	case Compares(n.mode):
		return compareMeasures(w, n, candidates)
	}
	return candidates[0], nil
}

// healthy omits the children with an open breaker. If all are open, the breakers are
// ignored.
func (w *Traversal) healthy(n *node) (candidates []*node, bypass bool) {
	if w.ctx.Breakers == nil || !n.guards || w.ctx.Breakers.AllClosed() {
		return n.children, false
	}
	candidates = make([]*node, 0, len(n.children))
	for _, child := range n.children {
		if !child.guarded {
			candidates = append(candidates, child)
			continue
		}
		reason := ""
		switch w.ctx.Breakers.State(child.path) {
		case Open:
			reason = usage.SkipOpen
		case Probing:
			reason = usage.SkipProbe
		}
		if reason == "" {
			candidates = append(candidates, child)
			continue
		}
		w.saw(usage.Breaker{Path: child.path, Open: true})
		w.skip(usage.Skip{Path: child.path, Reason: reason})
	}
	if len(candidates) == 0 {
		return n.children, true
	}
	return candidates, false
}

// admit claims the probe of a child that is half-open, and notes its state. ok false:
// another request is probing it.
func (w *Traversal) admit(child *node, bypass bool) (claimed, ok bool) {
	if w.ctx.Breakers == nil || !child.guarded || bypass {
		return false, true
	}
	reason := usage.SkipProbe
	switch w.ctx.Breakers.State(child.path) {
	case Closed:
		w.saw(usage.Breaker{Path: child.path})
		return false, true
	case Open:
		reason = usage.SkipOpen // it opened since the candidates were found
	case HalfOpen:
		if w.ctx.Breakers.Claim(child.path, child.breaker) {
			w.saw(usage.Breaker{Path: child.path, Probe: true})
			return true, true
		}
	}
	w.saw(usage.Breaker{Path: child.path, Open: true})
	w.skip(usage.Skip{Path: child.path, Reason: reason})
	return false, false
}

func (w *Traversal) saw(b usage.Breaker) {
	if len(w.breakers) < maxStates {
		w.breakers = append(w.breakers, b)
	}
}

func (w *Traversal) skip(s usage.Skip) {
	if len(w.skips) < maxStates {
		w.skips = append(w.skips, s)
	}
}

// balance draws a child by weight, or returns the one of the sticky rule.
func (w *Traversal) balance(n *node, candidates []*node) (*node, *fault.Fault) {
	total := weights(candidates)
	if total <= 0 {
		return nil, noWeight(n)
	}
	if key, ok := stickyKeyOf(w, n); ok {
		return stickTo(w, n, key, candidates), nil
	}
	var number uint32
	switch {
	case w.ctx.Earlier != nil:
		number = w.ctx.Earlier.Number(n.path)
	case w.ctx.Random != nil:
		number = w.ctx.Random()
	}
	selected := pick(candidates, total, number)
	w.draws = append(w.draws, usage.Draw{Path: n.path, Number: number, Index: selected})
	return usable(candidates, selected), nil
}

func noWeight(n *node) *fault.Fault {
	return fault.New(fault.InvalidConfig, field(n.path, "targets"), "No provider selected, please check the weights")
}

func weights(nodes []*node) (total float64) {
	for _, n := range nodes {
		total += n.weight
	}
	return total
}

// pick returns the index of the child with the share of total that contains the number. The
// number is uniform over 32 bits. A weight of 0 has no share.
func pick(candidates []*node, total float64, number uint32) int {
	r := float64(number) / (1 << 32) * total
	last := -1
	for _, c := range candidates {
		if c.weight <= 0 {
			continue
		}
		if last = c.index; r < c.weight {
			return last
		}
		r -= c.weight
	}
	return last // rounding left a small rest
}

// match gives the target of the first condition that holds, or the default.
func (w *Traversal) match(n *node) (*node, *fault.Fault) {
	at, name, which := n.def, n.defName, -1
	for i := range n.conds {
		if n.conds[i].query.matches(w.ctx.lookup) {
			at, name, which = n.conds[i].then, n.conds[i].name, i
			break
		}
	}
	switch {
	case at != nil:
		w.matches = append(w.matches, usage.Match{Path: n.path, Condition: which, Index: at.index})
		return at, nil
	case name == "":
		return nil, fault.New(fault.InvalidConfig, field(n.path, "strategy.conditions"), "Query router did not resolve to any valid target")
	}
	return nil, fault.Newf(fault.InvalidConfig, field(n.path, "strategy"), "Invalid target name found in the query router: %s", name)
}
