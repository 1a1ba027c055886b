package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"gateway/shared/fault"
)

func variables(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTemplatesAreMustache(t *testing.T) {
	t.Parallel()
	saved := map[string]string{"p": "[{{n}}]", "p@2": "two", "line": "a\n{{n}}\n", "again": "{{#l}}{{>again}}{{/l}}."}
	partials := func(ref Reference) (*Template, error) {
		text, ok := saved[ref.String()]
		if !ok {
			return nil, ErrNoPartial
		}
		return Parse(text)
	}
	for _, c := range []struct{ template, variables, want string }{
		{`Hi {{name}}`, `{"name":"A \"b\" <c>"}`, `Hi A "b" <c>`},
		{`x{{#on}} yes{{/on}}{{^on}} no{{/on}}`, `{"on":false}`, "x no"},
		{"{{#l}}- {{n}}\n{{/l}}", `{"l":[{"n":"a"},{"n":"b"}]}`, "- a\n- b\n"},
		{`{{#l}}{{.}},{{/l}}`, `{"l":["a","b"]}`, "a,b,"},
		{`a{{! c }}b`, `{}`, "ab"},
		{`{{ phone number }}`, `{"phone number":"1"}`, "1"},
		{`{{a.b.c}}|{{a.x.c}}|{{a}}`, `{"a":{"b":{"c":3}}}`, `3||{"b":{"c":3}}`},
		{`{{{a}}}{{&a}}{{missing}}`, `{"a":"<x>"}`, "<x><x>"},
		{`{{#z}}z{{/z}}{{#e}}e{{/e}}{{#n}}n{{/n}}{{#o}}o{{/o}}{{#s}}s{{/s}}`, `{"z":0,"e":"","n":null,"o":{},"s":"x"}`, "os"},
		{`{{#o}}{{k}}{{out}}{{/o}}`, `{"o":{"k":1},"out":2}`, "12"},
		{`{{#l}}{{#l}}{{.}}{{/l}}{{/l}}`, `{"l":[1]}`, "1"},
		{"a\n  {{#on}}\nb\n  {{/on}}\nc", `{"on":true}`, "a\nb\nc"},
		{"a\r\n{{! c }}\r\nb", `{}`, "a\r\nb"},
		{"a {{#on}}\nb{{/on}}", `{"on":true}`, "a \nb"},
		{"{{>p}}{{>p@2}}", `{"n":1}`, "[1]two"},
		{"x\n  {{>line}}\ny", `{"n":1}`, "x\n  a\n  1\ny"},
		{"{{>>own}} {{>>none}}", `{"own":"I am {{n}}","n":"N"}`, "I am N "},
		{"1.50 {{n}} {{b}}", `{"n":1.50,"b":true}`, "1.50 1.50 true"},
		{"{ {{x}} }}", `{"x":1}`, "{ 1 }}"},
		{"", `{}`, ""},
	} {
		tpl, err := Parse(c.template)
		if err != nil {
			t.Errorf("%q: %v", c.template, err)
			continue
		}
		if got, err := tpl.Render(variables(t, c.variables), partials, false); err != nil || got != c.want {
			t.Errorf("%q with %s: %q, %v; want %q", c.template, c.variables, got, err, c.want)
		}
	}
}

func TestBrokenTemplatesReportThePosition(t *testing.T) {
	t.Parallel()
	for template, at := range map[string][2]int{
		"{{": {1, 1}, "ab\nc {{x": {2, 3}, "{{{x}}": {1, 1}, "{{}}": {1, 1}, "{{ }}": {1, 1}, "{{#}}": {1, 1}, "a{{/b}}": {1, 2}, "{{#a}}{{/b}}": {1, 7},
		"{{#a}}\n{{^b}}\n{{/a}}": {3, 1}, "{{=<% %>=}}": {1, 1}, "{{>}}": {1, 1}, "{{>>}}": {1, 1}, "{{>x@production}}": {1, 1}, "{{>x@0}}": {1, 1}, "{{>@1}}": {1, 1},
		"{{a{b}}": {1, 1}, "{{a\nb}}": {1, 1}, "x{{" + strings.Repeat("n", 256) + "}}": {1, 2},
	} {
		_, err := Parse(template)
		var wrong *SyntaxError
		if !errors.As(err, &wrong) || wrong.Line != at[0] || wrong.Column != at[1] {
			t.Errorf("%.40q: %v, want %v", template, err, at)
		}
	}
	if _, err := Parse("{{#a}}"); err == nil {
		t.Error("an open section is taken")
	}
	if _, err := Parse(strings.Repeat("{{#a}}", 33) + strings.Repeat("{{/a}}", 33)); err == nil {
		t.Error("33 sections in each other are taken")
	}
	if _, err := Parse(strings.Repeat("{{a}}", maxNodes+1)); err == nil {
		t.Error("too many tags are taken")
	}
}

// What a small body asks for stays small.
func TestRenderingIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<16)
	list := `[` + strings.Repeat("1,", 99) + `1]`
	nested := strings.Repeat("{{#l}}", 10) + "{{t}}" + strings.Repeat("{{/l}}", 10)
	self := func(Reference) (*Template, error) { return Parse("{{>a}}") }
	for _, c := range []struct {
		template, variables string
		partials            Partials
		want                error
	}{
		{nested, `{"l":` + list + `,"t":"` + long + `"}`, nil, ErrTooLong},
		{nested, `{"l":` + list + `}`, nil, ErrTooLarge},
		{"{{>a}}", `{}`, self, ErrTooDeep},
		{"{{>>a}}", `{"a":"{{>>a}}{{>>a}}"}`, nil, ErrTooDeep},
		{"{{>a}}", `{}`, nil, ErrNoPartial},
	} {
		tpl, err := Parse(c.template)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tpl.Render(variables(t, c.variables), c.partials, false); !errors.Is(err, c.want) {
			t.Errorf("%.40q: %v, want %v", c.template, err, c.want)
		}
	}
}

