package scim

import (
	"strings"
	"time"
)

// Equals returns the required value of an attribute if the filter consists only of that
// comparison, such as userName eq "ann".
func (f *Filter) Equals(attribute string) (string, bool) {
	s, text := f.value.(string)
	return s, text && f.op == "eq" && strings.EqualFold(f.path.name, attribute) && f.path.sub == ""
}

// Names reports whether the filter refers to an attribute of a resource.
func (f *Filter) Names(attribute string) bool {
	if f == nil {
		return false
	}
	return strings.EqualFold(f.path.name, attribute) || f.left.Names(attribute) || f.right.Names(attribute)
}

// Matches reports whether a resource matches the filter.
func (f *Filter) Matches(resource map[string]any) bool { return f.matches(resource, false) }

// matches is also used within an attribute's values. A value that is not an object counts as an
// object with the field value.
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
	if f.op == "ne" { // none of several values may be equal
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

// scalar returns the part of a value that is compared.
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

// valuesAt returns the values of an attribute; if there are several, each of them.
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

// member returns a field of an object, by name in any case.
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
