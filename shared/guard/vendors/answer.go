package vendors

import (
	"maps"
	"slices"
	"strings"
)

// answer is a part of a vendor's response. A value of an unexpected type invalidates the entire
// response: all parts share bad.
type answer struct {
	v   any
	bad *bool
}

// get returns the field at a path such as a.b.c, or the entire value for "". If it does not
// exist, the result has no value.
func (a answer) get(path string) answer {
	if path == "" {
		return a
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := a.v.(map[string]any)
		a.v = object[name]
	}
	return a
}

func (a answer) has(path string) bool { return a.get(path).v != nil }

// value returns a field that must have a type.
func value[T any](a answer, path string) T {
	v, ok := a.get(path).v.(T)
	if !ok {
		*a.bad = true
	}
	return v
}

// optional returns a field that may be absent or null.
func optional[T any](a answer, path string) (v T) {
	if a.has(path) {
		return value[T](a, path)
	}
	return v
}

func (a answer) flag(path string) bool      { return value[bool](a, path) }
func (a answer) text(path string) string    { return value[string](a, path) }
func (a answer) number(path string) float64 { return value[float64](a, path) }

// list returns the entries of a list.
func (a answer) list(path string) []answer { return a.entries(value[[]any](a, path)) }

// listIf returns the entries of a list that may be absent.
func (a answer) listIf(path string) []answer { return a.entries(optional[[]any](a, path)) }

func (a answer) entries(list []any) []answer {
	out := make([]answer, len(list))
	for i, v := range list {
		out[i] = answer{v, a.bad}
	}
	return out
}

// members returns the fields of an object in the order of their names. If the object is
// optional, an absent one has none.
func (a answer) members(path string, needed bool) (names []string, values []answer) {
	var object map[string]any
	if needed {
		object = value[map[string]any](a, path)
	} else {
		object = optional[map[string]any](a, path)
	}
	names = slices.Sorted(maps.Keys(object))
	for _, name := range names {
		values = append(values, answer{object[name], a.bad})
	}
	return names, values
}

// word returns a string that must be one of a few.
func (a answer) word(path string, allowed ...string) string {
	s := a.text(path)
	if !slices.Contains(allowed, s) {
		*a.bad = true
	}
	return s
}

// label returns a string of the vendor if it is short enough to be shown.
func label(s string) string {
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:100], "")
	}
	return s
}
