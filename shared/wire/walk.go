package wire

import (
	"bytes"
	"sort"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"gateway/shared/fault"
)

// KeySet is the top-level keys that a walk looks for. It is built once and then used by any
// number of goroutines.
type KeySet struct {
	keys   []string
	byLen  [][]int // indexes of the keys of each length
	cached atomic.Pointer[placesOf]
}

// placesOf are the indexes that one set has for the keys of another.
type placesOf struct {
	of *KeySet
	at []int
}

// NewKeySet builds a set. The index of a key in keys is its index in the
// results of a walk.
func NewKeySet(keys ...string) *KeySet {
	k := &KeySet{keys: keys}
	for i, key := range keys {
		for len(k.byLen) <= len(key) {
			k.byLen = append(k.byLen, nil)
		}
		k.byLen[len(key)] = append(k.byLen[len(key)], i)
	}
	return k
}

// Keys returns the keys in index order. The caller must not change the slice.
func (k *KeySet) Keys() []string { return k.keys }

// Index returns the index of a key; -1 when the set does not have it.
func (k *KeySet) Index(key string) int {
	if len(key) < len(k.byLen) {
		for _, i := range k.byLen[len(key)] {
			if k.keys[i] == key {
				return i
			}
		}
	}
	return -1
}

// Places returns the index in k of each key of another set; -1 for those that k does not
// have. It caches the result for the last set. The caller must not change the slice.
func (k *KeySet) Places(of *KeySet) []int {
	if known := k.cached.Load(); known != nil && known.of == of {
		return known.at
	}
	p := &placesOf{of, make([]int, len(of.keys))}
	for i, key := range of.keys {
		p.at[i] = k.Index(key)
	}
	k.cached.Store(p)
	return p.at
}

// Walk is the result of one structural walk of an object. It may be used again; its slices
// then keep their memory.
type Walk struct {
	Spans []Span // value of each wanted key, by key index
	Keys  []Span // each wanted key with its quotes, by key index
	// Arrays is how many arrays the value of each wanted key contains, counting itself, by
	// key index.
	Arrays []int

	ObjectStart int  // offset of '{'
	ObjectEnd   int  // offset after '}'
	Empty       bool // the object has no key
}

// Reset removes the fields. Their memory is reused.
func (w *Walk) Reset() { w.Spans = w.Spans[:0] }

func (w *Walk) reset(n int) {
	if min(cap(w.Spans), cap(w.Keys), cap(w.Arrays)) < n {
		spans := make([]Span, 2*n)
		w.Spans, w.Keys, w.Arrays = spans[:n:n], spans[n:], make([]int, n)
	}
	w.Spans, w.Keys, w.Arrays = w.Spans[:n], w.Keys[:n], w.Arrays[:n]
	clear(w.Spans)
	clear(w.Keys)
	clear(w.Arrays)
	w.ObjectStart, w.ObjectEnd, w.Empty = 0, 0, false
}

// Walk checks that body is one well-formed JSON object of at most MaxDepth levels and fills
// w with the places of the wanted keys. It does not allocate.
//
// The error is a *fault.Fault (400) that names the key and the byte offset. A wanted key
// that comes twice, has escapes or is in another case is rejected as well: parsers differ
// in these, and the gateway must decide by what the provider reads. Bytes inside of other
// values are not checked to be UTF-8; they are forwarded unchanged.
func (k *KeySet) Walk(body []byte, w *Walk) error {
	w.reset(len(k.keys))
	if f := k.walk(body, w); f != nil {
		return f
	}
	return nil
}

