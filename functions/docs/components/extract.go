// Package components moves repeated parts of an OpenAPI document to named components, and back.
package components

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Extract moves the schemas of requests and responses to components, with names, and replaces
// repeated parameters, headers and responses by references. doc is an OpenAPI document as
// encoding/json decodes it and is changed. Equal objects share a component, an existing one too.
// Equal responses for several errors become one for a range, and the security of most
// operations becomes that of the document. Names are distinct for generators of clients.
func Extract(doc map[string]any) {
	n := namer{components: object(doc, "components"), names: map[string]string{}, used: map[string]bool{}, seen: map[string]int{}, forms: map[string]map[string]int{}, bodies: map[string]bool{}, within: map[string]bool{}}
	for kind, all := range n.components {
		entries, _ := all.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			n.used[kind+"/"+name] = true
			n.names[kind+" "+canonical(entries[name])] = name
		}
	}
	paths, _ := doc["paths"].(map[string]any)
	splitTypes(doc)
	shareSecurity(doc, paths)
	each(paths, func(op map[string]any) {
		fold(op)
		n.count(op)
		n.bodies[bodyName(op)] = true
	})
	each(paths, func(op map[string]any) { n.operation(op) })
	uses := map[string]int{}
	references(doc, uses)
	n.putBack(doc, uses)
	distinct(doc)
}

// each calls f with every operation, in an order that does not change: those that return a
// resource come first, so that its schema has the name of the resource.
func each(paths map[string]any, f func(op map[string]any)) {
	var resources, others []map[string]any
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		at, _ := paths[path].(map[string]any)
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			op, ok := at[method].(map[string]any)
			if id, _ := op["operationId"].(string); strings.HasPrefix(id, "get") {
				resources = append(resources, op)
			} else if ok {
				others = append(others, op)
			}
		}
	}
	for _, op := range append(resources, others...) {
		f(op)
	}
}

// HeaderPrefix is the beginning of the names of the gateway's headers, which the names of their
// components omit.
const HeaderPrefix = "x-gateway-"

// repeated is the size in bytes from which a repeated object becomes a component: a reference
// to it has about 60.
const repeated = 60

// pays reports whether a schema of a size is shorter as a component with a name.
func pays(uses, size, name int) bool {
	reference := len(`{"$ref":"#/components/schemas/"}`) + name
	return uses > 1 && (uses-1)*size > uses*reference+name
}

type namer struct {
	components map[string]any
	names      map[string]string         // of components, by kind and content
	used       map[string]bool           // kind and name
	seen       map[string]int            // how often an object occurs, by content
	forms      map[string]map[string]int // how often properties of a name have a content
	bodies     map[string]bool           // names of responses, which are those of resources
	within     map[string]bool           // references to schemas from within schemas
}

// count counts objects by their content, before any is replaced.
func (n *namer) count(v any) {
	switch v := v.(type) {
	case map[string]any:
		if text := canonical(v); len(text) >= repeated {
			n.seen[text]++
		}
		properties, _ := v["properties"].(map[string]any)
		for name, property := range properties {
			if text := canonical(property); len(text) >= repeated {
				if n.forms[name] == nil {
					n.forms[name] = map[string]int{}
				}
				n.forms[name][text]++
			}
		}
		for _, inner := range v {
			n.count(inner)
		}
	case []any:
		for _, inner := range v {
			n.count(inner)
		}
	}
}

func (n *namer) operation(op map[string]any) {
	name := operationName(op)
	for i, p := range list(op["parameters"]) {
		parameter, _ := p.(map[string]any)
		own, ok := parameter["name"].(string) // of no parameter that is a reference already
		if text := canonical(parameter); ok && n.seen[text] > 1 {
			op["parameters"].([]any)[i] = n.component("parameters", own, text, parameter)
		}
	}
	if body, ok := op["requestBody"].(map[string]any); ok {
		n.content(body, name+"Request")
	}
	responses, _ := op["responses"].(map[string]any)
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		response, _ := responses[status].(map[string]any)
		text := canonical(response)
		hint := bodyName(op)
		if status[0] != '2' {
			hint = "Error"
		}
		headers, _ := response["headers"].(map[string]any)
		for _, header := range slices.Sorted(maps.Keys(headers)) {
			if of := canonical(headers[header]); n.seen[of] > 1 {
				headers[header] = n.component("headers", strings.TrimPrefix(header, HeaderPrefix), of, headers[header])
			}
		}
		n.content(response, hint)
		if n.seen[text] > 1 {
			responses[status] = n.component("responses", cmp.Or(schemaName(response), hint), text, response)
		}
	}
}

// operationName is the beginning of the names of an operation's bodies.
func operationName(op map[string]any) string {
	id, _ := op["operationId"].(string)
	return alias.ReplaceAllString(camel(id), "")
}

// alias is the end of the ids of an operation at other paths.
var alias = regexp.MustCompile(`Alias\d+$`)

// bodyName names the response of an operation, that of a read after what it reads.
func bodyName(op map[string]any) string {
	name := operationName(op)
	if rest, ok := strings.CutPrefix(name, "Get"); ok && rest != "" {
		return rest
	}
	return name + "Response"
}