// The caller chooses the text of variables, and has not the permissions of who saved the
// template: a saved partial in it would be read with those.
func TestTextOfVariablesIncludesNoSavedPartials(t *testing.T) {
	t.Parallel()
	hidden := func(r Reference) (*Template, error) {
		if r.Name == "own" {
			return Parse("{{>>frag}}")
		}
		return Parse("HIDDEN")
	}
	for _, template := range []string{"{{>>frag}}", "  {{>>frag}}\n", "{{#o}}{{>>frag}}{{/o}}", "{{>own}}", "{{>>outer}}"} {
		for _, text := range []string{"{{>p}}", "{{>p@1}}", "{{>p@latest}}", "{{> p }}", "a {{#n}}{{^x}}\n  {{>p}}\n{{/x}}{{/n}}", "{{>>inner}}"} {
			tpl, err := Parse(template)
			if err != nil {
				t.Fatal(err)
			}
			values := map[string]any{"frag": text, "n": "N", "o": true, "inner": "{{>p}}", "outer": "{{>>frag}}"}
			out, err := tpl.Render(values, hidden, false)
			if err == nil || fault.From(err).Status() != 400 || fault.From(err).Field != "variables" || strings.Contains(string(out), "HIDDEN") {
				t.Errorf("%q with %q: %q, %v", template, text, out, err)
			}
		}
	}
}

func TestPromptsRenderToMessagesAndTexts(t *testing.T) {
	t.Parallel()
	const raw = `[{"role":"user","content":[{"type":"text","text":"{{q}}"}{{#img}},{"type":"image_url","image_url":{"url":"{{u}}"}}{{/img}}]}]`
	for _, c := range []struct {
		prompt          Prompt
		variables, want string
	}{
		{Prompt{String: raw, Raw: 1}, `{"q":"hi","img":false}`, `[{"role":"user","content":[{"type":"text","text":"hi"}]}]`},
		{Prompt{String: raw, Raw: 1}, `{"q":"a \"b\"","img":true,"u":"http://x/y.png"}`, `[{"role":"user","content":[{"type":"text","text":"a \"b\""},{"type":"image_url","image_url":{"url":"http://x/y.png"}}]}]`},
		{Prompt{String: `[{"role":"system","content":"s"},{{{ex}}}]`, Raw: 1}, `{"ex":{"role":"user","content":"q"}}`, `[{"role":"system","content":"s"},{"content":"q","role":"user"}]`},
		{Prompt{String: `[{"role":"user","content":"Hi {{n}}\n","name":"{{m}}"}]`}, `{"n":"\"]}","m":"x"}`, `[{"role":"user","content":"Hi \"]}\n","name":"x"}]`},
		{Prompt{String: `[{"role":"user","content":"\u007b\u007bn}}"}]`}, `{"n":"x"}`, `[{"role":"user","content":"x"}]`},
		{Prompt{String: ` [ {"role":"user","content":"no tags \u00e9"} ] `}, `{}`, ` [ {"role":"user","content":"no tags \u00e9"} ] `},
		{Prompt{String: "Say {{x}}"}, `{"x":"[1]"}`, "Say [1]"},
		{Prompt{String: "[1]", Metadata: map[string]json.RawMessage{"template_type": []byte(`"completion"`)}}, `{}`, "[1]"},
	} {
		compiled, bad := c.prompt.Compile()
		if len(bad) > 0 {
			t.Errorf("%s: %v", c.prompt.String, bad)
			continue
		}
		if got, err := compiled.Render(variables(t, c.variables), nil); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.prompt.String, got, err, c.want)
		}
	}
	compiled, _ := (&Prompt{String: "[{{x}}", Raw: 1}).Compile()
	if _, err := compiled.Render(map[string]any{"x": "secret words"}, nil); !fault.Is(err, fault.InvalidRequest) || strings.Contains(err.Error(), "secret") {
		t.Errorf("a rendering that is not valid JSON: %v", err)
	}
}

func TestReferencesNameVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"a": 3, "a@latest": 5, "a@4": 4, "a@05": 5, " a @ 2 ": 2, "a@": 3, "a@x": 0, "a@-1": 0, "a@0": 0, "a@99999999999999999999": 0} {
		ref := ParseReference(text)
		if n, ok := ref.Number(3, 5); ok != (want > 0) || ok && n != want || ref.Name != "a" {
			t.Errorf("%q: %+v %d %v", text, ref, n, ok)
		}
	}
}

func FuzzPrompt(f *testing.F) {
	for _, s := range []string{`[{"role":"user","content":"{{a}}{{#b}}{{/b}}"}]`, "{{>x}}", "{{{", `[{"a":"\u007b{"}]`, "a\n {{#b}}\n{{/b}}"} {
		f.Add(s, 0, `{"a":[1,{"b":2}],"b":true}`)
	}
	f.Fuzz(func(t *testing.T, text string, raw int, vars string) {
		p := Prompt{String: text, Raw: raw & 1}
		c, bad := p.Compile()
		if len(bad) > 0 {
			return
		}
		var v map[string]any
		if json.Unmarshal([]byte(vars), &v) != nil {
			return
		}
		out, err := c.Render(v, nil)
		if err != nil {
			return
		}
		if c.Type == Chat {
			var list []json.RawMessage
			if json.Unmarshal([]byte(out), &list) != nil {
				t.Errorf("%q renders to %q, which is no array", text, out)
			}
		}
	})
}
