package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/functions/assembly"
	"gateway/functions/docs/components"
	"gateway/shared/relay"
	"gateway/shared/usage/segment"
)

// resolved is the document without references.
func resolved(t *testing.T, document string) []byte {
	t.Helper()
	out, err := components.Resolve([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// schemaOf compiles the schema of a response of the served document.
func schemaOf(t *testing.T, document, path, method string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(resolved(t, document)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("doc.json#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + method + "/responses/200/content/application~1json/schema")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// operations are the methods and paths of the served document.
func operations(t *testing.T, document string) map[string]map[string]any {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]map[string]any
	}
	if err := json.Unmarshal(resolved(t, document), &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			out[strings.ToUpper(method)+" "+path] = op
		}
	}
	return out
}

// The document that is served reports every route, and of no other: those of
// the administration's families, and those of the data plane.
//
//lane:exhaustive
//lane:standard
func TestTheDocumentIsTheRouter(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.call("GET", "/openapi.json", "", "X-Gateway-Api-Key", "")
	if got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	documented := operations(t, got.body)
	served := map[string]bool{}
	for _, f := range assembly.Administration(r.g.core, segment.New(r.g.core.Store, r.g.core.Bucket, segment.Options{})) {
		for _, rt := range f.Routes {
			for _, path := range append([]string{rt.Path}, rt.Aliases...) {
				served[rt.Method+" "+path] = true
			}
		}
	}
	for _, rt := range assembly.DataPlane() {
		path, methods := rt.Path, rt.Methods
		if path == relay.AnyPath {
			path = "/{providerEndpoint}"
		}
		path = strings.ReplaceAll(path, "+}", "}") // all that is below; the document's paths cannot say so
		if rt.Method != "" {
			methods = []string{rt.Method}
		}
		for _, method := range methods {
			served[method+" "+path] = true
		}
	}
	for op := range served {
		if documented[op] == nil {
			t.Errorf("%s is served and not documented", op)
		}
	}
	ids := map[string]string{}
	for op, body := range documented {
		if !served[op] {
			t.Errorf("%s is documented and not served", op)
		}
		id, _ := body["operationId"].(string)
		if other := ids[id]; other != "" || id == "" {
			t.Errorf("%s and %s have the operationId %q", op, other, id)
		}
		ids[id] = op
	}
}

// Every documented route answers a caller without a key with 401, in the form of
// its plane: none of them falls through to another route.
//
//lane:exhaustive
func TestEveryDocumentedRouteRequiresAKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	for op, body := range operations(t, r.call("GET", "/openapi.json", "").body) {
		method, path, _ := strings.Cut(op, " ")
		security, _ := body["security"].([]any)
		if len(security) == 0 || slices.ContainsFunc(security, func(one any) bool { return len(one.(map[string]any)) == 0 }) {
			continue // no key is asked for
		}
		got := r.call(method, strings.NewReplacer("{", "", "}", "").Replace(path), "", "X-Gateway-Api-Key", "no-such-key")
		administration := strings.Contains(got.body, `"errorCode":"AB05"`) || strings.HasPrefix(path, "/scim/") && strings.Contains(got.body, `"urn:ietf:params:scim:api:messages:2.0:Error"`)
		if tags := body["tags"].([]any); got.status != http.StatusUnauthorized || administration != (tags[0] != "inference") {
			t.Errorf("%s: %d %s", op, got.status, got.body)
		}
	}
}

//lane:exhaustive
func TestResponsesMatchTheDocument(t *testing.T) {
	t.Parallel()
	r := start(t)
	document := r.call("GET", "/openapi.json", "").body
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", "")},
		{"POST", "/chat/completions", chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", "")},
		{"POST", "/completions", `{"model":"@mock/gpt-3.5-turbo-instruct","prompt":"Once","max_tokens":9}`},
		{"POST", "/messages", chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_tokens":50`)},
		{"POST", "/messages", chatBody("@mock/gpt-4o-mini", "Hello", `,"max_tokens":50`)},
		{"POST", "/embeddings", `{"model":"@mock/text-embedding-3-small","input":["a","b"]}`},
		{"GET", "/models", ""},
		{"GET", "/logs", ""},
	} {
		got := r.call(c.method, c.path, c.body)
		if got.status != http.StatusOK {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
			continue
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(got.body))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaOf(t, document, c.path, strings.ToLower(c.method)).Validate(v); err != nil {
			t.Errorf("%s %s: %v\n%s", c.method, c.path, err, got.body)
		}
	}
}
