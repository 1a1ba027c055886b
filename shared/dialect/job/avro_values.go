package job

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"gateway/shared/wire"
)

// avroReader reads values. bad means that they do not fit their types.
type avroReader struct {
	b   []byte
	bad bool
}

func (r *avroReader) long() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *avroReader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.b)) || n > maxRow {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// value writes a value as JSON.
func (r *avroReader) value(dst []byte, t *avroType, depth int) []byte {
	if depth > maxAvroDepth || len(dst) > maxRow {
		r.bad = true
	}
	if r.bad {
		return dst
	}
	switch t.kind {
	case "null":
		return append(dst, "null"...)
	case "boolean":
		b := r.take(1)
		return strconv.AppendBool(dst, len(b) == 1 && b[0] == 1)
	case "int", "long":
		return strconv.AppendInt(dst, r.long(), 10)
	case "float":
		if b := r.take(4); b != nil {
			return appendNumber(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
		}
	case "double":
		if b := r.take(8); b != nil {
			return appendNumber(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
		}
	case "bytes", "string":
		return wire.AppendJSONString(dst, string(bytes.ToValidUTF8(r.take(r.long()), []byte("\uFFFD"))))
	case "fixed":
		return wire.AppendJSONString(dst, string(bytes.ToValidUTF8(r.take(t.size), []byte("\uFFFD"))))
	case "enum":
		if i := r.long(); i >= 0 && i < int64(len(t.names)) {
			return wire.AppendJSONString(dst, t.names[i])
		}
		r.bad = true
	case "union":
		if i := r.long(); i >= 0 && i < int64(len(t.members)) {
			return r.value(dst, t.members[i], depth+1)
		}
		r.bad = true
	case "record", "error":
		return r.record(dst, t, depth)
	case "array", "map":
		return r.list(dst, t, depth)
	default:
		r.bad = true
	}
	return dst
}

func (r *avroReader) record(dst []byte, t *avroType, depth int) []byte {
	dst = append(dst, '{')
	for i, name := range t.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendJSONString(dst, name), ':')
		dst = r.value(dst, t.members[i], depth+1)
	}
	return append(dst, '}')
}

// list writes an array or a map, which come in blocks.
func (r *avroReader) list(dst []byte, t *avroType, depth int) []byte {
	ends := "[]"
	if t.kind == "map" {
		ends = "{}"
	}
	dst = append(dst, ends[0])
	for first := true; ; {
		n := r.long()
		if n < 0 {
			n = -n
			r.long() // the length of the block in bytes
		}
		if n == 0 || r.bad {
			break
		}
		for ; n > 0 && !r.bad; n-- {
			if !first {
				dst = append(dst, ',')
			}
			if first = false; t.kind == "map" {
				dst = append(wire.AppendJSONString(dst, string(bytes.ToValidUTF8(r.take(r.long()), []byte("\uFFFD")))), ':')
			}
			dst = r.value(dst, t.members[0], depth+1)
		}
	}
	return append(dst, ends[1])
}

// appendNumber writes a number; a number that JSON cannot hold becomes null.
func appendNumber(dst []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}
