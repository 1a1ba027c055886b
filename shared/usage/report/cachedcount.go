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

// The number of a segment's records that match a filter never changes, so it is cached:
// clients request the same list again and again, page by page.

// filterKey returns a cache key for the filter of a plan, without its time.
func (p *plan) filterKey() string {
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

// countsAll reports whether all records of a part are counted: none is excluded by the
// time, by its workspace's retention, or as a duplicate.
func (p *plan) countsAll(part *segment.Part) bool {
	return part.Min >= p.from && part.Max <= p.to && p.cut.Most() <= part.Min && !part.Overlaps()
}

// useCached adds the cached count of a part.
func (c *counter) useCached(a *segment.Archive, p *plan, part *segment.Part) bool {
	c.part = 0
	if !p.countsAll(part) {
		return false
	}
	n, ok := a.CachedCount(&part.Manifest, c.filter)
	c.n.Add(n)
	return ok
}

// store caches the count of a part that was read completely.
func (c *counter) store(a *segment.Archive, p *plan, part *segment.Part) {
	if p.countsAll(part) {
		a.CacheCount(&part.Manifest, c.filter, c.part)
	}
}
