package mockprovider

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// plainValue turns a value into what encoding/json gives.
func plainValue(v value) any {
	switch v.kind {
	case boolean:
		return v.yes
	case number:
		return json.Number(v.s)
	case text:
		return v.s
	case array:
		out := make([]any, len(v.arr))
		for i, m := range v.arr {
			out[i] = plainValue(m)
		}
		return out
	case object:
		out := make(map[string]any, len(v.obj))
		for _, m := range v.obj {
			out[m.name] = plainValue(m.v)
		}
		return out
	}
	return nil
}

func TestParseJSONRefuses(t *testing.T) {
	for _, s := range []string{"", " ", "{", "[1,]", `{"a":1,}`, `{"a" 1}`, `{a:1}`, "01", "1.", "-", "1e", ".5", "+1", "tru", `"\x"`, `"\u12"`, "\"\n\"", `"a`, "[1] 2", "\"\xff\"", `{"a":1,"a":2}`, strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		if _, err := parseJSON(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

// decodeNumbers reads what encoding/json gives, numbers as they are written: some
// that JSON allows do not fit into a float64.
func decodeNumbers(s string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// FuzzParseJSON holds the parser against encoding/json.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e+3,true,false,null,"x\"\\\/\b\f\n\r\té\ud83d\ude00"]}`, `"\ud800"`, `"\ud800\u0041"`, " [ ] ", `{"a":{}}`, `1e5`, `1e700`, "\"\u2028\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parseJSON(s)
		if err != nil {
			return
		}
		want, err := decodeNumbers(s)
		if err != nil {
			t.Fatalf("taken, but %v: %q", err, s)
		}
		if got := plainValue(v); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %#v, want %#v", s, got, want)
		}
		written := appendValue(nil, v)
		if again, err := decodeNumbers(string(written)); err != nil || !reflect.DeepEqual(again, want) {
			t.Fatalf("written as %q: %#v, %v", written, again, err)
		}
	})
}

// FuzzServe: whatever comes in, the response is JSON of the dialect and no panic.
func FuzzServe(f *testing.F) {
	f.Add(chat("hi", `,"n":2`), false)
	f.Add(claude("hi", `,"thinking":{"type":"adaptive"}`), true)
	f.Add(chat("mock: parallel", `,"tools":[`+weatherTool+`]`), false)
	f.Add(`{"model":"m?chunks=3","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, true)
	s := New(Options{})
	f.Fuzz(func(t *testing.T, body string, anthropic bool) {
		if strings.Contains(body, "mock") || strings.Contains(body, "?") || strings.Contains(body, `\`) {
			return // a fault may do anything
		}
		path := "/v1/chat/completions"
		if anthropic {
			path = "/v1/messages"
		}
		w := serve(s, path, body)
		if w.Code >= 500 || w.Code == 200 && strings.Contains(w.Header().Get("Content-Type"), "json") && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}

func TestSampleOfARecursiveSchemaEnds(t *testing.T) {
	for name, schema := range map[string]string{
		"optional": `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}}}}}`,
		"required": `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["l","r"],"properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}}}}}`,
		"lists":    `{"$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}},"type":"array","items":{"$ref":"#/$defs/n"}}`,
		"itself":   `{"$ref":"#"}`,
		"branches": `{"anyOf":[{"type":"array","minItems":3,"items":{"enum":["x"]}}]}`,
	} {
		v, err := parseJSON(schema)
		if err != nil {
			t.Fatal(err)
		}
		b := appendSample(nil, v, v, 1, 0)
		if !json.Valid(b) || len(b) > 4*maxSampleBytes {
			t.Errorf("%s: %d bytes, valid %v", name, len(b), json.Valid(b))
		}
	}
}