// schemaName is the name of the schema of a successful JSON response without alternatives.
func schemaName(response map[string]any) string {
	content, _ := response["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	schema, _ := media["schema"].(map[string]any)
	ref, _ := schema["$ref"].(string)
	if len(content) != 1 || media["example"] == nil {
		return ""
	}
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// content names the schemas of the media types of a body.
func (n *namer) content(body map[string]any, hint string) {
	content, _ := body["content"].(map[string]any)
	for _, media := range slices.Sorted(maps.Keys(content)) {
		of, _ := content[media].(map[string]any)
		schema, ok := of["schema"].(map[string]any)
		if !ok || schema["$ref"] != nil || len(schema) == 0 {
			continue
		}
		text := canonical(schema)
		if !structured(schema) {
			continue
		}
		n.inner(schema, inside.ReplaceAllString(hint, "$1"))
		of["schema"] = n.component("schemas", hint, text, schema)
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

// inside turns the name of a request into that of what it changes, for the schemas within it.
var inside = regexp.MustCompile(`^(?:Create|Update)(.+)Request$`)

// inner replaces schemas within a schema that occur more than once.
func (n *namer) inner(schema map[string]any, hint string) {
	replace := func(v any, hint string) any {
		s, ok := v.(map[string]any)
		if !ok {
			return v
		}
		text := canonical(s)
		n.inner(s, hint)
		if pays(n.seen[text], len(text), len(hint)) {
			ref := n.component("schemas", hint, text, s)
			n.within[ref["$ref"].(string)] = true
			return ref
		}
		return s
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		within := hint + camel(name)
		if short := camel(name); n.usual(name, canonical(properties[name])) && !n.used["schemas/"+short] && !n.bodies[short] {
			within = short
		}
		properties[name] = replace(properties[name], within)
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if schema[key] != nil {
			schema[key] = replace(schema[key], singular(hint))
		}
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		for i, s := range list(schema[key]) {
			if of, _ := s.(map[string]any); of["type"] == "array" {
				if entry, _ := of["items"].(map[string]any); entry["enum"] != nil { // generators name it like the list
					of["items"] = n.component("schemas", singular(hint), canonical(entry), entry)
				}
			}
			schema[key].([]any)[i] = replace(s, hint+variant(s, i))
		}
	}
}

// references counts the references in a value.
func references(v any, uses map[string]int) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			uses[ref]++
		}
		for _, inner := range v {
			references(inner, uses)
		}
	case []any:
		for _, inner := range v {
			references(inner, uses)
		}
	}
}

// putBack replaces the only reference to a schema from within a schema by the schema: what
// repeated it became a component too.
func (n *namer) putBack(v any, uses map[string]int) any {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && uses[ref] == 1 && n.within[ref] {
			schemas, name := object(n.components, "schemas"), ref[strings.LastIndexByte(ref, '/')+1:]
			schema := schemas[name]
			delete(schemas, name)
			return n.putBack(schema, uses)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if inner, ok := v[name]; ok {
				v[name] = n.putBack(inner, uses)
			}
		}
	case []any:
		for i, inner := range v {
			v[i] = n.putBack(inner, uses)
		}
	}
	return v
}

// usual reports whether most properties of a name have this content.
func (n *namer) usual(name, text string) bool {
	for other, uses := range n.forms[name] {
		if uses > n.forms[name][text] || uses == n.forms[name][text] && other < text {
			return false
		}
	}
	return true
}

// variant names the i-th of several schemas after the value that identifies it, if it has one.
func variant(of any, i int) string {
	schema, _ := of.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, key := range []string{"id", "type"} {
		property, _ := properties[key].(map[string]any)
		if value, ok := property["const"].(string); ok {
			return camel(value)
		}
		if values := list(property["enum"]); len(values) > 0 {
			if value, ok := values[0].(string); ok {
				return camel(value)
			}
		}
	}
	return "Variant" + strconv.Itoa(i+1)
}

// singular names an entry of a list or a map.
func singular(name string) string {
	switch stem, ok := strings.CutSuffix(name, "s"); {
	case strings.HasSuffix(name, "ies"):
		return strings.TrimSuffix(name, "ies") + "y"
	case ok && !strings.HasSuffix(stem, "s") && !strings.HasSuffix(stem, "u"):
		return stem
	}
	return name + "Item"
}

// component returns a reference to a component with this content, which it adds under the
// hinted name, or with a number where another one has that name.
func (n *namer) component(kind, hint, text string, value any) map[string]any {
	key := kind + " " + text
	name, ok := n.names[key]
	if !ok {
		name = unnamed.ReplaceAllString(hint, "")
		for i := 2; n.used[kind+"/"+name]; i++ {
			name = unnamed.ReplaceAllString(hint, "") + strconv.Itoa(i)
		}
		n.names[key], n.used[kind+"/"+name] = name, true
		object(n.components, kind)[name] = value
	}
	return map[string]any{"$ref": "#/components/" + kind + "/" + name}
}

// unnamed are the characters that names of components cannot have.
var unnamed = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// camel turns workspace_id and createConfig into WorkspaceId and CreateConfig.
func camel(s string) string {
	var b strings.Builder
	upper := true
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			upper = true
			continue
		}
		if upper {
			r, upper = unicode.ToUpper(r), false
		}
		b.WriteRune(r)
	}
	return b.String()
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

// canonical is the content of a value: JSON with sorted names.
func canonical(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // it was decoded from JSON
		panic(err)
	}
	return string(raw)
}
