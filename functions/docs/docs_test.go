package docs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/shared/admin"
	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	openairesponses "gateway/shared/dialect/responses"
	"gateway/shared/relay"
	"gateway/shared/testkit/admintest"
)

// routes of the tests: of each shape one, and one that the package does not know.
var routes = []relay.Route{
	{Method: "POST", Path: "/chat/completions", Endpoint: "chatComplete", BodyMode: relay.Unified, Scope: "completions.write", Client: openai.Chat{}},
	{Method: "POST", Path: "/completions", Endpoint: "complete", BodyMode: relay.Unified, Scope: "completions.write", Client: openai.Completions{}},
	{Method: "POST", Path: "/messages", Endpoint: "messages", BodyMode: relay.Unified, Scope: "completions.write", Client: anthropic.Messages{}},
	{Method: "POST", Path: "/responses", Endpoint: "createModelResponse", BodyMode: relay.Unified, Scope: "completions.write", Client: openairesponses.Responses{}},
	{Method: "GET", Path: "/models", Endpoint: "models", BodyMode: relay.Listing, Scope: "models.list", OrScopes: []string{"completions.write"}},
	{Method: "GET", Path: "/things/{thingId}", Endpoint: "getThing", BodyMode: relay.Unified, Scope: "completions.write"},
	{Method: "POST", Path: "/things/{thingId}", Endpoint: "makeThing", BodyMode: relay.Unified, Scope: "completions.write"},
	{Methods: []string{"GET", "PUT"}, Path: relay.AnyPath, Endpoint: "proxy", BodyMode: relay.Raw, Scope: "completions.write"},
}

// family has a path that a data-plane route has too, with another method.
func family() admin.Family {
	return admin.Family{Name: "things", Doc: "Things.", Routes: []admin.Route{{
		Method: "DELETE", Path: "/things/{thingId}", Name: "deleteThing", Doc: "Delete a thing.", Scopes: []string{"configs.delete"}, Level: admin.InWorkspace,
		Action: "delete", Resource: "things", Do: func(*admin.Call) (any, error) { return nil, nil },
	}}}
}

func newInstallation(t testing.TB) *admintest.Installation {
	return admintest.New(t, New(nil, routes, family()))
}

func TestFamilyChecks(t *testing.T) { admintest.CheckFamily(t, newInstallation(t)) }

func TestDocumentIsPublicAndDescribesBothPlanes(t *testing.T) {
	a := newInstallation(t).Do("GET", "/openapi.json", "", nil).OK()
	if a.Text("openapi") != "3.1.0" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the document begins %.200s", a.Body)
	}
	for path, want := range map[string]any{
		"/chat/completions post operationId": "chatComplete", "/things/{thingId} get operationId": "getThing", "/things/{thingId} delete operationId": "deleteThing",
		"/{providerEndpoint} put operationId": "proxyPut", "/{providerEndpoint} get operationId": "proxyGet", "/{providerEndpoint} post operationId": nil,
		"/openapi.json get operationId": "getDocument", "/models get x-gateway-scopes 1": "completions.write", "/things/{thingId} post parameters 0 $ref": "#/components/parameters/thingId",
		"/models post operationId": nil, "/models get requestBody": nil, "/completions post requestBody required": true,
	} {
		if got := a.At(append([]string{"paths"}, strings.Fields(path)...)...); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
}

func TestDocumentIsAlwaysTheSame(t *testing.T) {
	if a, b := newInstallation(t).Do("GET", "/openapi.json", "", nil).OK(), newInstallation(t).Do("GET", "/openapi.json", "", nil).OK(); !bytes.Equal(a.Body, b.Body) {
		t.Error("two documents of the same descriptions differ")
	}
}

func TestTwoOperationsOfOneNameAreAMistake(t *testing.T) {
	twice := append(routes[:len(routes):len(routes)], relay.Route{Method: "DELETE", Path: "/things/{thingId}", Endpoint: "dropThing", Scope: "x"})
	if _, err := build(twice, []admin.Family{family()}); err == nil {
		t.Error("a path that two serve went unnoticed")
	}
}

// compile gives the schema at a pointer of the document.
func compile(t *testing.T, document []byte, pointer string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("doc.json#" + pointer)
	if err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}
	return s
}

// walk visits every field of a JSON value.
func walk(v any, at string, visit func(at string, m map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(at, v)
		for k, e := range v {
			walk(e, at+"/"+strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "*", "%2A").Replace(k), visit)
		}
	case []any:
		for _, e := range v {
			walk(e, at, visit)
		}
	}
}

func TestEverySchemaAndReferenceHolds(t *testing.T) {
	a := newInstallation(t).Do("GET", "/openapi.json", "", nil).OK()
	doc := a.Object()
	schemas, ids := 0, map[string]bool{}
	walk(doc, "", func(at string, m map[string]any) {
		if ref, ok := m["$ref"].(string); ok {
			if a.At(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
				t.Errorf("%s: %s leads nowhere", at, ref)
			}
		}
		if id, ok := m["operationId"].(string); ok {
			if ids[id] {
				t.Errorf("the operation %s is listed twice", id)
			}
			ids[id] = true
		}
		if _, ok := m["schema"]; ok && strings.Contains(at, "/content/") {
			schemas++
			compile(t, a.Body, at+"/schema")
		}
	})
	if schemas < 20 {
		t.Errorf("only %d schemas were seen", schemas)
	}
}

