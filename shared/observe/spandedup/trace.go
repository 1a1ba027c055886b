package spandedup

import (
	"gateway/shared/pricing"
)

// ID is the id of a span; zero for none.
type ID [8]byte

// Span is a span as far as charges depend on it.
type Span struct {
	ID, Parent ID
	Claims     bool           // it reports a call, or the usage of calls
	Usage      *pricing.Usage // of a claim; it is not changed. nil means none
	Priced     bool           // its usage can be priced, so it may replace that of calls below it
	Start, End int64          // milliseconds
	Response   uint64         // hash of the id of the response; 0 if there is none
	Logged     bool           // it is a call that the gateway has logged, and counts in any case
}

// Verdict specifies how a span is charged.
type Verdict struct {
	Counts bool
	Usage  *pricing.Usage // what it is charged for, if it counts
	With   ID             // if it does not count: the span with which its call is counted
}

// node is a span of a trace.
type node struct {
	Span
	open    bool // arrived with the request that is decided
	counted bool
	partly  bool           // charged for left only
	left    *pricing.Usage // charged usage that no call below has been found for yet
	charged *pricing.Usage // if partly
	with    ID
	seq     int // order of arrival
}

// trace is the known part of a trace.
type trace struct {
	nodes map[ID]*node
	next  int
}

// decide adds spans to the trace and returns a verdict for each of them. A span that is
// already known gets the same verdict as before.
func (t *trace) decide(spans []Span) []Verdict {
	fresh := make([]*node, 0, len(spans))
	for i := range spans {
		s := &spans[i]
		if _, known := t.nodes[s.ID]; known {
			continue
		}
		n := &node{Span: *s, open: s.Claims, seq: t.next}
		if s.Logged {
			n.open, n.counted = false, true
		}
		t.next++
		t.nodes[s.ID] = n
		fresh = append(fresh, n)
	}
	below := t.below()
	for _, n := range fresh {
		if !n.open {
			continue
		}
		if by, repeated := below[n.ID]; repeated {
			n.with = by
			continue
		}
		t.charge(n)
	}
	out := make([]Verdict, len(spans))
	for i := range spans {
		n := t.nodes[spans[i].ID]
		v := Verdict{Counts: n.counted, With: n.with}
		if n.counted {
			if v.Usage = spans[i].Usage; n.partly {
				v.Usage = n.charged
			}
		}
		out[i] = v
	}
	for _, n := range fresh {
		n.open = false
	}
	return out
}

// below returns the spans that have claims below them, with one of these.
func (t *trace) below() map[ID]ID {
	below := map[ID]ID{}
	var roots, open, loose []*node
	responses := map[uint64][]*node{}
	for _, n := range t.inOrder() {
		if !n.Claims {
			continue
		}
		// Siblings that report the same response are the same call.
		if n.Response != 0 {
			for _, other := range responses[n.Response] {
				if n.open && overlap(n, other) && !t.above(n, other) && !t.above(other, n) {
					below[n.ID] = other.ID
				}
			}
			if len(responses[n.Response]) < maxSiblings {
				responses[n.Response] = append(responses[n.Response], n)
			}
		}
		if n.Parent == (ID{}) {
			roots = append(roots, n)
			continue
		}
		if n.open {
			open = append(open, n)
		}
		_, whole := t.walk(n, func(up *node) bool {
			if _, known := below[up.ID]; known {
				return false
			}
			below[up.ID] = n.ID
			return true
		})
		if !whole {
			loose = append(loose, n)
		}
	}
	// A span between may arrive last.
	for _, n := range loose {
		for _, root := range roots {
			if _, known := below[root.ID]; !known && within(n, root) {
				below[root.ID] = n.ID
			}
		}
		for _, up := range open {
			if _, known := below[up.ID]; !known && t.repeats(up, n) {
				below[up.ID] = n.ID
			}
		}
	}
	return below
}

