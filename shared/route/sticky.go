package route

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strconv"
	"sync"
	"time"

	"gateway/shared/usage"
	"gateway/shared/wire"
)

// StickyKey is the hash of the values that keep requests together, and of the place of the
// rule.
type StickyKey [sha256.Size]byte

// Sticky remembers to which target the requests with one key went. A key is unique within
// one config; the implementation adds the config.
type Sticky interface {
	// Index returns the remembered index; false if there is none or it has expired.
	Index(key StickyKey) (index int, ok bool)
	// Store remembers an index for ttl from now. If one is remembered already, its time is not
	// extended.
	Store(key StickyKey, index int, ttl time.Duration)
}

// stickTo chooses among the candidates by the sticky rule of n: the remembered target while
// it may be used, or else the one that the key's hash gives.
func stickTo(w *Traversal, n *node, key StickyKey, candidates []*node) *node {
	if index, ok := storedTarget(w, n, key); ok {
		if c := usable(candidates, index); c != nil {
			w.draws = append(w.draws, usage.Draw{Path: n.path, Index: index, Sticky: usage.StickyReused})
			return c
		}
	}
	c, number := rendezvous(candidates, key)
	w.draws = append(w.draws, usage.Draw{Path: n.path, Number: number, Index: c.index, Sticky: usage.StickyHash})
	if w.ctx.Sticky != nil {
		// The substitute for a skipped target is not remembered, so that every process returns
		// to the same target.
		if first, _ := rendezvous(n.children, key); first == c {
			w.ctx.Sticky.Store(key, c.index, n.sticky.TTL)
		}
	}
	return c
}

// storedTarget is the target that is remembered for a key.
func storedTarget(w *Traversal, n *node, key StickyKey) (index int, ok bool) {
	if w.ctx.Earlier != nil {
		return w.ctx.Earlier.StickyIndex(n.path)
	}
	if w.ctx.Sticky != nil {
		return w.ctx.Sticky.Index(key)
	}
	return 0, false
}

// usable gives the candidate with an index, if it may be chosen.
func usable(candidates []*node, index int) *node {
	for _, c := range candidates {
		if c.index == index && c.weight > 0 {
			return c
		}
	}
	return nil
}

// rendezvous is weighted highest-random-weight hashing: every candidate draws a number from
// the key, and the smallest -ln(u)/weight wins. Over many keys each candidate gets its
// share of the weights. When a candidate is removed, only its keys move. At least one
// candidate has a weight.
func rendezvous(candidates []*node, key StickyKey) (winner *node, number uint32) {
	seed := binary.LittleEndian.Uint64(key[:])
	best := math.Inf(1)
	for _, c := range candidates {
		if c.weight <= 0 {
			continue
		}
		h := mix(seed ^ c.id)
		u := (float64(h>>11) + 0.5) / (1 << 53) // in (0, 1)
		if score := -math.Log(u) / c.weight; score < best || winner == nil {
			best, winner, number = score, c, uint32(h>>32)
		}
	}
	return winner, number
}

// mix spreads the bits of a 64-bit number (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// identity is the number with which a target draws. It comes from the target's name if it
// has one, so that it may move among its siblings, otherwise from its path.
func identity(name, path string) uint64 {
	text := "path\x00" + path
	if name != "" {
		text = "name\x00" + name
	}
	sum := sha256.Sum256([]byte(text))
	return binary.LittleEndian.Uint64(sum[:])
}

// stickyKeyOf is the key of the request; false if no rule applies or all values are missing.
func stickyKeyOf(w *Traversal, n *node) (key StickyKey, ok bool) {
	if n.sticky == nil {
		return key, false
	}
	text := append(make([]byte, 0, 128), n.path...)
	for _, name := range n.sticky.Fields {
		v := w.ctx.lookup(name)
		ok = ok || v.kind != wire.KindNone && v.kind != wire.KindNull
		word := v.text
		switch v.kind {
		case wire.KindNumber:
			word = strconv.FormatFloat(v.num, 'g', -1, 64)
		case wire.KindBool:
			word = strconv.FormatBool(v.on)
		}
		text = append(text, 0, byte(v.kind))
		text = binary.AppendUvarint(text, uint64(len(word)))
		text = append(text, word...)
	}
	if ok {
		key = sha256.Sum256(text)
	}
	return key, ok
}

// Picks are the sticky picks that a process remembers, up to a bound. They are safe for
// concurrent use.
type Picks struct {
	now func() time.Time

	mu    sync.Mutex
	picks map[pickKey]stickyEntry
}

type pickKey struct {
	org, workspace, config string
	key                    StickyKey
}

type stickyEntry struct {
	index int
	until time.Time
}

// maxPicks bounds the picks that are remembered. Beyond it, expired ones are evicted
// first, and then any: the hash gives the same target again.
const maxPicks = 50_000

// NewPicks returns empty picks; now is the clock.
func NewPicks(now func() time.Time) *Picks {
	return &Picks{now: now, picks: make(map[pickKey]stickyEntry)}
}

// Of gives the picks of one config, for all its versions: a pick outlives a change of
// weights while its target may be used.
func (p *Picks) Of(org, workspace, config string) Sticky {
	return configPicks{p, pickKey{org: org, workspace: workspace, config: config}}
}

type configPicks struct {
	*Picks
	of pickKey
}

func (p configPicks) Index(key StickyKey) (int, bool) {
	p.of.key = key
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.picks[p.of]
	return k.index, ok && p.now().Before(k.until)
}

func (p configPicks) Store(key StickyKey, index int, ttl time.Duration) {
	p.of.key = key
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if k, ok := p.picks[p.of]; ok && now.Before(k.until) && k.index == index {
		return
	}
	if len(p.picks) >= maxPicks {
		p.evict(now)
	}
	p.picks[p.of] = stickyEntry{index, now.Add(ttl)}
}

// evict evicts entries until a tenth of the capacity is free. The lock is held.
func (p *Picks) evict(now time.Time) {
	for k, v := range p.picks {
		if !now.Before(v.until) {
			delete(p.picks, k)
		}
	}
	for k := range p.picks {
		if len(p.picks) <= maxPicks*9/10 {
			return
		}
		delete(p.picks, k)
	}
}
