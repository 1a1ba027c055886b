package components

import (
	"maps"
	"slices"
	"strconv"
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

// distinct renames components whose names generators derive for something else as well: the
// type of a property that is described in place, or of a parameter with a schema of an object. It
// names the fields of properties and parameters that differ only in spelling.
func distinct(doc map[string]any) {
	components, _ := doc["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	parameters, _ := components["parameters"].(map[string]any)
	derived := map[string]bool{}
	for name, s := range schemas {
		schema, _ := s.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for property, p := range properties {
			of, _ := p.(map[string]any)
			if derives := name + camel(property); of["$ref"] != "#/components/schemas/"+derives {
				derived[derives] = true
			}
		}
	}
	renamed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if !derived[name] {
			continue
		}
		to := name + "Value"
		for i := 2; derived[to] || schemas[to] != nil; i++ {
			to = name + "Value" + strconv.Itoa(i)
		}
		schemas[to] = schemas[name]
		delete(schemas, name)
		renamed["#/components/schemas/"+name] = "#/components/schemas/" + to
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if of, _ := parameters[name].(map[string]any); of["content"] != nil && schemas[camel(name)] != nil {
			parameters[name+"Parameter"] = of
			delete(parameters, name)
			renamed["#/components/parameters/"+name] = "#/components/parameters/" + name + "Parameter"
		}
	}
	rename(doc, renamed)
	spell(doc)
	paths, _ := doc["paths"].(map[string]any)
	each(paths, func(op map[string]any) {
		fields := map[string]bool{}
		for _, p := range list(op["parameters"]) {
			parameter, _ := p.(map[string]any)
			if ref, ok := parameter["$ref"].(string); ok {
				parameter, _ = parameters[ref[strings.LastIndexByte(ref, '/')+1:]].(map[string]any)
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

// rename replaces references.
func rename(v any, to map[string]string) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			rename(inner, to)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && to[ref] != "" {
			v["$ref"] = to[ref]
		}
		for _, inner := range v {
			rename(inner, to)
		}
	}
}
