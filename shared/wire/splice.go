package wire

import "slices"

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

// Delete removes a member of an object (from its key to its value) or an
// element of an array, with the comma that it leaves over.
func Delete(member Span) Edit { return Edit{Span: member, kind: editDelete} }

// Splice appends body, with edits applied, to dst. Bytes outside of the edits are copied as
// they are. The edits are sorted in place and must not overlap. If two do, the one that
// starts first is applied (the wider one, if they start together).
func Splice(dst, body []byte, edits ...Edit) []byte {
	slices.SortStableFunc(edits, func(a, b Edit) int {
		if a.Span.Start != b.Span.Start {
			return a.Span.Start - b.Span.Start
		}
		return int(a.kind) - int(b.kind)
	})
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

// lastInsert reports whether edits[0] adds the last member of its object, so
// that no comma may follow.
func lastInsert(body []byte, edits []Edit) bool {
	at := edits[0].Span.Start
	if len(edits) > 1 && edits[1].kind == editInsert && edits[1].Span.Start == at {
		return false
	}
	next := skipSpace(body, at)
	return next < len(body) && body[next] == '}'
}

// dropComma removes the comma that follows a member deleted up to at, or the
// one already written before it when the member was the last.
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
