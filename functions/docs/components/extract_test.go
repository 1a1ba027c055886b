package components

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const sample = `{"openapi":"3.1.0","components":{"schemas":{"Error":{"type":"object"}}},"paths":{
"/things":{"post":{"operationId":"createThing","parameters":[` + page + `],
 "requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"limits":` + limits + `}}}}},
 "security":[{"Key":[]}],"responses":{"200":{"description":"Done.","content":{"application/json":{"schema":` + thing + `}}},"400":` + refused + `,"404":` + missing + `}},
"get":{"operationId":"listThings","security":[],"parameters":[` + page + `],
 "responses":{"200":{"description":"Done.","content":{"application/json":{"schema":{"type":"array","items":` + thing + `}},"text/csv":{"schema":{"type":"string"}}}},"400":` + refused + `}}},
"/things/{id}":{"get":{"operationId":"getThing","security":[{"Key":[]}],"responses":{"200":{"description":"Done.","content":{"application/json":{"schema":` + thing + `}}},"400":` + refused + `,"404":` + missing + `,"409":{"description":"It changed."},"503":` + refused + `}}}}}`

const (
	limits  = `{"type":"object","properties":{"credit_limit":{"type":"number","description":"The most that may be spent in a period, in US dollars."},"type":{"type":"string"}}}`
	thing   = `{"type":"object","properties":{"id":{"type":"string"},"limits":` + limits + `}}`
	refused = `{"description":"Refused, with the name of the field and of what is allowed there.","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Error"}}}}`
	missing = `{"description":"Not found.","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Error"}}}}`
	page    = `{"name":"page","in":"query","description":"Pages begin with 1, and a page has as many entries as page_size says.","schema":{"type":"integer"}}`
)

func extracted(t *testing.T) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(sample), &doc); err != nil {
		t.Fatal(err)
	}
	Extract(doc)
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestExtractNamesSchemasAfterTheirOperations(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components map[string]map[string]any `json:"components"`
		Paths      json.RawMessage           `json:"paths"`
	}
	if err := json.Unmarshal(extracted(t), &doc); err != nil {
		t.Fatal(err)
	}
	for kind, names := range map[string][]string{"schemas": {"Error", "Thing", "ThingLimits", "CreateThingRequest", "ListThingsResponse"}, "parameters": {"page"}, "responses": {"PublicErrorOrBadRequest", "PublicErrorOrBadRequestOrNotFound", "ThingResponse"}} {
		if len(doc.Components[kind]) != len(names) {
			t.Errorf("%s: %v", kind, doc.Components[kind])
		}
		for _, name := range names {
			if doc.Components[kind][name] == nil {
				t.Errorf("%s has no %s", kind, name)
			}
		}
	}
	if strings.Contains(string(doc.Paths), "credit_limit") {
		t.Errorf("a schema is described in place: %s", doc.Paths)
	}
	first := extracted(t)
	for range 20 {
		if again := extracted(t); !bytes.Equal(first, again) {
			t.Fatalf("the names differ from run to run:\n%s\n%s", first, again)
		}
	}
}

// Errors of a range share a response that lists their statuses, and most operations the security
// of the document.
func TestExtractSharesErrorsAndSecurity(t *testing.T) {
	t.Parallel()
	var doc struct {
		Security   []map[string]any
		Paths      map[string]map[string]map[string]any
		Components struct {
			Responses map[string]map[string]any
		}
	}
	if err := json.Unmarshal(extracted(t), &doc); err != nil {
		t.Fatal(err)
	}
	read, listed := doc.Paths["/things/{id}"]["get"], doc.Paths["/things"]["get"]
	if len(doc.Security) != 1 || read["security"] != nil || listed["security"] == nil {
		t.Errorf("the document has the security %v, operations %v and %v", doc.Security, read["security"], listed["security"])
	}
	responses := read["responses"].(map[string]any)
	if statuses := slices.Sorted(maps.Keys(responses)); !slices.Equal(statuses, []string{"200", "409", "4XX", "503"}) {
		t.Errorf("responses have the statuses %v", statuses)
	}
	of := doc.Components.Responses[strings.TrimPrefix(responses["4XX"].(map[string]any)["$ref"].(string), "#/components/responses/")]
	if !reflect.DeepEqual(of[statusList], []any{"400", "404"}) || of["description"] != "400: Refused, with the name of the field and of what is allowed there. 404: Not found." {
		t.Errorf("the statuses of a range are not listed: %v", of)
	}
}