// maxSiblings limits how many spans with one response are compared.
const maxSiblings = 8

// repeats reports whether a claim seems to be above another one, from which a span that has
// not arrived separates it: it has the same usage and took longer.
func (t *trace) repeats(up, n *node) bool {
	if up == n || !used(n.Usage) || !used(up.Usage) || up.Start > n.Start || up.End < n.End || up.Start == n.Start && up.End == n.End || !equal(up.Usage, n.Usage) {
		return false
	}
	stay := func(*node) bool { return true }
	first, _ := t.walk(up, stay)
	second, whole := t.walk(n, stay)
	return !whole && first.Parent != second.Parent && first != second
}

// inOrder returns the nodes in the order in which they arrived.
func (t *trace) inOrder() []*node {
	list := make([]*node, 0, len(t.nodes))
	for _, n := range t.nodes {
		list = append(list, n)
	}
	sortNodes(list)
	return list
}

// walk calls f for the known spans above n, until it returns false. whole reports whether
// it ended at a root or by f; otherwise a span between has not arrived, and last is the
// one below it.
func (t *trace) walk(n *node, f func(*node) bool) (last *node, whole bool) {
	at := n
	for range t.nodes { // parents of a faulty sender may form a circle
		if at.Parent == (ID{}) {
			return at, true
		}
		up := t.nodes[at.Parent]
		if up == nil {
			return at, false
		}
		if up == n || !f(up) {
			return up, true
		}
		at = up
	}
	return at, true
}

// above reports whether a is above b.
func (t *trace) above(a, b *node) (found bool) {
	t.walk(b, func(up *node) bool {
		found = found || up == a
		return !found
	})
	return found
}

// charge counts a claim that has none below it. What spans above it were charged for before
// it arrived is part of its usage.
func (t *trace) charge(n *node) {
	n.counted = true
	usage := n.Usage
	var covered *node
	cover := func(up *node) {
		if !up.counted || up == n {
			return
		}
		var found bool
		if usage, up.left, found = take(usage, up.left); found || !used(n.Usage) {
			covered = up
		}
	}
	last, whole := t.walk(n, func(up *node) bool { cover(up); return true })
	if !whole && last != nil {
		for _, up := range t.inOrder() {
			if up.Claims && (up.Parent == (ID{}) && within(n, up) || t.repeats(up, n)) {
				cover(up)
			}
		}
	}
	if covered != nil {
		if !used(usage) {
			n.counted, n.with = false, covered.ID
			return
		}
		n.partly, n.charged = true, usage
	}
	if n.Priced {
		n.left = usage
	}
}

// take returns a charge and the rest without the common part, and whether there was any.
// It does not change its arguments.
func take(usage, left *pricing.Usage) (rest, remains *pricing.Usage, found bool) {
	if usage == nil || left == nil {
		return usage, left, false
	}
	a, b := *usage, *left
	for c := range pricing.NumClasses {
		if n := min(a.N(c), b.N(c)); n > 0 {
			a.Add(c, -n)
			b.Add(c, -n)
			found = true
		}
	}
	if !found {
		return usage, left, false
	}
	return &a, &b, true
}

// used reports whether anything is counted.
func used(u *pricing.Usage) bool {
	if u == nil {
		return false
	}
	for c := range pricing.NumClasses {
		if u.N(c) > 0 {
			return true
		}
	}
	return false
}

// equal reports whether two usages have the same tokens in and out. Instrumentations differ
// in how they split them.
func equal(a, b *pricing.Usage) bool {
	return a.InputTokens() == b.InputTokens() && a.OutputTokens() == b.OutputTokens()
}

// skew is how much clocks of one trace may differ, in milliseconds.
const skew = 1000

// within reports whether a began during b.
func within(a, b *node) bool { return a.Start >= b.Start-skew && a.Start <= b.End+skew }

func overlap(a, b *node) bool { return a.Start <= b.End && b.Start <= a.End }
