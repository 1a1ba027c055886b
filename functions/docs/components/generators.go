package components

import (
	"maps"
	"slices"
	"strings"
)

// What follows states the document so that generators of clients accept it: those for Go derive
// the names of types and fields from it, and two that are equal do not compile.

// keywords are those that apply to values of one type only.
var keywords = map[string][]string{
	"object":  {"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties", "propertyNames"},
	"array":   {"items", "minItems", "maxItems", "uniqueItems", "prefixItems"},
	"string":  {"minLength", "maxLength", "pattern", "format"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}

// splitTypes turns schemas of several types besides null into alternatives of one type each.
func splitTypes(v any) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			splitTypes(inner)
		}
	case map[string]any:
		for name, inner := range v {
			if name != "example" && name != "default" && name != "enum" {
				splitTypes(inner)
			}
		}
		of := list(v["type"])
		if v["anyOf"] != nil || len(of) < 2 || len(of) == 2 && slices.Contains(of, any("null")) {
			return
		}
		var alternatives []any
		for _, t := range of {
			one := map[string]any{"type": t}
			name, _ := t.(string)
			for _, key := range keywords[name] {
				if v[key] != nil {
					one[key] = v[key]
				}
			}
			alternatives = append(alternatives, one)
		}
		for _, keys := range keywords {
			for _, key := range keys {
				delete(v, key)
			}
		}
		delete(v, "type")
		v["anyOf"] = alternatives
	}
}

// ban bans the names of schemas that generators derive for something else as well: the type of a
// property that is described in place. It reports whether there are any.
func (n *namer) ban() bool {
	derived := map[string]bool{}
	for id, schema := range n.schemas {
		derive(schema, n.names[id], derived)
	}
	found := false
	for id, name := range n.names {
		if derived[name.String()] {
			n.banned[id+" "+name.String()], found = true, true
		}
	}
	return found
}

// derive adds the names of the types of the properties of a schema with a name.
func derive(v any, name words, derived map[string]bool) {
	schema, _ := v.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	for property, of := range properties {
		if refOf(of) != "" {
			continue
		}
		own := name.and(camel(property))
		if one, _ := of.(map[string]any); structured(one) || one["enum"] != nil {
			derived[own.String()] = true
		}
		derive(of, own, derived)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if schema[key] != nil {
			derive(schema[key], name, derived)
		}
	}
}

// distinctParameters renames parameters whose schema is an object with the name of another schema,
// and names the fields of parameters of an operation that differ only in spelling.
func distinctParameters(doc map[string]any) {
	all := object(doc, "components")
	schemas, parameters := object(all, "schemas"), object(all, "parameters")
	renamed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if of, _ := parameters[name].(map[string]any); of["content"] != nil && schemas[camel(name)] != nil {
			parameters[name+"Parameter"] = of
			delete(parameters, name)
			renamed[parameterRef+name] = parameterRef + name + "Parameter"
		}
	}
	paths, _ := doc["paths"].(map[string]any)
	each(paths, func(op map[string]any) {
		fields := map[string]bool{}
		for _, p := range list(op["parameters"]) {
			parameter, _ := p.(map[string]any)
			if ref := refOf(parameter); ref != "" {
				if renamed[ref] != "" {
					parameter["$ref"] = renamed[ref]
				}
				parameter, _ = parameters[strings.TrimPrefix(refOf(parameter), parameterRef)].(map[string]any)
			}
			name, _ := parameter["name"].(string)
			// The functions of a client have a parameter server of their own.
			if fields[camel(name)] || parameter["in"] == "path" && name == "server" {
				parameter[goName] = camel(name) + "Parameter"
			}
			fields[camel(name)] = true
		}
	})
}

// goName is the extension by which generators for Go name a field.
const goName = "x-go-name"

// spell names the fields of properties of one object that differ only in spelling.
func spell(v any) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			spell(inner)
		}
	case map[string]any:
		properties, _ := v["properties"].(map[string]any)
		fields := map[string]bool{}
		// custom_host sorts behind customHost, which is the other spelling.
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(properties))) {
			if property, ok := properties[name].(map[string]any); ok && fields[camel(name)] {
				property[goName] = camel(name) + "Alias"
			}
			fields[camel(name)] = true
		}
		for _, inner := range v {
			spell(inner)
		}
	}
}
