package docs_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/functions/docs/components"
	"gateway/functions/docs/document"
)

// Every JSON body has an example, which fits its schema.
func TestExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	resolved, err := components.Resolve(document.JSON)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(resolved))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	check := func(holder, at string, media map[string]any) {
		schema, err := c.Compile("doc.json#" + at + "/schema")
		if err != nil {
			t.Errorf("%s: %v", at, err)
			return
		}
		example, there := media["example"]
		if !there {
			t.Errorf("%s has no example", at)
			return
		}
		n++
		if object, _ := example.(map[string]any); strings.HasSuffix(holder, "requestBody") && len(object) == 0 {
			t.Errorf("%s has an example that says nothing", at)
		}
		if err := schema.Validate(example); err != nil {
			raw, _ := json.Marshal(example)
			t.Errorf("%s: %v: %s", at, err, raw)
		}
	}
	point := strings.NewReplacer("~", "~0", "/", "~1")
	bodies := func(at string, holder any) {
		content, _ := holder.(map[string]any)["content"].(map[string]any)
		for kind, media := range content {
			if strings.HasSuffix(kind, "json") {
				check(at, at+"/content/"+point.Replace(kind), media.(map[string]any))
			}
		}
	}
	for path, at := range doc.(map[string]any)["paths"].(map[string]any) {
		for method, o := range at.(map[string]any) {
			op := o.(map[string]any)
			where := "/paths/" + point.Replace(path) + "/" + method
			if body, ok := op["requestBody"]; ok {
				bodies(where+"/requestBody", body)
			}
			for status, answer := range op["responses"].(map[string]any) {
				if status[0] == '2' {
					bodies(where+"/responses/"+status, answer)
				}
			}
		}
	}
	if n < 400 {
		t.Errorf("only %d bodies have examples", n)
	}
}
