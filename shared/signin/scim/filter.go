package scim

import (
	"encoding/json"
	"strings"
	"time"
)

// Bounds of filters.
const (
	MaxFilter = 2048 // bytes
	maxTerms  = 50   // comparisons
	maxNested = 16   // parentheses and brackets
)

// Filter is a condition on resources: RFC 7644, 3.4.2.2.
type Filter struct {
	op          string // and, or, not, pr, one of the comparisons, or [ for a condition on values
	left, right *Filter
	path        attrPath
	value       any // string, float64, bool or nil
}

// attrPath names an attribute: urn:name.sub.
type attrPath struct{ urn, name, sub string }

func (p attrPath) String() string {
	s := p.name
	if p.urn != "" {
		s = p.urn + ":" + s
	}
	if p.sub != "" {
		s += "." + p.sub
	}
	return s
}

var comparisons = map[string]bool{"eq": true, "ne": true, "co": true, "sw": true, "ew": true, "gt": true, "ge": true, "lt": true, "le": true}

// ParseFilter reads a filter.
func ParseFilter(s string) (*Filter, error) {
	if len(s) > MaxFilter {
		return nil, refuse(InvalidFilter, "filter", "must have at most %d bytes", MaxFilter)
	}
	p := &reader{text: s, kind: InvalidFilter, field: "filter"}
	f, err := p.or(0)
	p.skip()
	if err == nil && p.at < len(p.text) {
		err = p.bad("nothing was expected")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// reader takes filters and paths apart.
type reader struct {
	text  string
	at    int
	terms int
	kind  Type
	field string
}

func (p *reader) bad(what string) error {
	return refuse(p.kind, p.field, "at character %d: %s", p.at+1, what)
}

func (p *reader) skip() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// word takes a word in any case, if it is the next.
func (p *reader) word(w string) bool {
	p.skip()
	end := p.at + len(w)
	if end > len(p.text) || !strings.EqualFold(p.text[p.at:end], w) || end < len(p.text) && nameByte(p.text[end]) {
		return false
	}
	p.at = end
	return true
}

func (p *reader) next(c byte) bool {
	p.skip()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *reader) or(depth int) (*Filter, error) {
	return p.chain("or", depth, p.and)
}

func (p *reader) and(depth int) (*Filter, error) {
	return p.chain("and", depth, p.term)
}

// chain reads what a word joins.
func (p *reader) chain(word string, depth int, one func(int) (*Filter, error)) (*Filter, error) {
	left, err := one(depth)
	for err == nil && p.word(word) {
		var right *Filter
		if right, err = one(depth); err == nil {
			left = &Filter{op: word, left: left, right: right}
		}
	}
	return left, err
}

func (p *reader) term(depth int) (*Filter, error) {
	if depth > maxNested {
		return nil, p.bad("the filter is nested too deep")
	}
	start := p.at
	if p.word("not") {
		if !p.next('(') {
			p.at = start // an attribute of this name
		} else {
			inner, err := p.or(depth + 1)
			if err == nil && !p.next(')') {
				err = p.bad("a ) is missing")
			}
			return &Filter{op: "not", left: inner}, err
		}
	}
	if p.next('(') {
		inner, err := p.or(depth + 1)
		if err == nil && !p.next(')') {
			err = p.bad("a ) is missing")
		}
		return inner, err
	}
	if p.terms++; p.terms > maxTerms {
		return nil, refuse(TooMany, p.field, "must have at most %d comparisons", maxTerms)
	}
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.text) && p.text[p.at] == '[' {
		p.at++
		inner, err := p.or(depth + 1)
		if err == nil && !p.next(']') {
			err = p.bad("a ] is missing")
		}
		return &Filter{op: "[", path: path, left: inner}, err
	}
	return p.comparison(path)
}

func (p *reader) comparison(path attrPath) (*Filter, error) {
	if p.word("pr") {
		return &Filter{op: "pr", path: path}, nil
	}
	p.skip()
	if p.at+2 > len(p.text) || !comparisons[strings.ToLower(p.text[p.at:p.at+2])] || p.at+2 < len(p.text) && nameByte(p.text[p.at+2]) {
		return nil, p.bad("an operator was expected: eq, ne, co, sw, ew, gt, ge, lt, le or pr")
	}
	op := strings.ToLower(p.text[p.at : p.at+2])
	p.at += 2
	p.skip()
	if p.at >= len(p.text) || strings.IndexByte("{[", p.text[p.at]) >= 0 {
		return nil, p.bad("a text in quotes, a number, true, false or null was expected")
	}
	f := &Filter{op: op, path: path}
	end := p.at + valueEnd(p.text[p.at:])
	if err := json.Unmarshal([]byte(p.text[p.at:end]), &f.value); err != nil {
		if f.value = spelledBool(p.text[p.at:end]); f.value == nil {
			return nil, p.bad("a text in quotes, a number, true, false or null was expected")
		}
	}
	p.at = end
	_, isBool := f.value.(bool)
	if order := op == "gt" || op == "ge" || op == "lt" || op == "le"; order && (isBool || f.value == nil) {
		return nil, p.bad("true, false and null have no order")
	}
	return f, nil
}

// spelledBool reads True and False, as some providers write them.
func spelledBool(s string) any {
	switch strings.ToLower(s) {
	case "true":
		return true
	case "false":
		return false
	}
	return nil
}

// valueEnd is where a value of a comparison ends.
func valueEnd(s string) int {
	if s[0] != '"' {
		if n := strings.IndexAny(s, " )]"); n >= 0 {
			return n
		}
		return len(s)
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '$'
}

// path reads the name of an attribute. A colon ends the name of a schema, which has dots.
func (p *reader) path() (attrPath, error) {
	p.skip()
	start := p.at
	for p.at < len(p.text) && (nameByte(p.text[p.at]) || p.text[p.at] == ':' || p.text[p.at] == '.') {
		p.at++
	}
	out, ok := parseName(p.text[start:p.at])
	if !ok {
		p.at = start
		return out, p.bad("the name of an attribute was expected")
	}
	return out, nil
}

func parseName(s string) (p attrPath, ok bool) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		p.urn, s = s[:i], s[i+1:]
		if !strings.HasPrefix(strings.ToLower(p.urn), "urn:") {
			return p, false
		}
	}
	p.name, p.sub, ok = strings.Cut(s, ".")
	return p, p.name != "" && (!ok || p.sub != "" && !strings.Contains(p.sub, ".")) && !digit(p.name[0])
}