func (k *KeySet) walk(b []byte, w *Walk) *fault.Fault {
	i := skipSpace(b, 0)
	if i >= len(b) {
		return cutShort.fault(i, "")
	}
	if b[i] != '{' {
		return notObject.fault(i, "")
	}
	w.ObjectStart = i
	i = skipSpace(b, i+1)
	if w.Empty = i < len(b) && b[i] == '}'; w.Empty {
		return w.close(b, i)
	}
	for {
		if i >= len(b) {
			return cutShort.fault(i, "")
		}
		if b[i] != '"' {
			return unexpected.fault(i, "")
		}
		key := Span{Start: i}
		var why problem
		if i, why = skipString(b, i+1); why != fine {
			return why.fault(i, "")
		}
		key.End = i
		index, f := k.match(b, key, w)
		if f != nil {
			return f
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return orCut(b, i).fault(i, keyName(b, key))
		}
		if i = skipSpace(b, i+1); i >= len(b) {
			return cutShort.fault(i, keyName(b, key))
		}
		value := Span{Start: i}
		arrays := 0
		if i, arrays, why = skipCounting(b, i, MaxDepth-1); why != fine {
			return why.fault(i, keyName(b, key))
		}
		value.End = i
		if index >= 0 {
			w.Keys[index], w.Spans[index], w.Arrays[index] = key, value, arrays
		}
		if i = skipSpace(b, i); i >= len(b) {
			return cutShort.fault(i, "")
		}
		if b[i] == '}' {
			return w.close(b, i)
		}
		if b[i] != ',' {
			return unexpected.fault(i, keyName(b, key))
		}
		i = skipSpace(b, i+1)
	}
}

func orCut(b []byte, i int) problem {
	if i >= len(b) {
		return cutShort
	}
	return unexpected
}

// close handles the '}' at i and checks that nothing follows it.
func (w *Walk) close(b []byte, i int) *fault.Fault {
	w.ObjectEnd = i + 1
	if end := skipSpace(b, i+1); end < len(b) {
		return trailing.fault(end, "")
	}
	return nil
}

// match returns the index of the wanted key at span, -1 for any other key, and a fault
// for a wanted key that comes twice or in a misleading spelling.
func (k *KeySet) match(b []byte, span Span, w *Walk) (int, *fault.Fault) {
	key := b[span.Start+1 : span.End-1]
	for _, c := range key {
		if c >= utf8.RuneSelf || c == '\\' {
			return -1, k.misleading(b, span, key)
		}
	}
	if len(key) >= len(k.byLen) {
		return -1, nil
	}
	for _, i := range k.byLen[len(key)] {
		switch want := k.keys[i]; {
		case string(key) == want:
			if w.Spans[i].End != 0 {
				return -1, fault.Invalid(want, "%q occurs twice in the body, again at byte %d", want, span.Start)
			}
			return i, nil
		case equalFoldASCII(key, want):
			return -1, fault.Invalid(want, "%q at byte %d must be written as %q", key, span.Start, want)
		}
	}
	return -1, nil
}

// misleading rejects a key with escapes or letters outside of ASCII if some parser could
// take it for a wanted one, and a key that is not UTF-8.
func (k *KeySet) misleading(b []byte, span Span, key []byte) *fault.Fault {
	if !utf8.Valid(key) {
		return fault.Invalid("", "The key at byte %d is not valid UTF-8", span.Start)
	}
	text := key
	if bytes.IndexByte(key, '\\') >= 0 {
		text = appendUnescaped(nil, key)
	}
	for _, want := range k.keys {
		if strings.EqualFold(string(text), want) {
			return fault.Invalid(want, "The key at byte %d must be written as %q, without escapes", span.Start, want)
		}
	}
	return nil
}

