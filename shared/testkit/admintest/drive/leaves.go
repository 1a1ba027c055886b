package drive

import (
	"maps"
	"slices"
	"strings"
)

// Leaf is a plain member of a body that is made of objects, such as settings.
type Leaf struct {
	Schema Schema
	path   []string
}

// Leaves are the plain members that bodies of a schema may have, but those that name
// things or are never read.
func Leaves(s Schema) []Leaf {
	var out []Leaf
	leaves(s, nil, &out)
	return out
}

func leaves(s Schema, at []string, out *[]Leaf) {
	s = branch(s, nil)
	for _, name := range slices.Sorted(maps.Keys(object(s["properties"]))) {
		below := object(object(s["properties"])[name])
		if below["writeOnly"] == true || below[RefersTo] != nil || name == workspaceID {
			continue
		}
		path := append(slices.Clone(at), name)
		switch kindOf(branch(below, nil)) {
		case "object":
			if len(path) < reach {
				leaves(below, path, out)
			}
		case "array":
		default:
			*out = append(*out, Leaf{below, path})
		}
	}
}

// Name is the member's own name.
func (l Leaf) Name() string { return l.path[len(l.path)-1] }

func (l Leaf) String() string { return strings.Join(l.path, ".") }

// In is the member's value in an answer.
func (l Leaf) In(of map[string]any) (v any, there bool) {
	v = of
	for _, name := range l.path {
		o := object(v)
		if v, there = o[name]; !there {
			return nil, false
		}
	}
	return v, true
}

// Body is a body with the member alone.
func (l Leaf) Body(v any) map[string]any {
	for _, name := range slices.Backward(l.path) {
		v = map[string]any{name: v}
	}
	return object(v)
}
