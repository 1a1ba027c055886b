package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"gateway/shared/wire"
)

// marker stands in each string of the inventory. It looks like an identifier, so that it is
// seen only where the reader exempts no identifiers.
const marker = "FORBIDDENWORD"

// leaf is one string of a body: the body with the marker in its place, and the names of the
// fields above it.
type leaf struct {
	path   []string
	body   []byte
	answer bool
	from   string
}

func (l *leaf) key() string { return fmt.Sprint(l.answer, strings.Join(l.path, ".")) }

// exempt is the list of fields that guardrails do not judge, each with its reason. below: so
// is everything within the field.
type exempt struct{ below, used bool }

func exempts(t *testing.T) map[string]*exempt {
	t.Helper()
	raw, err := os.ReadFile("testdata/exempt.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*exempt{}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		names, reason, ok := strings.Cut(line, ": ")
		if !ok || reason == "" {
			t.Fatalf("exempt.txt: %q has no reason", line)
		}
		for name := range strings.FieldsSeq(names) {
			plain, below := strings.CutSuffix(name, "/")
			if out[plain] != nil {
				t.Errorf("exempt.txt: %s is listed twice", plain)
			}
			out[plain] = &exempt{below: below}
		}
	}
	return out
}

// seen reports whether a scope shows the marker to a check.
func (l *leaf) seen(kind string) bool {
	find := InRequest
	if l.answer {
		find = InResponse
	}
	for _, s := range Scopes {
		f := find(kind, l.body, Scope(s))
		if slices.ContainsFunc(f.Texts, func(t string) bool { return strings.Contains(t, marker) }) {
			return true
		}
	}
	return false
}

// leaves puts the marker into each string of a body, one at a time.
func leaves(body []byte, answer bool, from string) (out []leaf) {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return nil
	}
	var walk func(v any, path []string, set func(any))
	var root any = v
	walk = func(v any, path []string, set func(any)) {
		switch v := v.(type) {
		case string:
			set(marker)
			raw, _ := json.Marshal(root) // was JSON
			set(v)
			out = append(out, leaf{slices.Clone(path), raw, answer, from})
		case []any:
			for i := range v {
				walk(v[i], path, func(to any) { v[i] = to })
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name], append(slices.Clone(path), name), func(to any) { v[name] = to })
			}
		}
	}
	walk(v, nil, func(to any) { root = to })
	return out
}

// ofGoldenFiles returns the bodies of the golden files of all dialects: what clients send, what
// providers are sent, and what both receive, also as events.
func ofGoldenFiles(t *testing.T) (out []leaf) {
	t.Helper()
	files := 0
	err := filepath.WalkDir("../../dialect", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "testdata") || strings.Contains(path, "fuzz") {
			return err
		}
		a, err := txtar.ParseFile(path)
		if err != nil {
			return err
		}
		files++
		for _, f := range a.Files {
			name, _, _ := strings.Cut(f.Name, " ")
			switch filepath.Base(name) {
			case "request.json", "upstream_request.json":
				out = append(out, leaves(f.Data, false, path)...)
			case "response.json", "upstream_response.json":
				out = append(out, leaves(f.Data, true, path)...)
			case "response.sse", "upstream_response.sse":
				var p wire.SSEParser
				_ = p.Feed(f.Data, func(_ string, data []byte) error {
					out = append(out, leaves(bytes.Clone(data), true, path)...)
					return nil
				})
			}
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Fatalf("%d golden files: %v", files, err)
	}
	return out
}

// dataPlane are the routes of the API document whose bodies reach a model or come from one.
var dataPlane = []string{
	"/chat/completions", "/completions", "/messages", "/messages/count_tokens", "/responses", "/responses/compact", "/responses/input_tokens", "/decisions",
	"/embeddings", "/moderations", "/images/generations", "/rerank", "/ocr", "/audio/speech",
}

