package scim

import (
	"encoding/json"
	"strings"
	"time"
)

// Limits of filters.
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
		return nil, invalid(InvalidFilter, "filter", "must have at most %d bytes", MaxFilter)
	}
	p := &reader{text: s, kind: InvalidFilter, field: "filter"}
	f, err := p.or(0)
	p.skip()
	if err == nil && p.at < len(p.text) {
		err = p.bad("the end was expected")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// reader parses filters and paths.
type reader struct {
	text  string
	at    int
	terms int
	of    string // attribute to which a condition in brackets applies
	kind  Type
	field string
}

func (p *reader) bad(what string) error {
	return invalid(p.kind, p.field, "at character %d: %s", p.at+1, what)
}

func (p *reader) skip() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// word consumes the next word if it is w, in any case.
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

// chain parses terms that are joined by a word.
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
			p.at = start // an attribute with this name
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
		return nil, invalid(TooMany, p.field, "must have at most %d comparisons", maxTerms)
	}
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	if p.at < len(p.text) && p.text[p.at] == '[' {
		p.at++
		outer := p.of
		p.of = path.name
		inner, err := p.or(depth + 1)
		if err == nil && !p.next(']') {
			err = p.bad("a ] is missing")
		}
		if err == nil && p.at < len(p.text) && p.text[p.at] == '.' {
			inner, err = p.ofValue(inner)
		}
		p.of = outer
		return &Filter{op: "[", path: path, left: inner}, err
	}
	return p.comparison(path)
}

// ofValue parses a comparison with a sub-attribute of the values that a condition in brackets
// selects: emails[type eq "work"].value eq "a@b.c". It is outside of the grammar of RFC 7644;
// Microsoft Entra ID and its validator send it.
func (p *reader) ofValue(selected *Filter) (*Filter, error) {
	p.at++
	if p.terms++; p.terms > maxTerms {
		return nil, invalid(TooMany, p.field, "must have at most %d comparisons", maxTerms)
	}
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	f, err := p.comparison(path)
	return &Filter{op: "and", left: selected, right: f}, err
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
	if text, is := f.value.(string); p.timed(path) && f.value != nil {
		if _, err := time.Parse(time.RFC3339, text); (!is || err != nil) && op != "co" && op != "sw" && op != "ew" {
			return nil, p.bad("a time was expected, such as \"2026-01-31T12:00:00Z\"")
		}
	}
	p.at = end
	_, isBool := f.value.(bool)
	if order := op == "gt" || op == "ge" || op == "lt" || op == "le"; order && (isBool || f.value == nil) {
		return nil, p.bad("true, false and null have no order")
	}
	return f, nil
}

// timed reports whether an attribute is a time: meta.created and meta.lastModified.
func (p *reader) timed(path attrPath) bool {
	of, name := path.name, path.sub
	if p.of != "" {
		of, name = p.of, path.name
	}
	return strings.EqualFold(of, "meta") && (strings.EqualFold(name, "created") || strings.EqualFold(name, "lastModified"))
}

// spelledBool also accepts True and False, which some providers send.
func spelledBool(s string) any {
	switch strings.ToLower(s) {
	case "true":
		return true
	case "false":
		return false
	}
	return nil
}

// valueEnd returns the end of a comparison's value.
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

// path parses the name of an attribute. A colon ends the name of a schema, which may have dots.
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
