package docs

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gateway/functions/docs/components"
	"gateway/functions/docs/document"
)

// numbered are names of components that end with a digit, with the reason.
var numbered = map[string]string{}

// inPlace is the share of operations, in percent, that may describe a body in place.
const inPlace = 5

func TestComponentsHaveNamesWithMeaning(t *testing.T) {
	t.Parallel()
	doc := decoded(t, document.JSON)
	for kind, all := range members(doc["components"]) {
		for name := range members(all) {
			if regexp.MustCompile(`[0-9]$`).MatchString(name) && numbered[name] == "" {
				t.Errorf("%s: %s ends with a digit: state what distinguishes it, or list it with a reason", kind, name)
			}
		}
	}
	if schemas := members(members(doc["components"])["schemas"]); len(schemas) < 150 {
		t.Errorf("only %d schemas have names", len(schemas))
	}
	total, described := 0, []string{}
	for path, at := range members(doc["paths"]) {
		for method, o := range members(at) {
			if op := members(o); op["operationId"] != nil {
				if total++; describesInPlace(op) {
					described = append(described, method+" "+path)
				}
			}
		}
	}
	if len(described)*100 > total*inPlace {
		t.Errorf("%d of %d operations describe a body in place, %d %% may: %q", len(described), total, inPlace, described)
	}
}

func describesInPlace(op map[string]any) bool {
	bodies := []any{op["requestBody"]}
	for _, response := range members(op["responses"]) {
		bodies = append(bodies, response)
	}
	for _, body := range bodies {
		for _, media := range members(members(body)["content"]) {
			schema := members(members(media)["schema"])
			if schema["properties"] != nil || schema["items"] != nil || schema["oneOf"] != nil || schema["anyOf"] != nil {
				return true
			}
		}
	}
	return false
}

// A route does not decide how the components of routes of other resources are named: without those
// of every seventh path, what the others use has the same names.
func TestNamesOfComponentsDoNotDependOnOtherRoutes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: names the components of the whole document several times")
	}
	t.Parallel()
	resolved, err := components.Resolve(document.JSON)
	if err != nil {
		t.Fatal(err)
	}
	whole := named(t, resolved, nil)
	for kind, all := range members(decoded(t, document.JSON)["components"]) {
		if kind != "securitySchemes" && !slices.Equal(slices.Sorted(maps.Keys(members(all))), slices.Sorted(maps.Keys(members(whole.components[kind])))) {
			t.Errorf("%s have other names when they are named again", kind)
		}
	}
	removed := map[string]bool{} // resources
	for i, path := range slices.Sorted(maps.Keys(members(decoded(t, resolved)["paths"]))) {
		if i%7 == 4 {
			removed[collection(path)] = true
		}
	}
	reduced := named(t, resolved, removed)
	compared := 0
	for ref, users := range whole.users {
		if name, ok := strings.CutPrefix(ref, parameterRef); ok { // another form has the plain name
			plain, _ := members(members(whole.components["parameters"])[name])["name"].(string)
			users = slices.Concat(users, whole.users[parameterRef+plain])
		}
		if slices.ContainsFunc(users, func(path string) bool { return removed[collection(path)] }) {
			continue
		}
		if compared++; reduced.users[ref] == nil {
			t.Errorf("%s has another name without routes that do not use it", ref)
		}
	}
	if compared < 200 {
		t.Errorf("only %d components are not used by the routes without which they were named", compared)
	}
}

const parameterRef = "#/components/parameters/"

// collection is the path of a resource, without the parts of its routes.
func collection(path string) string {
	before, _, _ := strings.Cut(path, "/{")
	return before
}

type namedDocument struct {
	components map[string]any
	users      map[string][]string // paths by reference
}

// named names the components of a document without the routes of some resources.
func named(t *testing.T, resolved []byte, removed map[string]bool) namedDocument {
	t.Helper()
	doc := decoded(t, resolved)
	schemas := members(members(doc["components"])["schemas"])
	given := map[string]any{}
	for _, name := range []string{"Error", errorName, "EmptyObject", "JSONObject"} {
		given[name] = schemas[name]
	}
	raw, err := json.Marshal(headerParameters())
	if err != nil {
		t.Fatal(err)
	}
	doc["components"] = map[string]any{"schemas": given, "parameters": decoded(t, raw)}
	nameSharedSchemas(doc)
	paths := members(doc["paths"])
	maps.DeleteFunc(paths, func(path string, _ any) bool { return removed[collection(path)] })
	components.Extract(doc)
	out := namedDocument{members(doc["components"]), map[string][]string{}}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		out.mark(paths[path], path)
	}
	return out
}

// mark adds a path to what a value refers to, directly or through components.
func (d namedDocument) mark(v any, path string) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && strings.HasPrefix(ref, "#/components/") {
			if users := d.users[ref]; len(users) == 0 || users[len(users)-1] != path {
				d.users[ref] = append(users, path)
				kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
				d.mark(members(d.components[kind])[name], path)
			}
			return
		}
		for _, inner := range v {
			d.mark(inner, path)
		}
	case []any:
		for _, inner := range v {
			d.mark(inner, path)
		}
	}
}

func decoded(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}
