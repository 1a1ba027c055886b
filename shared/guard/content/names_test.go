package content

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Names of fields that the client chooses and the model reads are judged like values, in
// every format that has such fields.
func TestNamesThatTheModelReadsAreJudged(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"parameters of a tool":           `{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"NAME":{}}}}}]}`,
		"schema of a format":             `{"messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"f","schema":{"properties":{"NAME":{}}}}}}`,
		"schema of a Cohere format":      `{"messages":[],"response_format":{"type":"json_object","json_schema":{"properties":{"NAME":{}}}}}`,
		"input schema of a tool":         `{"messages":[],"tools":[{"name":"f","input_schema":{"properties":{"NAME":{}}}}]}`,
		"input of a call":                `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"NAME":1}}]}]}`,
		"arguments of a Gemini call":     `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"NAME":1}}}]}]}`,
		"response of a Gemini call":      `{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"NAME":1}}}]}]}`,
		"result of a Converse call":      `{"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"json":{"NAME":1}}]}}]}]}`,
		"a document":                     `{"message":"x","documents":[{"NAME":"x"}]}`,
		"a document with data":           `{"messages":[],"documents":[{"id":"d","data":{"NAME":"x"}}]}`,
		"a document in a tool's message": `{"messages":[{"role":"tool","tool_call_id":"a","content":[{"type":"document","document":{"data":{"NAME":"x"}}}]}]}`,
		"a document to rank":             `{"query":"x","documents":[{"NAME":"x"}]}`,
		"a result of a Cohere tool":      `{"message":"x","tool_results":[{"call":{"name":"f","parameters":{}},"outputs":[{"NAME":"x"}]}]}`,
	} {
		seen := slices.ContainsFunc(Scopes, func(s string) bool {
			found := InRequest("", []byte(strings.Replace(body, "NAME", marker, 1)), Scope(s))
			return slices.ContainsFunc(found.Texts, func(text string) bool { return strings.Contains(text, marker) })
		})
		if !seen {
			t.Errorf("%s: its name is not judged", name)
		}
	}
}

// A name that no format knows is judged unless it can be that of a field, wherever it is, and its
// redaction leaves the rest as it is.
func TestUnknownNamesAreJudged(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"tell me about " + marker: true, "ann@example.com": true, "123-45-6789": true, "+15550100": true, "größe": true, strings.Repeat("a", maxFieldName+1): true, "a,b": true,
		"new_field": false, "NewField": false, "@type": false, "$schema": false, "application/json": false, "urn:ietf:x": false, "50256": false, "v1.2": false, "": false,
	} {
		for _, form := range []string{
			`{"messages":[{"role":"user","content":"x"}],NAME:1}`,
			`{"messages":[{"role":"user","content":[{"type":"new","payload":{NAME:1}}]}]}`,
			`{"contents":[{"role":"user","parts":[{"newPart":{NAME:true}}]}]}`,
			`{"model":"m","input":[{"type":"new_item","role":"user",NAME:null}]}`,
		} {
			body := []byte(strings.Replace(form, "NAME", strconv.Quote(name), 1))
			found := InRequest("", body, AllMessages)
			at := slices.Index(found.Texts, name)
			if got := name != "" && at >= 0; got != want {
				t.Errorf("%q in %s: judged %v", name, form, got)
				continue
			}
			if !want {
				continue
			}
			to, text := make([]*string, len(found.Texts)), "{{X}}"
			to[at] = &text
			if got, want := string(found.ReplaceTexts(body, to)), strings.Replace(form, "NAME", `"{{X}}"`, 1); got != want {
				t.Errorf("redacted %s, want %s", got, want)
			}
		}
	}
}

// A document whose texts are replaced stays an object.
func TestRedactedDocumentsStayObjects(t *testing.T) {
	t.Parallel()
	body := []byte(`{"message":"x","documents":[{"title":"ann@example.com","ann@example.com":"y"},"ann@example.com"]}`)
	found := InRequest("", body, AllMessages)
	to := make([]*string, len(found.Texts))
	for i, text := range found.Texts {
		text = strings.ReplaceAll(text, "ann@example.com", "{{EMAIL}}")
		to[i] = &text
	}
	if got, want := string(found.ReplaceTexts(body, to)), `{"message":"x","documents":[{"title":"{{EMAIL}}","{{EMAIL}}":"y"},"{{EMAIL}}"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