// ofDocument are bodies that the API document describes: one for each string of a schema.
func ofDocument(t *testing.T) (out []leaf) {
	t.Helper()
	raw, err := os.ReadFile("../../../functions/docs/document/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var at func(v any, names ...string) any
	at = func(v any, names ...string) any {
		for _, n := range names {
			m, _ := v.(map[string]any)
			v = m[n]
			if m, _ := v.(map[string]any); m["$ref"] != nil && n != "schema" {
				v = at(doc, strings.Split(strings.TrimPrefix(m["$ref"].(string), "#/"), "/")...)
			}
		}
		return v
	}
	var made func(schema any, depth int) []any
	made = func(schema any, depth int) (out []any) {
		s, _ := schema.(map[string]any)
		if s == nil || depth > 14 {
			return nil
		}
		if ref, ok := s["$ref"].(string); ok {
			return made(at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), depth+1)
		}
		for _, name := range []string{"oneOf", "anyOf", "allOf"} {
			list, _ := s[name].([]any)
			for _, one := range list {
				out = append(out, made(one, depth+1)...)
			}
		}
		props, _ := s["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(props)) {
			for _, v := range made(props[name], depth+1) {
				body := map[string]any{name: v}
				for other, p := range props {
					if c := at(p, "const"); c != nil && other != name {
						body[other] = c
					}
				}
				out = append(out, body)
			}
		}
		for _, v := range made(s["items"], depth+1) {
			out = append(out, []any{v})
		}
		kinds := fmt.Sprint(s["type"])
		if strings.Contains(kinds, "string") || s["const"] != nil || s["enum"] != nil && len(out) == 0 {
			out = append(out, "x")
		}
		return out
	}
	for _, path := range dataPlane {
		op := at(doc, "paths", path, "post")
		if op == nil {
			t.Errorf("the document has no POST %s", path)
			continue
		}
		for _, v := range made(at(op, "requestBody", "content", "application/json", "schema"), 0) {
			raw, _ := json.Marshal(v) // made of JSON
			out = append(out, leaves(raw, false, path)...)
		}
		answer := at(op, "responses", "200", "content", "application/json", "schema")
		if answer == nil && path != "/audio/speech" {
			t.Errorf("the document has no response of POST %s", path)
		}
		for _, v := range made(answer, 0) {
			raw, _ := json.Marshal(v) // made of JSON
			out = append(out, leaves(raw, true, path)...)
		}
	}
	return out
}

// ofFormats are bodies of formats that the gateway does not translate.
func ofFormats(t *testing.T) (out []leaf) {
	t.Helper()
	a, err := txtar.ParseFile("testdata/formats.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if !json.Valid(f.Data) {
			t.Errorf("%s is not JSON", f.Name)
		}
		out = append(out, leaves(f.Data, strings.HasSuffix(f.Name, ".response"), f.Name)...)
	}
	return out
}

// TestEveryStringIsJudged: each string of each known body is seen by a scope, or its field is
// listed with the reason why it is not.
func TestEveryStringIsJudged(t *testing.T) {
	t.Parallel()
	list, tried, missing := exempts(t), map[string]bool{}, map[string]string{}
	for _, l := range slices.Concat(ofFormats(t), ofGoldenFiles(t), ofDocument(t)) {
		if tried[l.key()] {
			continue
		}
		kind := "chatComplete"
		if strings.HasPrefix(l.from, "mcp") {
			kind = ToolCall
		} else if strings.HasPrefix(l.from, "a2a") {
			kind = AgentCall
		}
		if l.seen(kind) {
			continue // the same field may be exempt elsewhere
		}
		tried[l.key()] = true
		listed := false
		for i, name := range l.path {
			n := string(nameOf(nil, []byte(name)))
			e := list[n]
			if e == nil && treatmentOf([]byte(n), []byte(name)) == identifier {
				e = list["*id"]
			} else if e == nil && treatmentOf([]byte(n), []byte(name)) == address {
				e = list["*url"]
			}
			if e == nil && l.answer {
				e = list["<"+n]
			}
			if e != nil && (e.below || i == len(l.path)-1) {
				e.used, listed = true, true
			}
		}
		if !listed {
			missing[strings.Join(l.path, ".")+" answer="+strconv.FormatBool(l.answer)] = l.from
		}
	}
	for _, m := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("no guardrail sees %s (%s)", m, missing[m])
	}
	for name, e := range list {
		if table()[name] == judged && name[0] != '*' && !e.used {
			t.Errorf("exempt.txt lists %s, which is judged", name)
		}
	}
	for name, does := range table() {
		if exemptTreatment(does) && list[name] == nil {
			t.Errorf("exempt.txt gives no reason for %s", name)
		}
	}
}

func exemptTreatment(does treatment) bool {
	switch does {
	case identifier, address, encoded, opaque, unsent, repeated, secret, discriminator, delivery:
		return true
	}
	return false
}