func equalFoldASCII(a []byte, b string) bool {
	for i, c := range a {
		d := b[i]
		if c != d && (c^d != 0x20 || c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// keyName is the key at span in a form for faults; a long one is cut.
func keyName(b []byte, span Span) string {
	key := b[span.Start+1 : span.End-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		key = appendUnescaped(nil, key)
	}
	return clip(strings.ToValidUTF8(string(key), "\uFFFD"))
}

// clip cuts a name taken from a body so that a fault stays short.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	for i := range s { // i is always the start of a character
		if i > most-4 {
			return s[:i] + "..."
		}
	}
	return s
}

// Edit is one change to a JSON body. Make it with Replace, InsertKey,
// DeleteKey or Delete.
type Edit struct {
	Span Span
	New  []byte // replaces Span

	kind editKind
	key  string // of an insert
}

type editKind uint8

// The order in which edits that start at the same place are applied: an insert has no
// width, a deletion is wider than a replacement.
const (
	editInsert editKind = iota
	editDelete
	editReplace
)

// Replace replaces the value at span by raw. It changes nothing when the span is absent.
func Replace(span Span, raw []byte) Edit {
	return Edit{Span: span, New: raw, kind: editReplace}
}

// InsertKey adds "key":raw before the keys of the object that w walked. The object must not
// have the key.
func InsertKey(w *Walk, key string, raw []byte) Edit {
	return InsertAt(w.ObjectStart, key, raw)
}

// InsertAt is InsertKey for the object with its '{' at offset open.
func InsertAt(open int, key string, raw []byte) Edit {
	return Edit{Span: Span{open + 1, open + 1}, New: raw, kind: editInsert, key: key}
}

// SetKey replaces the value of the wanted key index, or adds the key when it is
// absent.
func (k *KeySet) SetKey(w *Walk, index int, raw []byte) Edit {
	if w.Spans[index].Absent() {
		return InsertKey(w, k.keys[index], raw)
	}
	return Replace(w.Spans[index], raw)
}

// DeleteKey removes the wanted key index, its value and its comma. It changes
// nothing when the key is absent.
func DeleteKey(w *Walk, index int) Edit {
	if w.Spans[index].Absent() {
		return Edit{kind: editDelete}
	}
	return Delete(Span{w.Keys[index].Start, w.Spans[index].End})
}

// Delete removes a field of an object (from its key to its value) or an
// element of an array, with the comma that it leaves over.
func Delete(member Span) Edit { return Edit{Span: member, kind: editDelete} }

// Retains reports whether the edit leaves something of the value: it is no deletion.
func (e Edit) Retains() bool { return e.kind != editDelete }

func (e *Edit) before(o *Edit) bool {
	return e.Span.Start < o.Span.Start || e.Span.Start == o.Span.Start && e.kind < o.kind
}

// sorted returns a copy of edits in their order. It is not slices.SortStableFunc, which is compiled
// for each type.
func sorted(edits []Edit) []Edit {
	out := append([]Edit(nil), edits...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].before(&out[j]) })
	return out
}

// Splice appends body, with edits applied, to dst. Bytes outside of the edits are copied as
// they are. The edits may be in any order and must not overlap. If two do, the one that
// starts first is applied (the wider one, if they start together).
func Splice(dst, body []byte, edits ...Edit) []byte {
	for i := 1; i < len(edits); i++ {
		if edits[i].before(&edits[i-1]) { // mostly they are sorted
			edits = sorted(edits)
			break
		}
	}
	at := 0
	for n, e := range edits {
		if e.Span.Start < at || e.Span.Absent() {
			continue
		}
		dst = append(dst, body[at:e.Span.Start]...)
		at = e.Span.End
		switch e.kind {
		case editReplace:
			dst = append(dst, e.New...)
		case editInsert:
			dst = AppendJSONString(dst, e.key)
			dst = append(append(dst, ':'), e.New...)
			if !lastInsert(body, edits[n:]) {
				dst = append(dst, ',')
			}
		case editDelete:
			dst, at = dropComma(dst, body, at)
		}
	}
	return append(dst, body[at:]...)
}

// lastInsert reports whether edits[0] adds the last field of its object, so
// that no comma may follow.
func lastInsert(body []byte, edits []Edit) bool {
	at := edits[0].Span.Start
	if len(edits) > 1 && edits[1].kind == editInsert && edits[1].Span.Start == at {
		return false
	}
	next := skipSpace(body, at)
	return next < len(body) && body[next] == '}'
}

// dropComma removes the comma that follows a field deleted up to at, or the
// one already written before it when the field was the last.
func dropComma(dst, body []byte, at int) ([]byte, int) {
	next := skipSpace(body, at)
	if next < len(body) && body[next] == ',' {
		return dst, next + 1
	}
	n := len(dst)
	for n > 0 && (dst[n-1] == ' ' || dst[n-1] == '\n' || dst[n-1] == '\t' || dst[n-1] == '\r') {
		n--
	}
	if n > 0 && dst[n-1] == ',' {
		return dst[:n-1], at
	}
	return dst, at
}
