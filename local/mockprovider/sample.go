package mockprovider

import (
	"strconv"
	"strings"
)

// A schema may refer to itself. Below optionalDepth only required fields are written; if
// the schema does not end even then, it is cut off with null.
const (
	optionalDepth  = 4
	maxSampleDepth = 24
	maxSampleBytes = 64 << 10
)

// appendSample writes a JSON value that a schema accepts. It respects type, enum, const,
// properties, required, items, bounds, anyOf, oneOf, allOf and local references; root is
// where references are looked up.
func appendSample(b []byte, schema, root value, seed uint32, depth int) []byte {
	if depth > maxSampleDepth || len(b) > maxSampleBytes {
		return append(b, `null`...)
	}
	if ref := schema.get("$ref"); ref.kind == text {
		return appendSample(b, resolve(root, ref.s), root, seed, depth+1)
	}
	if v := schema.get("const"); v.kind != absent {
		return appendValue(b, v)
	}
	if v := schema.get("enum"); v.kind == array && len(v.arr) > 0 {
		return appendValue(b, v.arr[int(seed)%len(v.arr)])
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if v := schema.get(key); v.kind == array && len(v.arr) > 0 && schema.get("properties").kind == absent {
			return appendSample(b, v.arr[0], root, seed, depth+1)
		}
	}
	switch schemaType(schema) {
	case "object":
		return appendObjectSample(b, schema, root, seed, depth)
	case "array":
		n, _ := schema.get("minItems").integer()
		if depth <= optionalDepth {
			n = max(n, 1)
		}
		b = append(b, '[')
		for i := range min(n, 100) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendSample(b, schema.get("items"), root, seed+uint32(i), depth+1)
		}
		return append(b, ']')
	case "integer":
		return strconv.AppendInt(b, sampleInteger(schema, seed), 10)
	case "number":
		b = strconv.AppendInt(b, sampleInteger(schema, seed), 10)
		if schema.get("maximum").kind == absent {
			b = append(b, ".5"...)
		}
		return b
	case "boolean":
		return strconv.AppendBool(b, seed%2 == 0)
	case "null":
		return append(b, `null`...)
	}
	s := strings.TrimPrefix(vocabulary[seed%32], " ")
	if n, ok := schema.get("minLength").integer(); ok {
		for int64(len(s)) < min(n, 10_000) {
			s += "x"
		}
	}
	return appendString(b, s)
}

func schemaType(schema value) string {
	t := schema.get("type")
	if t.kind == array && len(t.arr) > 0 {
		t = t.arr[0]
	}
	if t.kind == text {
		return t.s
	}
	if schema.get("properties").kind == object {
		return "object"
	}
	return "string"
}

func sampleInteger(schema value, seed uint32) int64 {
	n := int64(seed % 100)
	if lo, ok := schema.get("minimum").integer(); ok && n < lo {
		n = lo
	}
	if hi, ok := schema.get("maximum").integer(); ok && n > hi {
		n = hi
	}
	return n
}

func appendObjectSample(b []byte, schema, root value, seed uint32, depth int) []byte {
	b = append(b, '{')
	first := true
	for i, p := range schema.get("properties").obj {
		if depth > optionalDepth && !requires(schema, p.name) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, p.name), ':')
		b = appendSample(b, p.v, root, seed+uint32(i)*7, depth+1)
	}
	return append(b, '}')
}

func requires(schema value, name string) bool {
	for _, r := range schema.get("required").arr {
		if r.s == name {
			return true
		}
	}
	return false
}

// resolve follows "#/a/b"; any other reference gives the empty schema.
func resolve(root value, ref string) value {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return value{}
	}
	v := root
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part != "" {
			v = v.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		}
	}
	return v
}

// appendValue writes a value as JSON.
func appendValue(b []byte, v value) []byte {
	switch v.kind {
	case text:
		return appendString(b, v.s)
	case boolean:
		return strconv.AppendBool(b, v.yes)
	case number, array, object:
		return append(b, v.s...)
	}
	return append(b, `null`...)
}
