// Package components moves repeated parts of an OpenAPI document to named components, and back.
package components

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Extract moves the schemas of requests and responses to components, and replaces repeated
// parameters, headers and responses by references. doc is an OpenAPI document as encoding/json
// decodes it and is changed. Equal objects share a component, an existing one too; schemas that
// nothing refers to are removed. Equal responses for several errors become one for a range, and
// the security of most operations becomes that of the document.
//
// A name states the resource, the operation and the field of a component. It depends on the uses
// of the component and never contains a counter, so an unrelated route does not change it. A part
// without a good name is described in place.
func Extract(doc map[string]any) {
	paths, _ := doc["paths"].(map[string]any)
	splitTypes(doc)
	shareSecurity(doc, paths)
	each(paths, fold)
	x := newExtraction(doc)
	each(paths, func(op map[string]any) { count(op, x.seen) })
	x.given()
	each(paths, x.operation)
	x.inlineSingle(doc)
	nameSchemas(doc)
	all := object(doc, "components")
	shareResponses(paths, all)
	shareParameters(paths, all)
	distinctParameters(doc)
	spell(doc)
}

// each calls f with every operation, in the order of their paths.
func each(paths map[string]any, f func(op map[string]any)) {
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		at, _ := paths[path].(map[string]any)
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			if op, ok := at[method].(map[string]any); ok {
				f(op)
			}
		}
	}
}

// repeated is the size in bytes from which a repeated object becomes a component: a reference
// to it has about 60.
const repeated = 60

// typicalName is the length of the name of a component, before it has one.
const typicalName = 22

// pays reports whether a schema of a size is shorter as a component with a name.
func pays(uses, size int) bool {
	reference := len(`{"$ref":"`+schemaRef+`"}`) + typicalName
	return uses > 1 && (uses-1)*size > uses*reference+typicalName
}

// schemaRef is the beginning of references to schemas.
const schemaRef = "#/components/schemas/"

// unnamed begins the names of components until nameSchemas names them.
const unnamed = "{"

// extraction replaces schemas by references to components, which have hashes of their contents as
// names until nameSchemas names them.
type extraction struct {
	schemas map[string]any    // components
	names   map[string]string // by content
	seen    map[string]int    // how often an object occurs, by content
	within  map[string]bool   // references to schemas from within schemas
	values  map[string]bool   // references to values of lists, which stay components
}

func newExtraction(doc map[string]any) *extraction {
	x := &extraction{schemas: object(object(doc, "components"), "schemas"), names: map[string]string{}, seen: map[string]int{}, within: map[string]bool{}, values: map[string]bool{}}
	for name, schema := range x.schemas {
		x.names[canonical(schema)] = name
	}
	return x
}

// given replaces repeated schemas within the components that have names already.
func (x *extraction) given() {
	for _, text := range slices.Sorted(maps.Keys(x.names)) {
		name := x.names[text]
		schema, _ := clone(x.schemas[name]).(map[string]any)
		x.inner(schema)
		x.schemas[name] = schema
	}
}

// count counts objects by their content, before any is replaced.
func count(v any, seen map[string]int) {
	switch v := v.(type) {
	case map[string]any:
		if text := canonical(v); len(text) >= repeated {
			seen[text]++
		}
		for _, inner := range v {
			count(inner, seen)
		}
	case []any:
		for _, inner := range v {
			count(inner, seen)
		}
	}
}

func (x *extraction) operation(op map[string]any) {
	if body, ok := op["requestBody"].(map[string]any); ok {
		x.content(body)
	}
	responses, _ := op["responses"].(map[string]any)
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if response, ok := responses[status].(map[string]any); ok {
			x.content(response)
		}
	}
}

// content replaces the schemas of the media types of a body.
func (x *extraction) content(body map[string]any) {
	content, _ := body["content"].(map[string]any)
	for _, media := range slices.Sorted(maps.Keys(content)) {
		of, _ := content[media].(map[string]any)
		schema, ok := of["schema"].(map[string]any)
		if !ok || schema["$ref"] != nil || !structured(schema) {
			continue
		}
		text := canonical(schema)
		x.inner(schema)
		of["schema"] = x.component(text, schema)
	}
}

// structured reports whether a schema describes more than a plain value.
func structured(schema map[string]any) bool {
	for _, key := range []string{"properties", "items", "oneOf", "anyOf", "allOf", "additionalProperties"} {
		if schema[key] != nil {
			return true
		}
	}
	return schema["type"] == "object"
}

