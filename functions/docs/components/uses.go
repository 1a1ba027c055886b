package components

import (
	"maps"
	"slices"
	"strings"
)

// use is a reference to a component, by the body of an operation or from within another component.
type use struct {
	owner string // the component that refers to this one, empty for an operation
	steps []step // from the owner to the reference

	operation words // with a body of this schema
	role      string
}

// step is one on the path from a schema to a schema within it.
type step struct {
	kind  int
	name  string // of the property
	words words
}

// Kinds of steps.
const (
	property = iota
	entry    // of a list or a map
	option   // one of several schemas
	value    // of a list that is one of several schemas
)

// Roles of bodies of operations, which end their names.
const (
	requestRole   = "Request"
	responseRole  = "Response"
	rejectionRole = "Error"
)

// usesOf lists the uses of every schema.
func usesOf(doc map[string]any) map[string][]use {
	out := map[string][]use{}
	add := func(v any, u use) {
		if name, ok := strings.CutPrefix(refOf(v), schemaRef); ok {
			out[name] = append(out[name], u)
		}
	}
	paths, _ := doc["paths"].(map[string]any)
	each(paths, func(op map[string]any) {
		bodies(op, func(role string, schema any) { add(schema, use{operation: operationName(op), role: role}) })
	})
	schemas := object(object(doc, "components"), "schemas")
	for _, owner := range slices.Sorted(maps.Keys(schemas)) {
		within(schemas[owner], nil, func(v any, steps []step) { add(v, use{owner: owner, steps: steps}) })
	}
	return out
}

// bodies calls f with the schema of each body of an operation.
func bodies(op map[string]any, f func(role string, schema any)) {
	content := func(body any, role string) {
		of, _ := body.(map[string]any)
		media, _ := of["content"].(map[string]any)
		for _, kind := range slices.Sorted(maps.Keys(media)) {
			of, _ := media[kind].(map[string]any)
			f(role, of["schema"])
		}
	}
	content(op["requestBody"], requestRole)
	responses, _ := op["responses"].(map[string]any)
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if status[0] == '2' {
			content(responses[status], responseRole)
		} else {
			content(responses[status], rejectionRole)
		}
	}
}

// within calls f with a schema and every schema within it, but not within references.
func within(v any, steps []step, f func(v any, steps []step)) {
	f(v, steps)
	schema, _ := v.(map[string]any)
	if refOf(schema) != "" {
		return
	}
	inner := func(v any, s step) { within(v, append(slices.Clip(steps), s), f) }
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		inner(properties[name], step{property, name, split(name)})
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if schema[key] != nil {
			kind := entry
			if len(steps) > 0 && steps[len(steps)-1].kind == option && key == "items" {
				kind = value
			}
			inner(schema[key], step{kind: kind})
		}
	}
	for _, key := range alternatives {
		for _, s := range list(schema[key]) {
			inner(s, step{kind: option, words: identified(s)})
		}
	}
}

// identified names one of several schemas after the value that identifies it, if it has one.
func identified(of any) words {
	schema, _ := of.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, key := range []string{"id", "type"} {
		property, _ := properties[key].(map[string]any)
		if value, ok := property["const"].(string); ok {
			return split(value)
		}
		if values := list(property["enum"]); len(values) == 1 {
			if value, ok := values[0].(string); ok {
				return split(value)
			}
		}
	}
	return nil
}

// follow names what the steps lead to from a schema with the name w. The entries of a list of a
// response are in its field data and have the name of the resource.
func (u use) follow(w words) words {
	fields := 0
	for i, s := range u.steps {
		switch {
		case s.kind == entry || s.kind == value:
			w = w.singular()
			continue
		case s.kind == property && (s.name == "data" && fields == 0 || i+1 < len(u.steps) && slices.Contains(containers, s.name)):
		default:
			w = w.and(s.words...)
		}
		fields++
	}
	return w
}

// containers are fields that names omit before those of the fields within.
var containers = []string{"parameters", "properties"}

// field is the name of the last property on the path to the reference.
func (u use) field() words {
	for _, s := range slices.Backward(u.steps) {
		if len(s.words) > 0 {
			return s.words
		}
	}
	return nil
}
