// Package components moves repeated parts of an OpenAPI document to named components, and back.
package components

import (
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
// encoding/json decodes it and is changed. Equal objects share a component.
func Extract(doc map[string]any) {
	n := namer{components: object(doc, "components"), names: map[string]string{}, used: map[string]bool{}, seen: map[string]int{}}
	for kind, all := range n.components {
		entries, _ := all.(map[string]any)
		for name := range entries {
			n.used[kind+"/"+name] = true
		}
	}
	paths, _ := doc["paths"].(map[string]any)
	each(paths, func(op map[string]any) { n.count(op) })
	each(paths, func(op map[string]any) { n.operation(op) })
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

// Sizes in bytes from which a repeated object becomes a component: a reference to it has about
// 60, and one to a schema within a schema, with its longer name, about 100.
const (
	repeated       = 60
	repeatedSchema = 160
)

type namer struct {
	components map[string]any
	names      map[string]string // of components, by kind and content
	used       map[string]bool   // kind and name
	seen       map[string]int    // how often an object occurs, by content
}

// count counts objects by their content, before any is replaced.
func (n *namer) count(v any) {
	switch v := v.(type) {
	case map[string]any:
		if text := canonical(v); len(text) >= repeated {
			n.seen[text]++
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
	id, _ := op["operationId"].(string)
	name := camel(id)
	for i, p := range list(op["parameters"]) {
		parameter, _ := p.(map[string]any)
		if text := canonical(parameter); n.seen[text] > 1 {
			own, _ := parameter["name"].(string)
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
		hint := name + "Response"
		if status[0] != '2' {
			hint = "Error"
		} else if rest, ok := strings.CutPrefix(name, "Get"); ok && rest != "" {
			hint = rest
		}
		headers, _ := response["headers"].(map[string]any)
		for _, header := range slices.Sorted(maps.Keys(headers)) {
			if of := canonical(headers[header]); n.seen[of] > 1 {
				headers[header] = n.component("headers", header, of, headers[header])
			}
		}
		n.content(response, hint)
		if status[0] != '2' && n.seen[text] > 1 {
			responses[status] = n.component("responses", hint, text, response)
		}
	}
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
		n.inner(schema, hint)
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

// inner replaces schemas within a schema that occur more than once.
func (n *namer) inner(schema map[string]any, hint string) {
	replace := func(v any, hint string) any {
		s, ok := v.(map[string]any)
		if !ok {
			return v
		}
		text := canonical(s)
		n.inner(s, hint)
		if n.seen[text] > 1 && len(text) >= repeatedSchema && structured(s) {
			return n.component("schemas", hint, text, s)
		}
		return s
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		properties[name] = replace(properties[name], hint+camel(name))
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if schema[key] != nil {
			schema[key] = replace(schema[key], strings.TrimSuffix(hint, "s")+"Item")
		}
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		for i, s := range list(schema[key]) {
			schema[key].([]any)[i] = replace(s, hint+"Variant"+strconv.Itoa(i+1))
		}
	}
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