// inner replaces schemas within a schema that occur more than once.
func (x *extraction) inner(schema map[string]any) {
	replace := func(v any) any {
		s, ok := v.(map[string]any)
		if !ok {
			return v
		}
		text := canonical(s)
		x.inner(s)
		if pays(x.seen[text], len(text)) {
			ref := x.component(text, s)
			x.within[refOf(ref)] = true
			return ref
		}
		return s
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		properties[name] = replace(properties[name])
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if schema[key] != nil {
			schema[key] = replace(schema[key])
		}
	}
	for _, key := range alternatives {
		for i, s := range list(schema[key]) {
			if of, _ := s.(map[string]any); listsValues(of) {
				entry := of["items"].(map[string]any)
				ref := x.component(canonical(entry), entry)
				x.values[refOf(ref)] = true
				of["items"] = ref
			}
			schema[key].([]any)[i] = replace(s)
		}
	}
}

// alternatives are the keywords of schemas of which several apply.
var alternatives = []string{"oneOf", "anyOf", "allOf"}

// listsValues reports whether a schema is a list of values of an enumeration. As an alternative,
// generators name such a value like the list, unless it is a component.
func listsValues(schema map[string]any) bool {
	entry, _ := schema["items"].(map[string]any)
	return schema["type"] == "array" && entry["enum"] != nil
}

// component returns a reference to a component with this content, which it adds.
func (x *extraction) component(text string, value any) map[string]any {
	name, ok := x.names[text]
	if !ok {
		sum := sha256.Sum256([]byte(text))
		name = unnamed + hex.EncodeToString(sum[:12])
		x.names[text], x.schemas[name] = name, value
	}
	return map[string]any{"$ref": schemaRef + name}
}

// inlineSingle replaces the only reference to a schema from within a schema by the schema: what
// repeated it became a component too. It removes schemas without references.
func (x *extraction) inlineSingle(doc map[string]any) {
	uses := map[string]int{}
	references(doc, uses)
	x.inline(doc, func(ref string) bool { return uses[ref] == 1 && x.within[ref] && !x.values[ref] })
	removeUnused(doc)
}

// inline replaces references by the schemas to which they refer.
func (x *extraction) inline(v any, wanted func(ref string) bool) any {
	return replaceRefs(v, func(ref map[string]any) any {
		to := refOf(ref)
		name, ok := strings.CutPrefix(to, schemaRef)
		if !ok || !wanted(to) {
			return ref
		}
		return x.inline(clone(x.schemas[name]), wanted)
	})
}

// removeUnused removes schemas to which nothing refers, directly or through others that nothing
// refers to.
func removeUnused(doc map[string]any) {
	schemas := object(object(doc, "components"), "schemas")
	for removed := true; removed; {
		removed = false
		uses := map[string]int{}
		references(doc, uses)
		for name := range schemas {
			if uses[schemaRef+name] == 0 {
				delete(schemas, name)
				removed = true
			}
		}
	}
}

// references counts the references in a value.
func references(v any, uses map[string]int) {
	replaceRefs(v, func(ref map[string]any) any {
		uses[refOf(ref)]++
		return ref
	})
}

// replaceRefs replaces every object that is a reference by the result of f, in a value that is
// changed and returned.
func replaceRefs(v any, f func(ref map[string]any) any) any {
	switch v := v.(type) {
	case map[string]any:
		if refOf(v) != "" {
			return f(v)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = replaceRefs(v[name], f)
		}
	case []any:
		for i, inner := range v {
			v[i] = replaceRefs(inner, f)
		}
	}
	return v
}

// refOf is the target of a reference, or empty.
func refOf(v any) string {
	of, _ := v.(map[string]any)
	ref, _ := of["$ref"].(string)
	return ref
}

// object returns the object under a name, which is added if it is missing.
func object(of map[string]any, name string) map[string]any {
	o, ok := of[name].(map[string]any)
	if !ok {
		o = map[string]any{}
		of[name] = o
	}
	return o
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// clone copies a value of JSON.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[name] = clone(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = clone(inner)
		}
		return out
	}
	return v
}

// canonical is the content of a value: JSON with sorted names.
func canonical(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // it was decoded from JSON
		panic(err)
	}
	return string(raw)
}
