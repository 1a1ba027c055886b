package prompt

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/resource"
)

// Whatever stands in a template, in what it takes in and in the variables: a rendering
// ends within its bounds, and what goes wrong is reported as the caller's mistake.
func FuzzTemplate(f *testing.F) {
	f.Add("{{#l}}{{.}}{{>p}}{{/l}}", "a\n {{x}}", `{"l":[1,"b",[]],"x":{"y":null}}`)
	f.Add("  {{>>own}}\n", "{{>p}}", `{"own":"{{>>own}}"}`)
	f.Add("{{a.b}}{{^a.b}}{{{c}}}{{/a.b}}", "", `{"a":{"b":0}}`)
	f.Fuzz(func(t *testing.T, text, partial, vars string) {
		tpl, err := Parse(text)
		if err != nil {
			var wrong *SyntaxError
			if !errors.As(err, &wrong) || wrong.Line < 1 || wrong.Column < 1 || wrong.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		part, err := Parse(partial)
		if err != nil {
			return
		}
		var v map[string]any
		if json.Unmarshal([]byte(vars), &v) != nil {
			return
		}
		for _, inJSON := range []bool{false, true} {
			out, err := tpl.Render(v, func(Reference) (*Template, error) { return part, nil }, inJSON)
			var rejection *fault.Fault
			switch {
			case err == nil && len(out) > MaxRendered:
				t.Fatalf("%d bytes", len(out))
			case err == nil && tpl.Static() && text != out && !strings.Contains(text, "{{!"):
				t.Fatalf("%q renders to %q", text, out)
			case err == nil, errors.Is(err, ErrTooLong), errors.Is(err, ErrTooDeep), errors.Is(err, ErrTooLarge), errors.As(err, &rejection):
			default:
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}

// A caller's body makes the JSON of one object, in which nothing about the prompt is
// left, or is rejected.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"variables":{"a":1},"temperature":0.1}`, `{"stream":true,"tools":null,"hyperparameters":{}}`, `{"variables":[]}`, ``, `[]`, `{"messages":[]}`, "{\"a\":\"\xff\"}"} {
		f.Add(s)
	}
	saved, err := DecodePrompt(record(f, &Prompt{String: `[{"role":"user","content":"{{a}}"}]`, Model: "m", Parameters: map[string]json.RawMessage{"max_tokens": []byte("5"), "stream_options": []byte("{}")}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		q, err := ParseRequest([]byte(body))
		if err == nil {
			var out []byte
			if out, err = saved.Body(q, nil); err == nil {
				var members map[string]json.RawMessage
				if json.Unmarshal(out, &members) != nil {
					t.Fatalf("%q makes %q", body, out)
				}
				for _, name := range notSent {
					if _, there := members[name]; there {
						t.Fatalf("%q makes %q", body, out)
					}
				}
				return
			}
		}
		if fault.From(err).Status() >= 500 {
			t.Fatalf("%q: %v", body, err)
		}
	})
}

func record(tb testing.TB, p *Prompt) resource.Record {
	tb.Helper()
	body, err := json.Marshal(p)
	if err != nil {
		tb.Fatal(err)
	}
	return resource.Record{ID: "1", Slug: "pp-a-1", Body: body}
}
