package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gateway/shared/store"
)

// An item is stored as
//
//	version (1 byte) | count (uvarint) | count times: name, type (1 byte), payload
//
// A name, a string and bytes are a uvarint length and the bytes themselves, a number is a
// zigzag varint, a boolean is only its type, and a map is a count followed by its entries,
// none of which is a map.
const codecVersion = 1

const (
	typeString = 's'
	typeBytes  = 'b'
	typeInt    = 'i'
	typeTrue   = 't'
	typeFalse  = 'f'
	typeMap    = 'm'
)

var errCorrupt = errors.New("store: a stored item cannot be read")

// appendItem encodes a validated item.
func appendItem(dst []byte, item store.Item) []byte {
	dst = append(dst, codecVersion)
	dst = binary.AppendUvarint(dst, uint64(len(item)))
	for name, v := range item {
		dst = appendValue(appendString(dst, name), v)
	}
	return dst
}

func appendValue(dst []byte, v store.Value) []byte {
	m, ok := v.(store.Map)
	if !ok {
		return appendScalar(dst, v)
	}
	dst = binary.AppendUvarint(append(dst, typeMap), uint64(len(m)))
	for k, e := range m {
		dst = appendScalar(appendString(dst, k), e)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendScalar(dst []byte, v store.Value) []byte {
	switch v := v.(type) {
	case string:
		return appendString(append(dst, typeString), v)
	case []byte:
		dst = binary.AppendUvarint(append(dst, typeBytes), uint64(len(v)))
		return append(dst, v...)
	case int64:
		return binary.AppendVarint(append(dst, typeInt), v)
	case bool:
		if v {
			return append(dst, typeTrue)
		}
		return append(dst, typeFalse)
	}
	panic(fmt.Sprintf("store: a %T passed validation", v))
}

// smallItem is the largest encoded size for which all strings of an item share one
// allocation. In larger items, a retained string would hold too much memory.
const smallItem = 4 << 10

// decoder reads an encoded item. Bytes in the result alias the input, which the caller must
// not use any more.
type decoder struct {
	b   []byte
	all string // b as a string, when small
	off int
	err error
}

// decodeItem reads what appendItem wrote and rejects anything else. The item refers to b.
func decodeItem(b []byte) (store.Item, error) {
	if len(b) == 0 || b[0] != codecVersion {
		return nil, errCorrupt
	}
	d := decoder{b: b, off: 1}
	if len(b) <= smallItem {
		d.all = string(b)
	}
	n := d.count()
	item := make(store.Item, n)
	for range n {
		name := d.string()
		if _, twice := item[name]; twice {
			d.err = errCorrupt
		}
		if d.err != nil {
			return nil, d.err
		}
		item[name] = d.value()
	}
	if d.err != nil || d.off != len(b) || len(item) != n {
		return nil, errCorrupt
	}
	return item, nil
}

func (d *decoder) value() store.Value { return d.valueOf(d.byte()) }

func (d *decoder) valueOf(t byte) store.Value {
	if t != typeMap {
		return d.scalar(t)
	}
	n := d.count()
	m := make(store.Map, n)
	for range n {
		k := d.string()
		v := d.scalar(d.byte())
		if _, twice := m[k]; twice || d.err != nil {
			d.err = errCorrupt
			return nil
		}
		m[k] = v
	}
	return m
}

func (d *decoder) scalar(t byte) store.Value {
	switch t {
	case typeString:
		return d.string()
	case typeBytes:
		i, j := d.span()
		return d.b[i:j:j]
	case typeInt:
		v := d.varint()
		if d.err != nil {
			return nil
		}
		return v
	case typeTrue:
		return true
	case typeFalse:
		return false
	}
	d.err = errCorrupt
	return nil
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b[d.off:])
	if n <= 0 {
		d.err = errCorrupt
		return 0
	}
	d.off += n
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b[d.off:])
	if n <= 0 {
		d.err = errCorrupt
		return 0
	}
	d.off += n
	return v
}

func (d *decoder) byte() byte {
	if d.off >= len(d.b) {
		d.err = errCorrupt
		return 0
	}
	d.off++
	return d.b[d.off-1]
}

// count reads a number of entries. Each takes at least two bytes, which bounds the memory
// that a damaged item can cause to be allocated.
func (d *decoder) count() int {
	v, n := binary.Uvarint(d.b[d.off:])
	if n <= 0 || v > uint64(len(d.b)-d.off-n)/2 {
		d.err = errCorrupt
		return 0
	}
	d.off += n
	return int(v)
}

func (d *decoder) span() (from, to int) {
	v, n := binary.Uvarint(d.b[d.off:])
	if n <= 0 || v > uint64(len(d.b)-d.off-n) {
		d.err = errCorrupt
		return d.off, d.off
	}
	from = d.off + n
	to = from + int(v)
	d.off = to
	return from, to
}

func (d *decoder) string() string {
	i, j := d.span()
	if d.all != "" {
		return d.all[i:j]
	}
	return string(d.b[i:j])
}
