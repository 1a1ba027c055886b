package route

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// Context is what decisions look at. Every field may be empty.
type Context struct {
	Metadata    map[string]string
	Params      func(name string) (json.RawMessage, bool) // top-level field of the client's body
	Path        string                                    // of the URL, with /v1
	Random      func() uint32                             // uniform; nil draws 0
	BreakerOpen func(path string) bool                    // nil: no breakers
	Sticky      Sticky                                    // nil: sticky rules have no memory
}

// Sticky remembers which target the requests with one key go to.
type Sticky interface {
	// Pick gives the index remembered under key if valid accepts it; otherwise
	// the index that draw gives, which it then remembers for ttl. The scope of
	// key is one config; the implementation adds whose config it is.
	Pick(key string, ttl time.Duration, valid func(index int) bool, draw func() int) int
}

// Outcome is the answer of the target tried last.
type Outcome struct {
	Status    int
	Exception bool // made inside the gateway: no other target is tried
}

// Walk is one request's way through a tree. It is not for several goroutines.
type Walk struct {
	tree     *Tree
	ctx      Context
	stack    []frame
	started  bool
	done     bool
	draws    []usage.Draw
	breakers []usage.Breaker
}

// frame is a strategy that the walk is inside of.
type frame struct {
	n          *node
	candidates []*node // of a fallback, in order
	at         int
}

// Start begins a walk.
func (t *Tree) Start(ctx Context) *Walk { return &Walk{tree: t, ctx: ctx} }

// Mode, Slugs and FetchIntegrated are those of the tree.
func (w *Walk) Mode() string          { return w.tree.Mode() }
func (w *Walk) Slugs() []string       { return w.tree.Slugs() }
func (w *Walk) FetchIntegrated() bool { return w.tree.FetchIntegrated() }

// Draws appends the random decisions so far to dst.
func (w *Walk) Draws(dst []usage.Draw) []usage.Draw { return append(dst, w.draws...) }

// Breakers appends the breaker states that the walk has looked at to dst.
func (w *Walk) Breakers(dst []usage.Breaker) []usage.Breaker { return append(dst, w.breakers...) }

// Next gives the target to try: first with any Outcome, then with the outcome
// of the one before. nil: the last answer is final. A fault ends the request.
func (w *Walk) Next(prev Outcome) (*Leaf, *fault.Fault) {
	switch {
	case w.done:
		return nil, nil
	case !w.started:
		w.started = true
		return w.descend(w.tree.root)
	}
	for len(w.stack) > 0 {
		top := &w.stack[len(w.stack)-1]
		if top.at+1 < len(top.candidates) && !top.n.stops(prev) {
			top.at++
			return w.descend(top.candidates[top.at])
		}
		// The answer of a child strategy is the answer of its node.
		w.stack = w.stack[:len(w.stack)-1]
	}
	w.done = true
	return nil, nil
}

// stops is the stop rule of a fallback.
func (n *node) stops(o Outcome) bool {
	if o.Exception {
		return true
	}
	if n.onStatus != nil {
		return !slices.Contains(n.onStatus, o.Status)
	}
	return o.Status >= 200 && o.Status <= 299
}

// descend goes down from n to a leaf.
func (w *Walk) descend(n *node) (*Leaf, *fault.Fault) {
	for n.leaf == nil {
		next, f := w.choose(n)
		if f != nil {
			w.done = true
			return nil, f
		}
		n = next
	}
	return n.leaf, nil
}

// choose picks a child of n. Only a fallback leaves a frame: the other
// strategies have no second child to try.
func (w *Walk) choose(n *node) (*node, *fault.Fault) {
	if n.mode == ModeConditional {
		return w.match(n)
	}
	candidates := w.healthy(n)
	switch n.mode {
	case ModeFallback:
		w.stack = append(w.stack, frame{n: n, candidates: candidates})
		return candidates[0], nil
	case ModeLoadbalance:
		return w.balance(n, candidates)
	}
	return candidates[0], nil
}

// healthy leaves out the children with an open breaker, unless all are open.
func (w *Walk) healthy(n *node) []*node {
	if w.ctx.BreakerOpen == nil {
		return n.children
	}
	var healthy []*node
	for _, child := range n.children {
		open := false
		if child.breaker != nil {
			open = w.ctx.BreakerOpen(child.path)
			w.breakers = append(w.breakers, usage.Breaker{Path: child.path, Open: open})
		}
		if !open {
			healthy = append(healthy, child)
		}
	}
	if len(healthy) == 0 {
		return n.children
	}
	return healthy
}

// balance draws a child by weight, or keeps to the one that the sticky rule
// remembers.
func (w *Walk) balance(n *node, candidates []*node) (*node, *fault.Fault) {
	total := weights(candidates)
	if total <= 0 { // what is healthy has no share: better an open breaker than none
		candidates = n.children
		total = weights(candidates)
	}
	if total <= 0 {
		return nil, fault.New(fault.InvalidConfig, field(n.path, "targets"), "No provider selected, please check the weights")
	}
	draw := func() int {
		var number uint32
		if w.ctx.Random != nil {
			number = w.ctx.Random()
		}
		chosen := pick(candidates, total, number)
		w.draws = append(w.draws, usage.Draw{Path: n.path, Number: number, Chosen: chosen})
		return chosen
	}
	find := func(index int) *node {
		for _, c := range candidates {
			if c.index == index && c.weight > 0 {
				return c
			}
		}
		return nil
	}
	if key := w.stickyKey(n); key != "" {
		index := w.ctx.Sticky.Pick(key, n.sticky.TTL, func(i int) bool { return find(i) != nil }, draw)
		if c := find(index); c != nil {
			return c, nil
		}
	}
	return find(draw()), nil
}

func weights(nodes []*node) (total float64) {
	for _, n := range nodes {
		total += n.weight
	}
	return total
}

// pick gives the index of the child in whose share of total the number falls,
// which is uniform over 32 bits. A weight of 0 has no share.
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
	return last // rounding left a little over
}

// stickyKey is the hash of the values that keep requests together; "" when no
// rule applies or all values are missing.
func (w *Walk) stickyKey(n *node) string {
	if n.sticky == nil || w.ctx.Sticky == nil {
		return ""
	}
	h := sha256.New()
	h.Write([]byte(n.path))
	found := false
	for _, name := range n.sticky.Fields {
		v := w.ctx.lookup(name)
		found = found || v.kind != wire.KindNone && v.kind != wire.KindNull
		text := v.text
		switch v.kind {
		case wire.KindNumber:
			text = strconv.FormatFloat(v.num, 'g', -1, 64)
		case wire.KindBool:
			text = strconv.FormatBool(v.on)
		}
		h.Write([]byte("\x00" + strconv.Itoa(int(v.kind)) + " " + strconv.Itoa(len(text)) + " " + text))
	}
	if !found {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// match gives the target of the first condition that holds, or the default.
func (w *Walk) match(n *node) (*node, *fault.Fault) {
	at, name := n.def, n.defName
	for i := range n.conds {
		if n.conds[i].query.matches(w.ctx.lookup) {
			at, name = n.conds[i].then, n.conds[i].name
			break
		}
	}
	switch {
	case at != nil:
		return at, nil
	case name == "":
		return nil, fault.New(fault.InvalidConfig, field(n.path, "strategy.conditions"), "Query router did not resolve to any valid target")
	}
	return nil, fault.Newf(fault.InvalidConfig, field(n.path, "strategy"), "Invalid target name found in the query router: %s", name)
}
