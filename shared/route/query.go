package route

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/wire"
)

// Query is a compiled condition: all of its terms must hold. A malformed query never holds.
type Query struct{ terms []term }

// term is one field with its operators, or a $and or $or of queries.
type term struct {
	field   string // metadata.x, params.x, url.pathname
	tests   []test
	all     bool // $and; otherwise $or
	queries []Query
}

// test is one operator with its operand.
type test struct {
	op      string
	operand literal
	list    []literal
	pattern *regexp.Regexp
}

// literal is a primitive JSON value.
type literal struct {
	kind wire.Kind // none if it is missing or not a primitive
	text string    // the text of a string
	num  float64
	on   bool
}

const maxPattern = 1000 // bytes of a $regex

var never = term{tests: []test{{op: "$never"}}}

// parseQuery reads a condition's query.
func parseQuery(r *reader, v value) Query {
	var q Query
	if !r.is(v, wire.KindObject) {
		return Query{terms: []term{never}}
	}
	d := wire.NewDecoder(v.raw)
	for k := range d.Object {
		key := string(k)
		v := value{raw: d.Raw(), path: join(v.path, key)}
		switch {
		case key == "$and" || key == "$or":
			t := term{all: key == "$and", queries: []Query{}}
			if !r.elements(v, func(_ int, v value) { t.queries = append(t.queries, parseQuery(r, v)) }) {
				t = never
			}
			q.terms = append(q.terms, t)
		case !fieldKnown(key):
			if r.strict {
				r.add(v.path, "must be metadata.<key>, params.<field>, url.pathname, $and or $or")
			}
			q.terms = append(q.terms, never)
		default:
			q.terms = append(q.terms, term{field: key, tests: parseTests(r, v)})
		}
	}
	return q
}

// fieldKnown requires exactly two segments, the first of which is known.
func fieldKnown(key string) bool {
	first, second, ok := strings.Cut(key, ".")
	if !ok || second == "" || strings.Contains(second, ".") {
		return false
	}
	return first == "metadata" || first == "params" || key == "url.pathname"
}

func parseTests(r *reader, v value) []test {
	if v.kind() != wire.KindObject {
		if v.kind() == wire.KindArray {
			malformed(r, v, "must be a value or an object of operators")
			return never.tests
		}
		return []test{{op: "$eq", operand: literalOf(v.raw)}}
	}
	var tests []test
	d := wire.NewDecoder(v.raw)
	for key := range d.Object {
		name := string(key)
		operand := value{raw: d.Raw(), path: v.path + "." + name}
		tests = append(tests, parseTest(r, name, operand))
	}
	return tests
}

// malformed reports an error in saved configs; otherwise the condition is merely false.
func malformed(r *reader, v value, format string, args ...any) {
	if r.strict {
		r.add(v.path, format, args...)
	}
}

func parseTest(r *reader, op string, v value) test {
	t := test{op: op}
	switch op {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte":
		if t.operand = literalOf(v.raw); t.operand.kind == wire.KindNone {
			malformed(r, v, "must be a string, a number, a boolean or null")
			return never.tests[0]
		}
	case "$in", "$nin":
		if v.kind() != wire.KindArray {
			malformed(r, v, "must be an array")
			return never.tests[0]
		}
		t.list = []literal{}
		d := wire.NewDecoder(v.raw)
		for range d.Array {
			t.list = append(t.list, literalOf(d.Raw()))
		}
		if len(t.list) > MaxListed {
			malformed(r, v, "must have at most %d entries", MaxListed)
		}
	case "$regex":
		return parseRegex(r, v)
	default:
		malformed(r, v, "Unsupported operator used in the query router: %s", op)
		return never.tests[0]
	}
	return t
}

func parseRegex(r *reader, v value) test {
	s, err := wire.ScanString(v.raw, v.path)
	if err != nil || len(s) > maxPattern {
		malformed(r, v, "must be a pattern of at most %d characters", maxPattern)
		return never.tests[0]
	}
	pattern, err := regexp.Compile(s)
	if err != nil {
		malformed(r, v, "is not a pattern that can be used; look-around and back-references are not supported")
		return never.tests[0]
	}
	return test{op: "$regex", pattern: pattern}
}

// literalOf reads a primitive.
func literalOf(raw []byte) literal {
	l := literal{kind: wire.KindOf(raw)}
	switch l.kind {
	case wire.KindString:
		l.text, _ = wire.ScanString(raw, "")
	case wire.KindNumber:
		l.num, _ = wire.ScanFloat(raw, "")
	case wire.KindBool:
		l.on = raw[0] == 't'
	case wire.KindNull:
	default:
		l.kind = wire.KindNone
	}
	return l
}

// matches evaluates the query. If a field is missing or not a primitive, its condition is
// false for every operator.
func (q *Query) matches(lookup func(field string) literal) bool {
	for i := range q.terms {
		if !q.terms[i].matches(lookup) {
			return false
		}
	}
	return true
}

func (t *term) matches(lookup func(field string) literal) bool {
	if t.queries != nil {
		for i := range t.queries {
			if t.queries[i].matches(lookup) != t.all {
				return !t.all
			}
		}
		return t.all
	}
	if t.field == "" {
		return false
	}
	v := lookup(t.field)
	if v.kind == wire.KindNone {
		return false
	}
	for i := range t.tests {
		if !t.tests[i].holds(v) {
			return false
		}
	}
	return true
}

func (t *test) holds(v literal) bool {
	switch t.op {
	case "$eq":
		return v == t.operand
	case "$ne":
		return v != t.operand
	case "$in":
		return slices.Contains(t.list, v)
	case "$nin":
		return !slices.Contains(t.list, v)
	case "$regex":
		return v.kind == wire.KindString && t.pattern.MatchString(v.text)
	case "$gt":
		return v.float() > t.operand.float()
	case "$gte":
		return v.float() >= t.operand.float()
	case "$lt":
		return v.float() < t.operand.float()
	case "$lte":
		return v.float() <= t.operand.float()
	}
	return false
}

// float is the number at the beginning of a text, or NaN, for which no comparison holds.
func (l literal) float() float64 {
	switch l.kind {
	case wire.KindNumber:
		return l.num
	case wire.KindString:
		return floatPrefix(l.text)
	}
	return math.NaN()
}

var floatAtStart = regexp.MustCompile(`^[\s]*([+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))`)

func floatPrefix(s string) float64 {
	m := floatAtStart.FindStringSubmatch(s)
	if m == nil {
		return math.NaN()
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

// lookup finds a field of the request for conditions and sticky keys.
func (ctx *Context) lookup(field string) literal {
	first, key, _ := strings.Cut(field, ".")
	switch {
	case first == "metadata":
		if s, ok := ctx.Metadata[key]; ok {
			return literal{kind: wire.KindString, text: s}
		}
	case first == "params" && ctx.Params != nil:
		if raw, ok := ctx.Params(key); ok {
			return literalOf(bytes.TrimSpace(raw))
		}
	case field == "url.pathname":
		return literal{kind: wire.KindString, text: ctx.Path}
	}
	return literal{}
}
