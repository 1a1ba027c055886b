package spandedup

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"gateway/shared/pricing"
)

// MaxSpans is the number of remembered spans of a trace: the last ones, preferring those
// that report calls.
const MaxSpans = 2000

func sortNodes(list []*node) {
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.seq, b.seq) })
}

// version is the first byte of a row's spans.
const version = 1

// Flags of a node.
const (
	isClaim = 1 << iota
	isCounted
	isPartly
	isLogged
)

// encode writes the trace: for each span its ids and flags, for claims their times,
// response, usage and verdict.
func (t *trace) encode() []byte {
	list := t.inOrder()
	if over := len(list) - MaxSpans; over > 0 {
		list = slices.DeleteFunc(list, func(n *node) bool {
			if over > 0 && !n.Claims {
				over--
				return true
			}
			return false
		})
		list = list[max(len(list)-MaxSpans, 0):]
	}
	b := append(make([]byte, 0, 32*len(list)+1), version)
	for _, n := range list {
		b = append(append(b, n.ID[:]...), n.Parent[:]...)
		flags := byte(0)
		for i, set := range [...]bool{n.Claims, n.counted, n.partly, n.Logged} {
			if set {
				flags |= 1 << i
			}
		}
		if b = append(b, flags); !n.Claims {
			continue
		}
		b = binary.AppendVarint(b, n.Start)
		b = binary.AppendVarint(b, n.End-n.Start)
		b = binary.LittleEndian.AppendUint64(b, n.Response)
		b = append(b, n.with[:]...)
		b = appendUsage(appendUsage(b, n.Usage), n.left)
		if n.partly {
			b = appendUsage(b, n.charged)
		}
	}
	return b
}

func appendUsage(b []byte, u *pricing.Usage) []byte {
	if u == nil {
		return append(b, 0)
	}
	at := len(b)
	b = append(b, 0) // how many classes follow, which fits a byte
	for set := u.Classes(); set != 0; set &= set - 1 {
		c := pricing.Class(bits.TrailingZeros64(set))
		if n := u.N(c); n > 0 {
			b[at]++
			b = binary.AppendUvarint(append(b, byte(c)), uint64(min(n, pricing.MaxUnits)))
		}
	}
	return b
}

var errDamaged = errors.New("claims: the row of a trace is damaged")

// decode reads what encode wrote.
func decode(b []byte) (*trace, error) {
	t := &trace{nodes: map[ID]*node{}}
	if len(b) == 0 {
		return t, nil
	}
	r := rowReader{b: b}
	if r.byte() != version {
		return nil, errDamaged
	}
	for len(r.b) > 0 && !r.bad {
		n := &node{seq: t.next}
		t.next++
		n.ID, n.Parent = r.id(), r.id()
		flags := r.byte()
		n.Claims, n.counted, n.partly, n.Logged = flags&isClaim != 0, flags&isCounted != 0, flags&isPartly != 0, flags&isLogged != 0
		if n.Claims {
			n.Start = r.int()
			n.End = n.Start + r.int()
			n.Response = r.word()
			n.with = r.id()
			n.Usage, n.left = r.usage(), r.usage()
			if n.partly {
				n.charged = r.usage()
			}
		}
		t.nodes[n.ID] = n
	}
	if r.bad {
		return nil, errDamaged
	}
	return t, nil
}

// rowReader reads a row from front to back; bad is set at its end.
type rowReader struct {
	b   []byte
	bad bool
}

func (r *rowReader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, n)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *rowReader) byte() byte   { return r.take(1)[0] }
func (r *rowReader) id() (id ID)  { return ID(r.take(len(id))) }
func (r *rowReader) word() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *rowReader) int() int64 {
	n, size := binary.Varint(r.b)
	r.skip(size)
	return n
}

func (r *rowReader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	r.skip(size)
	return n
}

func (r *rowReader) skip(size int) {
	if size <= 0 {
		r.bad, r.b = true, nil
		return
	}
	r.b = r.b[size:]
}

func (r *rowReader) usage() *pricing.Usage {
	count := r.uint()
	if count == 0 {
		return nil
	}
	u := new(pricing.Usage)
	if count > uint64(pricing.NumClasses) {
		r.bad, r.b = true, nil
		return u
	}
	for range count {
		c, n := pricing.Class(r.byte()), r.uint()
		if c >= pricing.NumClasses || n > pricing.MaxUnits {
			r.bad = true
			return u
		}
		u.Set(c, int64(n))
	}
	return u
}
