package admin_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/shared/admin"
	"gateway/shared/testkit/admintest"
)

// schemaOf compiles the schema at a JSON pointer of the document.
func schemaOf(t *testing.T, pointer string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(admin.OpenAPI("t", "1", gadgetFamily())))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("doc.json#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func pointer(path, method, rest string) string {
	return "/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path) + "/" + method + rest + "/content/application~1json/schema"
}

func validate(t *testing.T, s *jsonschema.Schema, body []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return s.Validate(v)
}

func TestAnswersAreAsDocumented(t *testing.T) {
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a","color":"red","parts":["x"],"setup":{"fast":true},"key":"abcdefghij","made":"2026-01-01T00:00:00Z"}`)
	for _, c := range []struct{ method, path, at, body string }{
		{"GET", "/gadgets", "/gadgets", ""},
		{"GET", "/gadgets/{id}", "/gadgets/" + id, ""},
		{"POST", "/gadgets", "/gadgets", `{"name":"b"}`},
		{"PUT", "/gadgets/{id}", "/gadgets/" + id, `{"size":2}`},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		a := h.Do(c.method, c.at, admintest.WorkspaceA, body).OK()
		if err := validate(t, schemaOf(t, pointer(c.path, strings.ToLower(c.method), "/responses/200")), a.Body); err != nil {
			t.Errorf("%s %s: %v\n%s", c.method, c.path, err, a.Body)
		}
		refused := h.Do(c.method, c.at, "", body)
		if err := validate(t, schemaOf(t, pointer(c.path, strings.ToLower(c.method), "/responses/401")), refused.Body); err != nil {
			t.Errorf("%s %s refused: %v\n%s", c.method, c.path, err, refused.Body)
		}
	}
}

// The document's schema and the engine reject the same requests, except for unknown fields,
// which the engine ignores and reports.
func TestDocumentedBodiesAreThoseTheEngineTakes(t *testing.T) {
	create := schemaOf(t, pointer("/gadgets", "post", "/requestBody"))
	for _, body := range []string{
		`{"name":"a"}`, `{}`, `{"name":""}`, `{"name":null}`, `{"name":1}`, `{"name":"a","color":"red"}`, `{"name":"a","color":null}`,
		`{"name":"a","color":"green"}`, `{"name":"a","size":10}`, `{"name":"a","size":11}`, `{"name":"a","size":0}`, `{"name":"a","size":"1"}`,
		`{"name":"a","parts":["a","b","c"]}`, `{"name":"a","parts":["a","b","c","d"]}`, `{"name":"a","parts":[""]}`, `{"name":"a","parts":{}}`,
		`{"name":"a","setup":{"level":"low"}}`, `{"name":"a","setup":{"level":"mid"}}`, `{"name":"a","setup":{"x":1}}`, `{"name":"a","labels":{"a":"b"}}`,
		`{"name":"a","labels":{"a":1}}`, `{"name":"a","slug":"a b"}`, `{"name":"a","tags":null}`, `{"name":"aaaaaaaaaaaaaaaaaaaaa"}`, `[]`, `{"name":"a","workspace_id":1}`,
	} {
		h := newInstallation(t)
		got := h.Do("POST", "/gadgets", admintest.WorkspaceA, body)
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if err := validate(t, create, []byte(body)); (err == nil) != (got.Status == 200) {
			t.Errorf("%s: the engine says %d, the document %v", body, got.Status, err)
		}
	}
}

// A response that is a Go value is described by its type: what the value encodes to fits the
// description, and what differs in a field does not.
func TestSchemaOfAType(t *testing.T) {
	t.Parallel()
	type inner struct {
		N *int64 `json:"n"`
	}
	type answer struct {
		Kind  string            `json:"kind" enum:"a,b"`
		At    admin.Instant     `json:"at"`
		List  []inner           `json:"list"`
		Pairs map[string]string `json:"pairs,omitempty" doc:"Pairs."`
		Below inner             `json:"below"`
		Open  any               `json:"open,omitempty"`
	}
	raw, err := json.Marshal(admin.SchemaOf[answer]())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("a.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("a.json")
	if err != nil {
		t.Fatal(err)
	}
	n := int64(3)
	good, err := json.Marshal(answer{Kind: "a", At: admin.Instant(time.Now()), List: []inner{{&n}, {}}, Pairs: map[string]string{"k": "v"}})
	if err != nil || validate(t, s, good) != nil {
		t.Errorf("%s: %v %v", good, err, validate(t, s, good))
	}
	for _, bad := range []string{
		`{"kind":"c","at":"2026-01-01T00:00:00.000Z","list":[],"below":{"n":1}}`, `{"kind":"a","at":"soon","list":[],"below":{"n":1}}`,
		`{"kind":"a","at":"2026-01-01T00:00:00.000Z","list":[{}],"below":{"n":1}}`, `{"kind":"a","at":"2026-01-01T00:00:00.000Z","list":[],"below":{"n":"1"}}`,
		`{"kind":"a","at":"2026-01-01T00:00:00.000Z","list":[],"below":{"n":1},"more":1}`, `{"kind":"a","at":"2026-01-01T00:00:00.000Z","list":[],"below":{"n":1},"pairs":{"k":1}}`,
		`{"at":"2026-01-01T00:00:00.000Z","list":[],"below":{"n":1}}`, `{"kind":"a","at":"2026-01-01T00:00:00.000Z","list":null,"below":{"n":1}}`,
	} {
		if validate(t, s, []byte(bad)) == nil {
			t.Errorf("%s is as described", bad)
		}
	}
}
