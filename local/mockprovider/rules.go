package mockprovider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rules state which fields an object may have and what they may hold. They are written as
// fields separated by spaces, each followed by its conditions in this order:
//
//	!             the field is required; !! it must not be empty either;
//	              -name states that it must be absent
//	:s :n :i :b :a :o   a string, number, integer, boolean, array or object; several letters
//	              allow several kinds
//	:0..2 :1..50i the range of a number, or of an integer; /64 follows if it must be a
//	              multiple of 64
//	<256          the most characters of a string or entries of an array
//	=a|b          the allowed values
//	{...}         the fields of the object; other fields are rejected, unless "..." is one
//	[]{...}       the fields of each entry of the array
//
// For example: model!:s temperature:0..2 tools<128[]{... type!=function|retrieval}
type rules struct {
	open bool // other fields are allowed
	list []rule
}

// rule is what one field may hold.
type rule struct {
	name             string
	required, absent bool
	filled           bool // neither "" nor []
	kinds            string
	ranged, integer  bool
	lo, hi           float64
	step             int64 // zero means any
	most             int   // of characters or entries; zero means no limit
	values           []string
	each             bool
	fields           *rules
}

// kindNames are the letters of kinds in rules.
var kindNames = map[byte]kind{'s': text, 'n': number, 'i': number, 'b': boolean, 'a': array, 'o': object}

// violation is the first rule that a value breaks.
type violation struct {
	what string // missing, unknown, kind, below, above, long or value
	rule rule
	at   string
	got  value
}

// parseRules panics if s is not well-formed: rules are constants.
func parseRules(s string) *rules {
	r := new(rules)
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		end, depth := 0, 0
		for end < len(s) && (depth > 0 || s[end] > ' ') {
			switch s[end] {
			case '{':
				depth++
			case '}':
				depth--
			}
			end++
		}
		if s[:end] == "..." {
			r.open = true
		} else {
			r.list = append(r.list, parseRule(s[:end]))
		}
		s = s[end:]
	}
	return r
}

func parseRule(s string) (f rule) {
	if s, f.absent = strings.CutPrefix(s, "-"); f.absent {
		f.name = s
		return f
	}
	if head, inner, ok := strings.Cut(s, "{"); ok {
		f.fields, s = parseRules(strings.TrimSuffix(inner, "}")), head
		if f.kinds = "o"; strings.HasSuffix(head, "[]") {
			f.kinds = "a"
		}
	}
	s, f.each = strings.CutSuffix(s, "[]")
	s, values, ok := strings.Cut(s, "=")
	if ok {
		f.values, f.kinds = strings.Split(values, "|"), "s"
	}
	var err error
	if before, most, ok := strings.Cut(s, "<"); ok {
		if f.most, err = strconv.Atoi(most); err != nil {
			panic(err)
		}
		s = before
	}
	s, kinds, ok := strings.Cut(s, ":")
	if lo, hi, isRange := strings.Cut(kinds, ".."); isRange {
		f.ranged = true
		hi, step, _ := strings.Cut(hi, "/")
		f.step, _ = strconv.ParseInt(step, 10, 64)
		hi, f.integer = strings.CutSuffix(hi, "i")
		var err2 error
		f.lo, err = strconv.ParseFloat(lo, 64)
		f.hi, err2 = strconv.ParseFloat(hi, 64)
		if err != nil || err2 != nil {
			panic("bad range: " + kinds)
		}
	} else if ok {
		f.kinds = kinds
	}
	s, f.filled = strings.CutSuffix(s, "!!")
	f.name, f.required = strings.CutSuffix(s, "!")
	f.required = f.required || f.filled
	return f
}

// check returns the first violation; nil if there is none. at is the path of v, which ends in
// a period unless it is empty. Null counts as missing.
func (r *rules) check(v value, at string) *violation {
	for _, f := range r.list {
		got := v.get(f.name)
		empty := f.filled && (got.kind == text && got.s == "" || got.kind == array && len(got.arr) == 0)
		if f.required && (!got.given() || empty) {
			return &violation{"missing", f, at + f.name, got}
		}
		if f.absent && got.given() {
			return &violation{"unknown", f, at + f.name, got}
		}
	}
	if !r.open {
		for _, m := range v.obj {
			if !slices.ContainsFunc(r.list, func(f rule) bool { return f.name == m.name }) {
				return &violation{what: "unknown", at: at + m.name, got: m.v}
			}
		}
	}
	for _, f := range r.list {
		if got := v.get(f.name); got.given() {
			if bad := f.check(got, at+f.name); bad != nil {
				return bad
			}
		}
	}
	return nil
}

func (f rule) check(got value, at string) *violation {
	bad := func(what string) *violation { return &violation{what, f, at, got} }
	n, whole := got.integer()
	switch {
	case f.ranged && (got.kind != number || f.integer && !whole):
		return bad("kind")
	case f.ranged && got.float() < f.lo:
		return bad("below")
	case f.ranged && got.float() > f.hi:
		return bad("above")
	case f.step > 0 && n%f.step != 0:
		return bad("kind")
	case f.kinds != "" && !f.hasKind(got):
		return bad("kind")
	case f.most > 0 && (got.kind == text && len([]rune(got.s)) > f.most || got.kind == array && len(got.arr) > f.most):
		return bad("long")
	case f.values != nil && !slices.Contains(f.values, got.s):
		return bad("value")
	case f.fields == nil:
		return nil
	case !f.each:
		return f.fields.check(got, at+".")
	}
	for i, entry := range got.arr {
		if entry.kind != object {
			return &violation{"kind", rule{kinds: "o"}, fmt.Sprintf("%s[%d]", at, i), entry}
		}
		if v := f.fields.check(entry, fmt.Sprintf("%s[%d].", at, i)); v != nil {
			return v
		}
	}
	return nil
}

func (f rule) hasKind(got value) bool {
	for i := range len(f.kinds) {
		_, whole := got.integer()
		if kindNames[f.kinds[i]] == got.kind && (f.kinds[i] != 'i' || whole) {
			return true
		}
	}
	return false
}

// want names the kind that a field should have.
func (f rule) want() string {
	switch {
	case f.integer:
		return "an integer"
	case f.ranged:
		return "a decimal"
	}
	return kindNames[f.kinds[0]].String()
}

// openAIError is the error of OpenAI for a violation; nil for none.
func openAIError(v *violation) *apiError {
	if v == nil {
		return nil
	}
	word := "decimal"
	if v.rule.integer {
		word = "integer"
	}
	switch v.what {
	case "missing":
		return missingParam(v.at)
	case "unknown":
		return badRequest(v.at, "unknown_parameter", "Unknown parameter: '"+v.at+"'.")
	case "kind":
		return wrongType(v.at, v.rule.want(), v.got.kind)
	case "below":
		return badRequest(v.at, word+"_below_min_value", fmt.Sprintf("Invalid '%s': %s below minimum value. Expected a value >= %v, but got %s instead.", v.at, word, v.rule.lo, v.got.s))
	case "above":
		return badRequest(v.at, word+"_above_max_value", fmt.Sprintf("Invalid '%s': %s above maximum value. Expected a value <= %v, but got %s instead.", v.at, word, v.rule.hi, v.got.s))
	case "long":
		kind := map[kind]string{text: "string", array: "array"}[v.got.kind]
		return badRequest(v.at, kind+"_above_max_length", fmt.Sprintf("Invalid '%s': %s too long. Expected %s with maximum length %d.", v.at, kind, article(kind), v.rule.most))
	}
	return unsupportedValue(v.at, v.got.s, v.rule.values...)
}
