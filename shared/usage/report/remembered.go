package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gateway/shared/usage/segment"
)

// How many records of a segment pass a filter never changes, so it is counted only once:
// the same list is asked for again and again, and page by page.

// tokenOf makes a name for the filter of a plan, without its time.
func (p *plan) tokenOf() string {
	var b strings.Builder
	for d, set := range p.dims {
		if set != nil {
			fmt.Fprintf(&b, "%d=%q\n", d, slices.Sorted(maps.Keys(set)))
		}
	}
	fmt.Fprintf(&b, "%q\n", p.models)
	for _, key := range slices.Sorted(maps.Keys(p.metadata)) {
		fmt.Fprintf(&b, "%q=%q\n", key, p.metadata[key])
	}
	for _, r := range p.ranges {
		fmt.Fprintf(&b, "%d:", r.of)
		for _, end := range []*int64{r.Min, r.Max} {
			if end != nil {
				fmt.Fprintf(&b, "%d", *end)
			}
			b.WriteByte(',')
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:16])
}

// settled tells whether all records of a part are counted: none is left out because of the
// time, because its workspace no longer keeps it, or because another part has it too.
func (p *plan) settled(part *segment.Part) bool {
	return part.Min >= p.from && part.Max <= p.to && p.cut.Most() <= part.Min && !part.Overlaps()
}

// known adds what was counted of a part earlier.
func (c *counter) known(a *segment.Archive, p *plan, part *segment.Part) bool {
	c.own = 0
	if !p.settled(part) {
		return false
	}
	n, ok := a.Counted(&part.Manifest, c.filter)
	c.n.Add(n)
	return ok
}

// learn keeps the count of a part that was read completely.
func (c *counter) learn(a *segment.Archive, p *plan, part *segment.Part) {
	if p.settled(part) {
		a.Count(&part.Manifest, c.filter, c.own)
	}
}
