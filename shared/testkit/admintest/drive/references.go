package drive

import (
	"maps"
	"slices"
	"strings"
)

// Reference is a place in a body that names a thing.
type Reference struct {
	Collection string
	steps      []step
}

// step is a member of an object, or with no name the one entry of a list.
type step struct {
	name   string
	schema Schema // of what it leads to
}

// References are the places in bodies of a schema that name things, but workspace_id
// at the top, which is where a call acts.
func References(s Schema) []Reference {
	var out []Reference
	references(s, nil, &out)
	return out
}

// reach bounds how far down a schema is looked into: schemas may name themselves.
const reach = 6

func references(s Schema, at []step, out *[]Reference) {
	if to := text(s[RefersTo]); to != "" {
		if len(at) > 1 || at[0].name != workspaceID {
			*out = append(*out, Reference{to, slices.Clone(at)})
		}
		return
	}
	if len(at) == reach {
		return
	}
	s = branch(s, nil)
	for _, name := range slices.Sorted(maps.Keys(object(s["properties"]))) {
		below := object(object(s["properties"])[name])
		if below["readOnly"] != true {
			references(below, append(slices.Clone(at), step{name, below}), out)
		}
	}
	if items := object(s["items"]); items != nil {
		references(items, append(slices.Clone(at), step{"", items}), out)
	}
}

// Put is a body with a name in the reference's place.
func (r Reference) Put(body map[string]any, name string) map[string]any {
	out, _ := copyOf(body).(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	replaced(out, r.steps, name)
	return out
}

func replaced(v any, steps []step, name string) any {
	if len(steps) == 0 {
		return name
	}
	st := steps[0]
	if st.name == "" {
		entry := Sample(st.schema, "x", 1)
		if a := list(v); len(a) > 0 {
			entry = a[0]
		}
		return []any{replaced(entry, steps[1:], name)}
	}
	o := object(v)
	if o == nil {
		o = map[string]any{}
	}
	o[st.name] = replaced(o[st.name], steps[1:], name)
	return o
}

// Field is the last name of the place, as refusals write it.
func (r Reference) Field() string {
	for _, s := range slices.Backward(r.steps) {
		if s.name != "" {
			return s.name
		}
	}
	return ""
}

func (r Reference) String() string {
	var b strings.Builder
	for i, s := range r.steps {
		switch {
		case s.name == "":
			b.WriteString("[0]")
		case i > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
	}
	return b.String()
}