func digit(c byte) bool { return c >= '0' && c <= '9' || c == '-' }

// Equals gives the value that an attribute has to have for the filter to hold, where the
// whole filter says no more than that, such as userName eq "ann".
func (f *Filter) Equals(attribute string) (string, bool) {
	s, text := f.value.(string)
	return s, text && f.op == "eq" && strings.EqualFold(f.path.name, attribute) && f.path.sub == ""
}

// Names tells whether the filter asks about an attribute of a resource.
func (f *Filter) Names(attribute string) bool {
	if f == nil {
		return false
	}
	return strings.EqualFold(f.path.name, attribute) || f.left.Names(attribute) || f.right.Names(attribute)
}

// Matches tells whether a resource meets the filter.
func (f *Filter) Matches(resource map[string]any) bool { return f.matches(resource, false) }

// matches has inside for the values of an attribute, which may be plain: their name is
// value.
func (f *Filter) matches(in map[string]any, inside bool) bool {
	switch f.op {
	case "and":
		return f.left.matches(in, inside) && f.right.matches(in, inside)
	case "or":
		return f.left.matches(in, inside) || f.right.matches(in, inside)
	case "not":
		return !f.left.matches(in, inside)
	case "[":
		for _, v := range valuesAt(in, attrPath{urn: f.path.urn, name: f.path.name}) {
			if of, ok := v.(map[string]any); ok && f.left.matches(of, true) {
				return true
			}
		}
		return false
	}
	found := valuesAt(in, f.path)
	if f.op == "pr" {
		for _, v := range found {
			if !empty(v) {
				return true
			}
		}
		return false
	}
	exact := caseExact(f.path, inside)
	if len(found) == 0 {
		return compare(f.op, nil, f.value, exact)
	}
	if f.op == "ne" { // none of several is the value
		for _, v := range found {
			if !compare("ne", scalar(v), f.value, exact) {
				return false
			}
		}
		return true
	}
	for _, v := range found {
		if compare(f.op, scalar(v), f.value, exact) {
			return true
		}
	}
	return false
}

// scalar is what a value is compared by.
func scalar(v any) any {
	if of, ok := v.(map[string]any); ok {
		return member(of, "value")
	}
	return v
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// valuesAt are the values of an attribute, of several each.
func valuesAt(in map[string]any, p attrPath) []any {
	of := in
	if p.urn != "" && !coreURN(p.urn) {
		ext, ok := member(in, p.urn).(map[string]any)
		if !ok {
			return nil
		}
		of = ext
	}
	var out []any
	for _, v := range each(member(of, p.name)) {
		if p.sub == "" {
			out = append(out, v)
			continue
		}
		if m, ok := v.(map[string]any); ok {
			out = append(out, each(member(m, p.sub))...)
		}
	}
	return out
}

func each(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// member is a member of an object in any case.
func member(in map[string]any, name string) any {
	if v, ok := in[name]; ok {
		return v
	}
	for k, v := range in {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return nil
}

func compare(op string, have, want any, exact bool) bool {
	switch w := want.(type) {
	case nil:
		return (op == "eq") == empty(have) && (op == "eq" || op == "ne")
	case bool:
		h, ok := have.(bool)
		return op == "eq" && ok && h == w || op == "ne" && (!ok || h != w)
	case float64:
		h, ok := number(have)
		return ok && ordered(op, h < w, h == w) || !ok && op == "ne"
	case string:
		if h, is := have.(bool); is {
			b, ok := spelledBool(w).(bool)
			return op == "eq" && ok && h == b || op == "ne" && (!ok || h != b)
		}
		h, ok := have.(string)
		return ok && texts(op, h, w, exact) || !ok && op == "ne"
	}
	return false
}

func number(v any) (float64, bool) {
	n, ok := v.(float64)
	return n, ok
}

func texts(op, have, want string, exact bool) bool {
	if a, errA := time.Parse(time.RFC3339, have); errA == nil {
		if b, errB := time.Parse(time.RFC3339, want); errB == nil {
			return ordered(op, a.Before(b), a.Equal(b))
		}
	}
	if !exact {
		have, want = strings.ToLower(have), strings.ToLower(want)
	}
	switch op {
	case "co":
		return strings.Contains(have, want)
	case "sw":
		return strings.HasPrefix(have, want)
	case "ew":
		return strings.HasSuffix(have, want)
	}
	return ordered(op, have < want, have == want)
}

func ordered(op string, less, same bool) bool {
	switch op {
	case "eq":
		return same
	case "ne":
		return !same
	case "gt":
		return !less && !same
	case "ge":
		return !less
	case "lt":
		return less
	case "le":
		return less || same
	}
	return false
}