func TestResolveUndoesExtract(t *testing.T) {
	t.Parallel()
	paths := func(raw []byte) any {
		resolved, err := Resolve(raw)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(resolved, &doc); err != nil {
			t.Fatal(err)
		}
		return doc["paths"]
	}
	if before, after := paths([]byte(sample)), paths(extracted(t)); !reflect.DeepEqual(before, after) {
		t.Errorf("%v\n%v", before, after)
	}
	for _, bad := range []string{`{"paths":{"a":{"$ref":"#/components/schemas/X"}}}`, `{"paths":{"a":{"$ref":"#/components/schemas/X"}},"components":{"schemas":{"X":{"items":{"$ref":"#/components/schemas/X"}}}}}`, `[]`} {
		if _, err := Resolve([]byte(bad)); err == nil {
			t.Errorf("%s is resolved", bad)
		}
	}
}

const forGenerators = `{"openapi":"3.1.0","components":{"schemas":{"ThingKind":{"type":"object","properties":{"a":{"type":"string"}}},"Tags":{"type":"object"}},
 "parameters":{"a-parameter-that-is-described-once-for-all-of-the-operations":{"name":"once","in":"query","schema":{"type":"string"}},"tags":{"name":"tags","in":"query","content":{"application/json":{"schema":{"type":"object"}}}}}},
"paths":{"/things/{server}":{"get":{"operationId":"getThing","parameters":[` + once + `,{"$ref":"#/components/parameters/tags"},{"name":"server","in":"path","required":true,"schema":{"type":"string"}}],
 "responses":{"200":{"description":"Done.","content":{"application/json":{"schema":{"type":"object","properties":{
  "kind":{"type":"string","enum":["a","b"]},"value":{"type":["string","integer","null"],"maxLength":5,"minimum":1,"description":"A value."},"custom_host":{"type":"string"},"customHost":{"type":"string"},
  "other":{"$ref":"#/components/schemas/ThingKind"},"tags":{"$ref":"#/components/schemas/Tags"}}}}}}}}},
"/others":{"get":{"operationId":"listOthers","parameters":[` + once + `],"responses":{"200":{"description":"Done."}}}}}}`

const once = `{"$ref":"#/components/parameters/a-parameter-that-is-described-once-for-all-of-the-operations"}`

// Names of types and fields that generators of clients derive are distinct.
func TestExtractSuitsGenerators(t *testing.T) {
	t.Parallel()
	var doc map[string]any
	if err := json.Unmarshal([]byte(forGenerators), &doc); err != nil {
		t.Fatal(err)
	}
	Extract(doc)
	at := func(path ...string) any {
		var v any = doc
		for _, name := range path {
			v = v.(map[string]any)[name]
		}
		return v
	}
	if names := slices.Sorted(maps.Keys(at("components", "parameters").(map[string]any))); !slices.Equal(names, []string{"a-parameter-that-is-described-once-for-all-of-the-operations", "tagsParameter"}) {
		t.Errorf("parameters are named %q", names)
	}
	// The property kind of Thing has the type ThingKind in clients.
	if at("components", "schemas", "ThingKind") != nil || at("components", "schemas", "ThingKindValue") == nil || at("components", "schemas", "Thing", "properties", "other", "$ref") != "#/components/schemas/ThingKindValue" {
		t.Errorf("schemas: %v", at("components", "schemas"))
	}
	value := at("components", "schemas", "Thing", "properties", "value").(map[string]any)
	want := map[string]any{"description": "A value.", "anyOf": []any{map[string]any{"type": "string", "maxLength": 5.0}, map[string]any{"type": "integer", "minimum": 1.0}, map[string]any{"type": "null"}}}
	if !reflect.DeepEqual(value, want) {
		t.Errorf("several types are %v", value)
	}
	if at("components", "schemas", "Thing", "properties", "customHost", goName) != "CustomHostAlias" || at("components", "schemas", "Thing", "properties", "custom_host", goName) != nil {
		t.Errorf("spellings of a name: %v", at("components", "schemas", "Thing"))
	}
	parameters := at("paths", "/things/{server}", "get", "parameters").([]any)
	if !reflect.DeepEqual(parameters[1], map[string]any{"$ref": "#/components/parameters/tagsParameter"}) || parameters[2].(map[string]any)[goName] != "ServerParameter" {
		t.Errorf("parameters: %v", parameters)
	}
}