// The document's schemas and the dialects reject the same requests, as far as a schema of
// this size can say it.
func TestDocumentedBodiesAreThoseTheDialectsTake(t *testing.T) {
	document, err := build(routes, nil)
	if err != nil {
		t.Fatal(err)
	}
	messages := `"messages":[{"role":"user","content":"a"}]`
	for path, c := range map[string]struct {
		dialect chat.TwoWayDialect
		bodies  []string
	}{
		"/chat/completions": {openai.Chat{}, []string{
			`{"model":"m",` + messages + `}`, `{` + messages + `}`, `{"model":"m"}`, `{"model":1,` + messages + `}`, `{"messages":[]}`, `{"messages":{}}`, `{` + messages + `,"temperature":2}`, `{` + messages + `,"temperature":2.1}`,
			`{` + messages + `,"temperature":null}`, `{` + messages + `,"top_p":-0.1}`, `{` + messages + `,"n":0}`, `{` + messages + `,"n":128}`, `{` + messages + `,"n":129}`, `{` + messages + `,"presence_penalty":-2.5}`,
			`{` + messages + `,"frequency_penalty":2}`, `{` + messages + `,"stop":"x"}`, `{` + messages + `,"stop":["a","b","c","d"]}`, `{` + messages + `,"stop":["a","b","c","d","e"]}`, `{` + messages + `,"stop":1}`,
			`{` + messages + `,"logit_bias":{"1":101}}`, `{` + messages + `,"logit_bias":{"1":-100}}`, `{` + messages + `,"stream":"yes"}`, `{` + messages + `,"max_tokens":-1}`, `{` + messages + `,"max_tokens":0}`,
			`{` + messages + `,"top_logprobs":21,"logprobs":true}`, `{` + messages + `,"top_logprobs":20,"logprobs":true}`, `{` + messages + `,"user":1}`, `{` + messages + `,"unknown":[1]}`, `{` + messages + `,"tools":{}}`, `[]`,
		}},
		"/completions": {openai.Completions{}, []string{
			`{"prompt":"a"}`, `{}`, `{"prompt":["a","b"]}`, `{"prompt":[1,2]}`, `{"prompt":1}`, `{"prompt":"a","logprobs":5}`, `{"prompt":"a","logprobs":6}`, `{"prompt":"a","best_of":20}`, `{"prompt":"a","best_of":21}`, `{"prompt":"a","echo":1}`,
		}},
		"/responses": {openairesponses.Responses{}, []string{
			`{"model":"m","input":"a"}`, `{"input":[{"role":"user","content":"a"}]}`, `{"input":1}`, `{"input":[1]}`, `{"input":"a","temperature":2.5}`, `{"input":"a","temperature":null}`, `{"input":"a","max_output_tokens":0}`,
			`{"input":"a","max_output_tokens":1}`, `{"input":"a","top_logprobs":21}`, `{"input":"a","store":1}`, `{"input":"a","metadata":{"a":1}}`, `{"input":"a","metadata":{"a":"b"}}`, `{"input":"a","truncation":"some"}`,
			`{"input":"a","tools":{}}`, `{"input":"a","include":[1]}`, `{"previous_response_id":"r"}`, `{"previous_response_id":1}`, `{"input":"a","conversation":{"id":"c"}}`, `{"input":"a","stream":"yes"}`, `{"input":"a","unknown":[1]}`,
		}},
		"/messages": {anthropic.Messages{}, []string{
			`{"model":"m","max_tokens":1,` + messages + `}`, `{"model":"m",` + messages + `}`, `{"max_tokens":1}`, `{"max_tokens":0,` + messages + `}`, `{"max_tokens":1,"temperature":1.5,` + messages + `}`, `{"max_tokens":1,"temperature":1,` + messages + `}`,
			`{"max_tokens":1,"system":"s",` + messages + `}`, `{"max_tokens":1,"system":1,` + messages + `}`, `{"max_tokens":1,"top_k":-1,` + messages + `}`, `{"max_tokens":1,"stop_sequences":["a"],` + messages + `}`, `{"max_tokens":1,"stop_sequences":"a",` + messages + `}`,
			`{"max_tokens":1,"messages":[]}`, `{"max_tokens":1,"stream":0,` + messages + `}`,
		}},
	} {
		s := compile(t, document, "/paths/"+strings.ReplaceAll(path, "/", "~1")+"/post/requestBody/content/application~1json/schema")
		for _, b := range c.bodies {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			documented, checked := s.Validate(v), c.dialect.Check([]byte(b), new(chat.Checked))
			if (documented == nil) != (checked == nil) {
				t.Errorf("%s %s: the document says %v, the dialect %v", path, b, documented, checked)
			}
		}
	}
}

func TestRefusalsAreAsDocumented(t *testing.T) {
	document, err := build(routes, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := compile(t, document, "/components/schemas/"+errorName)
	for body, want := range map[string]bool{
		string(admin.Denied().DataBody(false)): true, string(admin.Denied().DataBody(true)): true, `{"message":"no error"}`: false,
		`{"error":{"message":"a provider's own","type":null,"param":null,"code":429}}`: true,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); (err == nil) != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Bodies that start jobs are described with what the gateway adds to them.
func TestBodiesOfJobsAreDescribed(t *testing.T) {
	for endpoint, member := range map[string]string{
		"createBatch": "gateway_options", "uploadFile": "purpose", "createFinetune": "training_file", "rerank": "documents", "imageGenerate": "prompt", "moderate": "input",
	} {
		b := bodyOf(&relay.Route{Endpoint: endpoint, BodyMode: relay.Unified})
		members, _ := b.request["properties"].(map[string]admin.Schema)
		if members[member] == nil || b.response["properties"] == nil {
			t.Errorf("%s: no %s in %v", endpoint, member, b.request)
		}
	}
}