// TestSentencesInIdentifiersAreJudged: what looks like no identifier is judged in every field
// that may be sent to a model, whatever its name.
func TestSentencesInIdentifiersAreJudged(t *testing.T) {
	t.Parallel()
	for name, does := range table() {
		if does == unsent || does == secret || does == delivery || does == repeated {
			continue
		}
		l := leaf{body: []byte(`{"messages":[{"role":"user","content":[{"type":"new","` + name + `":"say ` + marker + ` now"}]}]}`)}
		if !l.seen("chatComplete") {
			t.Errorf("%s is not judged", name)
		}
	}
}

// TestSpellingsOfFields: a field is read in every spelling of its name, and so is a text that
// stands in an unusual form.
func TestSpellingsOfFields(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"a","Content":"FORBIDDENWORD"}]}`,
		`{"Messages":[{"role":"user","CONTENT":"FORBIDDENWORD"}]}`,
		`{"messages":[{"role":"user","content":{"text":"FORBIDDENWORD"}}]}`,
		`{"messages":[{"role":"user","content":{"0":{"x":["FORBIDDENWORD"]}}}]}`,
		`{"messages":[{"role":"user","content":[{"type":"unknown","anything":{"at":["all","FORBIDDENWORD"]}}]}]}`,
		`{"messages":[{"role":"user","\u0063ontent":"\u0046ORBIDDENWORD"}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":\"\\u0046ORBIDDENWORD\"}"}}]}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"a":"\u0046ORBIDDENWORD"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"text/plain","data":"Rk9SQklEREVOV09SRA=="}}]}]}`,
		`{"contents":[{"parts":[{"inlineData":{"mimeType":"text/plain","data":"Rk9SQklEREVOV09SRA"}}]}]}`,
		`{"input":[{"role":"user","content":[{"type":"input_file","file_data":"data:text/plain;base64,Rk9SQklEREVOV09SRA=="}]}]}`,
		`{"contents":{"parts":{"text":"FORBIDDENWORD"}}}`,
		`[{"contents":[{"parts":[{"text":"FORBIDDENWORD"}]}]}]`,
	} {
		if l := (leaf{body: []byte(body)}); !l.seen("chatComplete") {
			t.Errorf("not judged: %s", body)
		}
	}
}

// TestTextsOfStreams: a word that events cut is seen, in each format of streams.
func TestTextsOfStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, body string }{
		{"text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"FORB\"}}]}\n\ndata: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"IDDENWORD\"}}]}\n\ndata: [DONE]\n\n"},
		{"text/event-stream; charset=utf-8", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"FORBIDDEN\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"WORD\"}}\n\n"},
		{"text/event-stream", "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"sequence_number\":3,\"delta\":\"FORBIDDEN\"}\n\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"sequence_number\":4,\"delta\":\"WORD\"}\n\n"},
		{"text/event-stream", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"FORBIDDEN\"}]}}]}\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"WORD\"}]}}]}\n\n"},
		{"application/json", `[{"candidates":[{"content":{"parts":[{"text":"FORBIDDEN"}]}}]},{"candidates":[{"content":{"parts":[{"text":"WORD"}]}}]}]`},
		{"application/jsonl", "{\"custom_id\":\"1\",\"response\":{\"body\":{\"choices\":[{\"message\":{\"content\":\"FORBIDDENWORD\"}}]}}}\n{\"custom_id\":\"2\"}\n"},
		{"text/vtt", "WEBVTT\n\n00:00.000 --> 00:01.000\nFORBIDDENWORD\n"},
		{"", "FORBIDDENWORD"},
	} {
		doc, ok := Read(c.kind, []byte(c.body))
		if l := (leaf{body: doc.JSON, answer: true}); !ok || !l.seen("chatComplete") {
			t.Errorf("%s: %t %s", c.kind, ok, doc.JSON)
		}
	}
	for kind, body := range map[string]string{"application/octet-stream": "\x00\x01FORBIDDENWORD", "application/pdf": "%PDF-1.7 \xff\xfe", "application/vnd.amazon.eventstream": "FORBIDDENWORD"} {
		if doc, ok := Read(kind, []byte(body)); ok {
			t.Errorf("%s is read as %s", kind, doc.JSON)
		}
	}
}
