package otlp

import (
	"encoding/binary"
	"math"
	"time"
)

// Wire types of protobuf.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
)

func tag(b []byte, field, wire int) []byte {
	return binary.AppendUvarint(b, uint64(field<<3|wire))
}

// message appends what fill appends as one field.
func message(b []byte, field int, fill func([]byte) []byte) []byte {
	return raw(b, field, fill(nil))
}

func raw(b []byte, field int, v []byte) []byte {
	return append(binary.AppendUvarint(tag(b, field, bytes), uint64(len(v))), v...)
}

// text appends a string, unless it is empty, which is the default.
func text(b []byte, field int, s string) []byte {
	if s == "" {
		return b
	}
	return append(binary.AppendUvarint(tag(b, field, bytes), uint64(len(s))), s...)
}

func number(b []byte, field int, n uint64) []byte {
	if n == 0 {
		return b
	}
	return binary.AppendUvarint(tag(b, field, varint), n)
}

func word(b []byte, field int, n uint64) []byte {
	return binary.LittleEndian.AppendUint64(tag(b, field, fixed64), n)
}

func real(b []byte, field int, x float64) []byte { return word(b, field, math.Float64bits(x)) }

func instant(b []byte, field int, t time.Time) []byte { return word(b, field, uint64(t.UnixNano())) }

// Attr is an attribute. Its value is a string, bool, int64, float64 or []string.
type Attr struct {
	Key   string
	Value any
}

// Fields of KeyValue and AnyValue.
func (a *Attr) append(b []byte) []byte {
	return message(text(b, 1, a.Key), 2, func(b []byte) []byte { return anyValue(b, a.Value) })
}

func anyValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(binary.AppendUvarint(tag(b, 1, bytes), uint64(len(v))), v...)
	case bool:
		n := uint64(0)
		if v {
			n = 1
		}
		return binary.AppendUvarint(tag(b, 2, varint), n)
	case int64:
		return binary.AppendUvarint(tag(b, 3, varint), uint64(v))
	case float64:
		return real(b, 4, v)
	case []string:
		return message(b, 5, func(b []byte) []byte {
			for _, s := range v {
				b = message(b, 1, func(b []byte) []byte { return anyValue(b, s) })
			}
			return b
		})
	}
	return b
}

func attributes(b []byte, field int, attrs []Attr) []byte {
	for i := range attrs {
		b = message(b, field, attrs[i].append)
	}
	return b
}

// Origin is the sender: the resource's attributes, and the name and version of the
// instrumentation.
type Origin struct {
	Resource      []Attr
	Name, Version string
	Schema        string // URL of the schema of its names; "" for none
}

// request appends the parts that both requests have around their spans or metrics.
func (o *Origin) request(fill func([]byte) []byte) []byte {
	return message(nil, 1, func(b []byte) []byte {
		b = message(b, 1, func(b []byte) []byte { return attributes(b, 1, o.Resource) })
		return message(b, 2, func(b []byte) []byte {
			b = message(b, 1, func(b []byte) []byte { return text(text(b, 1, o.Name), 2, o.Version) })
			return text(fill(b), 3, o.Schema)
		})
	})
}
