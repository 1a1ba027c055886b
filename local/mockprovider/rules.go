package mockprovider

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// rules state which fields an object may have and what they may hold. They are written as
// fields separated by spaces, each followed by its conditions in this order:
//
//	!             the field is required; !! it must not be empty either;
//	              -name states that it must be absent
//	:s :n :i :b :a :o :l   a string, number, integer, boolean, array, object or list of
//	              strings; several letters allow several kinds
//	:0..2 :1..50i the range of a number, or of an integer, open if a bound is missing; /64
//	              follows if it must be a multiple of 64
//	<256          the most characters of a string or entries of an array
//	^form         the form of a string, or of each string of a list: see forms
//	=a|b          the allowed values
//	{...}         the fields of the object; other fields are rejected, unless "..." is one
//	[]{...}       the fields of each entry of the array
//	{@name}       the rules of that name in bodies.txtar
//
// For example: model!:s temperature:0..2 tools<128[]{... type!=function|retrieval}
//
// The line "one a|b|c" before them states that exactly one of these fields is there. The line
// "by FIELD" begins a union: each further line has the values of the field, a colon and the
// fields besides it; - is no value and * any other.
type rules struct {
	open     bool // other fields are allowed
	list     []rule
	one      []string
	by       string
	variants map[string]*rules
	name     string // in bodies.txtar
}

// rule is what one field may hold.
type rule struct {
	name             string
	required, absent bool
	filled           bool // neither "" nor []
	kinds            string
	ranged, integer  bool
	lo, hi           float64
	step             int64  // zero means any
	most             int    // of characters or entries; zero means no limit
	form             string // a name in forms, or id: with a prefix
	values           []string
	each             bool
	fields           *rules
}

// kindNames are the letters of kinds in rules.
var kindNames = map[byte]kind{'s': text, 'n': number, 'i': number, 'b': boolean, 'a': array, 'l': array, 'o': object}

// forms are the forms that strings may have.
var forms = map[string]func(string) bool{
	"name64":   func(s string) bool { return isName(s, 64) },
	"name128":  func(s string) bool { return isName(s, 128) },
	"name256":  func(s string) bool { return isName(s, 256) },
	"nonblank": func(s string) bool { return strings.TrimSpace(s) != "" },
	"url":      isURL,
	"image":    isImage,
	"base64":   isBase64,
	"chatname": func(s string) bool { return !strings.ContainsAny(s, " <|\\/>") },
	"function": functionName.matches,
	"document": documentName.matches,
	"data":     func(s string) bool { return strings.HasPrefix(s, "data:") },
	"s3":       func(s string) bool { return strings.HasPrefix(s, "s3://") },
	"object":   func(s string) bool { v, err := parseJSON(s); return err == nil && v.kind == object },
}

// violation is the first rule that a value breaks.
type violation struct {
	what string // missing, unknown, kind, below, above, long, value or one
	rule rule
	at   string
	got  value
}

//go:embed bodies.txtar
var bodiesFile string

// bodies are the rules of bodies.txtar by their names.
var bodies = sync.OnceValue(func() map[string]*rules {
	all := map[string]*rules{}
	for f := range strings.SplitSeq("\n"+bodiesFile, "\n-- ") {
		if name, data, ok := strings.Cut(f, " --\n"); ok {
			all[name] = parseRules(data)
		}
	}
	return all
})

// parseRules panics if s is not well-formed: rules are constants.
func parseRules(s string) *rules {
	r := new(rules)
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "one "); ok {
		names, fields, _ := strings.Cut(rest, "\n")
		r.one, s = strings.Split(names, "|"), fields
	} else if rest, ok := strings.CutPrefix(s, "by "); ok {
		field, lines, _ := strings.Cut(rest, "\n")
		r.by, r.variants = field, map[string]*rules{}
		for line := range strings.Lines(lines) {
			values, fields, _ := strings.Cut(line, ":")
			for name := range strings.FieldsSeq(values) {
				r.variants[name] = parseRules(field + " " + fields)
			}
		}
		return r
	}
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
		switch word := s[:end]; {
		case word == "...":
			r.open = true
		case word[0] == '@':
			r.name = word[1:]
		default:
			r.list = append(r.list, parseRule(word))
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
	if s, f.form, ok = strings.Cut(s, "^"); ok {
		f.kinds = "s"
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
		f.lo, f.hi = bound(lo, math.Inf(-1)), bound(hi, math.Inf(1))
	} else if ok {
		f.kinds = kinds
	}
	s, f.filled = strings.CutSuffix(s, "!!")
	f.name, f.required = strings.CutSuffix(s, "!")
	f.required = f.required || f.filled
	return f
}

func bound(s string, none float64) float64 {
	if s == "" {
		return none
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// check returns the first violation; nil if there is none. at is the path of v, which ends in
// a period unless it is empty. Null counts as missing.
func (r *rules) check(v value, at string) *violation {
	if r.name != "" {
		r = bodies()[r.name]
	}
	if r.by != "" {
		return r.checkVariant(v, at)
	}
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
	there := 0
	for _, m := range v.obj {
		if !r.open && !slices.ContainsFunc(r.list, func(f rule) bool { return f.name == m.name }) {
			return &violation{what: "unknown", at: at + m.name, got: m.v}
		}
		there += btoi(slices.Contains(r.one, m.name))
	}
	if r.one != nil && there != 1 {
		return &violation{"one", rule{values: r.one}, strings.TrimSuffix(at, "."), v}
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

func (r *rules) checkVariant(v value, at string) *violation {
	tag := v.get(r.by)
	variant := r.variants[tag.s]
	if !tag.given() {
		variant = r.variants["-"]
	} else if variant == nil {
		variant = r.variants["*"]
	}
	switch {
	case variant != nil:
		return variant.check(v, at)
	case !tag.given():
		return &violation{"missing", rule{}, at + r.by, tag}
	}
	return &violation{"value", rule{values: slices.Sorted(maps.Keys(r.variants))}, at + r.by, tag}
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
	case !f.allows(got):
		return bad("value")
	case f.fields == nil:
		return nil
	case !f.each && got.kind == object:
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

// allows reports whether a string, or each string of a list, has the form and one of the values.
func (f rule) allows(got value) bool {
	form := forms[f.form]
	if prefix, ok := strings.CutPrefix(f.form, "id:"); ok {
		form = func(s string) bool { return strings.HasPrefix(s, prefix) }
	}
	for _, e := range append(got.arr, got) {
		if e.kind == text && (form != nil && !form(e.s) || f.values != nil && !slices.Contains(f.values, e.s)) {
			return false
		}
	}
	return true
}

func (f rule) hasKind(got value) bool {
	for i := range len(f.kinds) {
		_, whole := got.integer()
		if kindNames[f.kinds[i]] != got.kind || f.kinds[i] == 'i' && !whole {
			continue
		}
		if f.kinds[i] != 'l' || !slices.ContainsFunc(got.arr, func(e value) bool { return e.kind != text }) {
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
	case "one":
		return missingParam(v.at + "." + v.rule.values[0])
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
	if v.rule.form != "" {
		return badRequest(v.at, "invalid_value", "Invalid '"+v.at+"': string does not match pattern. Expected "+v.rule.form+".")
	}
	return unsupportedValue(v.at, v.got.s, v.rule.values...)
}
