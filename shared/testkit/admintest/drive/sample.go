package drive

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// RefersTo marks a value that names an item of a collection; Immutable one that an
// update does not change.
const (
	RefersTo  = "x-gateway-refers-to"
	Immutable = "x-gateway-immutable"
)

// far is a time that nothing has reached.
const far = "2027-01-31T00:00:00.000Z"

// Sample is a value that fits a schema; n makes texts differ.
func Sample(s Schema, name string, n int) any {
	s = branch(s, nil)
	for _, key := range []string{"example", "const", "default"} {
		if v := s[key]; v != nil {
			return v
		}
	}
	if choice := list(s["enum"]); len(choice) > 0 {
		of := slices.DeleteFunc(slices.Clone(choice), func(v any) bool { return v == nil })
		return of[n%len(of)]
	}
	switch kindOf(s) {
	case "string":
		return word(s, name, n)
	case "integer", "number":
		return number(s, n)
	case "boolean":
		return n%2 == 0
	case "array":
		out := []any{}
		for range max(1, int(bound(s, "minItems", 0))) {
			out = append(out, Sample(object(s["items"]), strings.TrimSuffix(name, "s"), n))
		}
		return out
	case "object":
		out := map[string]any{}
		for _, r := range texts(s["required"]) {
			out[r] = Sample(object(object(s["properties"])[r]), r, n)
		}
		if more := object(s["additionalProperties"]); more != nil && len(object(s["properties"])) == 0 {
			out["team"] = Sample(more, "team", n)
		}
		return out
	}
	return map[string]any{}
}

// some is an object with one of the members that it may have, for a body that must
// have one and does not say which: a plain one, where there is any.
func some(s Schema, n int) map[string]any {
	properties := object(s["properties"])
	for _, kinds := range []string{"boolean", "integer string", "array", "object of boolean", "object"} {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			p := branch(object(properties[name]), nil)
			if name == workspaceID || p["readOnly"] == true || !slices.Contains(strings.Fields(kinds), kindOf(p)) {
				continue
			}
			v := Sample(p, name, n)
			switch x := v.(type) {
			case []any:
				v = []any{Sample(object(p["items"]), strings.TrimSuffix(name, "s"), n)}
			case map[string]any:
				if len(x) == 0 {
					x = some(p, n)
				}
				if v = x; len(x) == 0 || kinds != "object" && !plain(x) {
					continue
				}
			}
			return map[string]any{name: v}
		}
	}
	return map[string]any{}
}

// plain reports whether all fields are booleans.
func plain(o map[string]any) bool {
	for _, v := range o {
		if _, ok := v.(bool); !ok {
			return false
		}
	}
	return true
}

func bound(s Schema, key string, otherwise float64) float64 {
	if v, ok := s[key].(float64); ok {
		return v
	}
	return otherwise
}

func number(s Schema, n int) any {
	low, high := bound(s, "minimum", 0), bound(s, "maximum", 1<<30)
	if least, ok := s["exclusiveMinimum"].(float64); ok {
		low = least + 1
	}
	return min(max(low, 1)+float64(n%7), high)
}

// word is a text of the bounds and the pattern; those of different n differ.
func word(s Schema, name string, n int) string {
	if s["format"] == "date-time" {
		return strings.Replace(far, "2027", fmt.Sprint(2027+n%50), 1)
	}
	least, most := int(bound(s, "minLength", 0)), int(bound(s, "maxLength", 1<<16))
	pattern := regexp.MustCompile(text(s["pattern"]))
	var tries []string
	switch {
	case s["format"] == "email" || strings.Contains(name, "email"):
		tries = []string{fmt.Sprintf("ann-%d@example.com", n)}
	case strings.Contains(name, "domain"):
		tries = []string{fmt.Sprintf("example-%d.com", n)}
	case strings.Contains(name, "issuer"):
		tries = []string{fmt.Sprintf("https://login-%d.example.com", n)}
	case strings.Contains(name, "url") || strings.Contains(name, "host"):
		tries = []string{fmt.Sprintf("https://example.com/%d", n)}
	case strings.Contains(name, "color"):
		tries = []string{fmt.Sprintf("#%06x", 0x100+n)}
	}
	tries = append(tries, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, "_", "-"), n), fmt.Sprintf("sample-%d", n), fmt.Sprintf("s%d", n))
	for _, t := range tries {
		for len(t) < least {
			t += "x"
		}
		if len(t) <= most && pattern.MatchString(t) {
			return t
		}
	}
	return tries[0]
}

// DifferentValue returns a valid value that differs from v; ok is false if the schema does not determine
// one.
func DifferentValue(s Schema, name string, v any) (any, bool) {
	if s[RefersTo] != nil {
		return nil, false
	}
	s = branch(s, v)
	switch kindOf(s) {
	case "string", "integer", "number", "boolean":
	case "object":
		if more := object(s["additionalProperties"]); more == nil || len(object(s["properties"])) > 0 {
			return nil, false
		}
	default:
		return nil, false
	}
	plain := maps.Clone(s)
	delete(plain, "default")
	delete(plain, "example")
	for n := 1; n < 20; n++ {
		if o := Sample(plain, name, n); fmt.Sprint(o) != fmt.Sprint(v) {
			return o, true
		}
	}
	return nil, false
}

// copyOf is a deep copy of a JSON value.
func copyOf(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = copyOf(e)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = copyOf(x[i])
		}
		return out
	}
	return v
}

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

// Field is the last name of the place, as rejections write it.
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
