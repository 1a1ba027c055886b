package prompt

import (
	"strings"
	"testing"
)

// rule is one rule of the Mustache specification (version 1.4.2), by the name that it
// has there, with an example of our own.
type rule struct {
	of, name        string
	template        string
	variables, want string
	partials        map[string]string
	// differs says why this language does otherwise; want is then what it does.
	differs string
}

const noHTML = "prompts are no HTML: nothing is escaped for it"

// rules are those of the parts that every implementation has: comments,
// interpolation, sections, inverted sections, partials and delimiters.
var rules = []rule{
	{of: "comments", name: "Inline", template: "12{{! gone }}34", want: "1234"},
	{of: "comments", name: "Multiline", template: "12{{!\n  gone\n  as well\n}}34\n", want: "1234\n"},
	{of: "comments", name: "Standalone", template: "First\n{{! gone }}\nLast\n", want: "First\nLast\n"},
	{of: "comments", name: "Indented Standalone", template: "First\n  {{! gone }}\nLast\n", want: "First\nLast\n"},
	{of: "comments", name: "Standalone Line Endings", template: "a\r\n{{! gone }}\r\nb", want: "a\r\nb"},
	{of: "comments", name: "Standalone Without Previous Line", template: "  {{! gone }}\n!", want: "!"},
	{of: "comments", name: "Standalone Without Newline", template: "!\n  {{! gone }}", want: "!\n"},
	{of: "comments", name: "Multiline Standalone", template: "First\n{{!\ngone\n}}\nLast\n", want: "First\nLast\n"},
	{of: "comments", name: "Indented Multiline Standalone", template: "First\n  {{!\n    gone\n  }}\nLast\n", want: "First\nLast\n"},
	{of: "comments", name: "Indented Inline", template: "  12 {{! 34 }}\n", want: "  12 \n"},
	{of: "comments", name: "Surrounding Whitespace", template: "12 {{! gone }} 34", want: "12  34"},
	{of: "comments", name: "Variable Name Collision", template: "<{{! name }}>", variables: `{"! name":1,"!name":2,"name":3}`, want: "<>"},

	{of: "interpolation", name: "No Interpolation", template: "Hello from { a plain } text\n", want: "Hello from { a plain } text\n"},
	{of: "interpolation", name: "Basic Interpolation", template: "Hi, {{who}}!\n", variables: `{"who":"you"}`, want: "Hi, you!\n"},
	{of: "interpolation", name: "No Re-interpolation", template: "{{a}}: {{b}}", variables: `{"a":"{{b}}","b":"1"}`, want: "{{b}}: 1"},
	{of: "interpolation", name: "HTML Escaping", template: "{{x}}", variables: `{"x":"& \" < >"}`, want: `& " < >`, differs: noHTML},
	{of: "interpolation", name: "Triple Mustache", template: "{{{x}}}", variables: `{"x":"& \" < >"}`, want: `& " < >`},
	{of: "interpolation", name: "Ampersand", template: "{{&x}}", variables: `{"x":"& \" < >"}`, want: `& " < >`},
	{of: "interpolation", name: "Basic Integer Interpolation", template: "{{n}} miles", variables: `{"n":85}`, want: "85 miles"},
	{of: "interpolation", name: "Triple Mustache Integer Interpolation", template: "{{{n}}} miles", variables: `{"n":85}`, want: "85 miles"},
	{of: "interpolation", name: "Ampersand Integer Interpolation", template: "{{&n}} miles", variables: `{"n":85}`, want: "85 miles"},
	{of: "interpolation", name: "Basic Decimal Interpolation", template: "{{n}} kg", variables: `{"n":1.21}`, want: "1.21 kg"},
	{of: "interpolation", name: "Triple Mustache Decimal Interpolation", template: "{{{n}}} kg", variables: `{"n":1.21}`, want: "1.21 kg"},
	{of: "interpolation", name: "Ampersand Decimal Interpolation", template: "{{&n}} kg", variables: `{"n":1.21}`, want: "1.21 kg"},
	{of: "interpolation", name: "Basic Null Interpolation", template: "({{x}})", variables: `{"x":null}`, want: "()"},
	{of: "interpolation", name: "Triple Mustache Null Interpolation", template: "({{{x}}})", variables: `{"x":null}`, want: "()"},
	{of: "interpolation", name: "Ampersand Null Interpolation", template: "({{&x}})", variables: `{"x":null}`, want: "()"},
	{of: "interpolation", name: "Basic Context Miss Interpolation", template: "({{x}})", want: "()"},
	{of: "interpolation", name: "Triple Mustache Context Miss Interpolation", template: "({{{x}}})", want: "()"},
	{of: "interpolation", name: "Ampersand Context Miss Interpolation", template: "({{&x}})", want: "()"},
	{of: "interpolation", name: "Dotted Names - Basic Interpolation", template: `"{{a.b}}" is "{{#a}}{{b}}{{/a}}"`, variables: `{"a":{"b":"x"}}`, want: `"x" is "x"`},
	{of: "interpolation", name: "Dotted Names - Triple Mustache Interpolation", template: `{{{a.b}}}{{#a}}{{{b}}}{{/a}}`, variables: `{"a":{"b":"x"}}`, want: "xx"},
	{of: "interpolation", name: "Dotted Names - Ampersand Interpolation", template: `{{&a.b}}{{#a}}{{&b}}{{/a}}`, variables: `{"a":{"b":"x"}}`, want: "xx"},
	{of: "interpolation", name: "Dotted Names - Arbitrary Depth", template: "{{a.b.c.d.e.f}}", variables: `{"a":{"b":{"c":{"d":{"e":{"f":"deep"}}}}}}`, want: "deep"},
	{of: "interpolation", name: "Dotted Names - Broken Chains", template: "({{a.b.c}})", variables: `{"a":{}}`, want: "()"},
	{of: "interpolation", name: "Dotted Names - Broken Chain Resolution", template: "({{a.b.c.f}})", variables: `{"a":{"b":{}},"c":{"f":"no"}}`, want: "()"},
	{of: "interpolation", name: "Dotted Names - Initial Resolution", template: "{{#a}}{{b.c.d}}{{/a}}", variables: `{"a":{"b":{"c":{"d":"inner"}}},"b":{"c":{"d":"outer"}}}`, want: "inner"},
	{of: "interpolation", name: "Dotted Names - Context Precedence", template: "({{#a}}{{b.c}}{{/a}})", variables: `{"a":{"b":{}},"b":{"c":"no"}}`, want: "()"},
	{of: "interpolation", name: "Dotted Names are never single keys", template: "({{a.b}})", variables: `{"a.b":"no"}`, want: "()"},
	{of: "interpolation", name: "Dotted Names - No Masking", template: "{{a.b}}", variables: `{"a.b":"no","a":{"b":"yes"}}`, want: "yes"},
	{of: "interpolation", name: "Implicit Iterators - Basic Interpolation", template: "{{#l}}Hi {{.}}! {{/l}}", variables: `{"l":["you"]}`, want: "Hi you! "},
	{of: "interpolation", name: "Implicit Iterators - HTML Escaping", template: "{{#l}}{{.}}{{/l}}", variables: `{"l":["& \" < >"]}`, want: `& " < >`, differs: noHTML},
	{of: "interpolation", name: "Implicit Iterators - Triple Mustache", template: "{{#l}}{{{.}}}{{/l}}", variables: `{"l":["& \" < >"]}`, want: `& " < >`},
	{of: "interpolation", name: "Implicit Iterators - Ampersand", template: "{{#l}}{{&.}}{{/l}}", variables: `{"l":["& \" < >"]}`, want: `& " < >`},
	{of: "interpolation", name: "Implicit Iterators - Basic Integer Interpolation", template: "{{#l}}{{.}} miles{{/l}}", variables: `{"l":[85]}`, want: "85 miles"},
	{of: "interpolation", name: "Interpolation - Surrounding Whitespace", template: "| {{x}} |", variables: `{"x":"-"}`, want: "| - |"},
	{of: "interpolation", name: "Triple Mustache - Surrounding Whitespace", template: "| {{{x}}} |", variables: `{"x":"-"}`, want: "| - |"},
	{of: "interpolation", name: "Ampersand - Surrounding Whitespace", template: "| {{&x}} |", variables: `{"x":"-"}`, want: "| - |"},
	{of: "interpolation", name: "Interpolation - Standalone", template: "  {{x}}\n", variables: `{"x":"-"}`, want: "  -\n"},
	{of: "interpolation", name: "Triple Mustache - Standalone", template: "  {{{x}}}\n", variables: `{"x":"-"}`, want: "  -\n"},
	{of: "interpolation", name: "Ampersand - Standalone", template: "  {{&x}}\n", variables: `{"x":"-"}`, want: "  -\n"},
	{of: "interpolation", name: "Interpolation With Padding", template: "|{{ x }}|", variables: `{"x":"-"}`, want: "|-|"},
	{of: "interpolation", name: "Triple Mustache With Padding", template: "|{{{ x }}}|", variables: `{"x":"-"}`, want: "|-|"},
	{of: "interpolation", name: "Ampersand With Padding", template: "|{{& x }}|", variables: `{"x":"-"}`, want: "|-|"},

	{of: "sections", name: "Truthy", template: "{{#on}}shown{{/on}}", variables: `{"on":true}`, want: "shown"},
	{of: "sections", name: "Falsey", template: "({{#on}}hidden{{/on}})", variables: `{"on":false}`, want: "()"},
	{of: "sections", name: "Null is falsey", template: "({{#on}}hidden{{/on}})", variables: `{"on":null}`, want: "()"},
	{of: "sections", name: "Context", template: "{{#who}}Hi {{name}}.{{/who}}", variables: `{"who":{"name":"Joe"}}`, want: "Hi Joe."},
	{of: "sections", name: "Parent contexts", template: "{{#in}}{{a}}, {{b}}, {{c.d}}{{/in}}", variables: `{"a":"f","b":"no","in":{"b":"b"},"c":{"d":"e"}}`, want: "f, b, e"},
	{of: "sections", name: "Variable test", template: "{{#x}}{{.}} is {{x}}{{/x}}", variables: `{"x":"bar"}`, want: "bar is bar"},
	{of: "sections", name: "List Contexts", template: "{{#up}}{{name}}{{#mid}}{{name}}{{#low}}{{up_name}}.{{name}} {{/low}}{{/mid}}{{/up}}", variables: `{"up":[{"name":"1","up_name":"A","mid":[{"name":"2","low":[{"name":"x"},{"name":"y"}]}]}]}`, want: "12A.x A.y "},
	{of: "sections", name: "Deeply Nested Contexts", template: "{{#a}}{{one}}{{#b}}{{one}}{{two}}{{#c}}{{one}}{{two}}{{three}}{{/c}}{{one}}{{two}}{{/b}}{{one}}{{/a}}", variables: `{"a":{"one":1},"b":{"two":2},"c":{"three":3}}`, want: "112123121"},
	{of: "sections", name: "List", template: "{{#l}}{{n}}{{/l}}", variables: `{"l":[{"n":1},{"n":2},{"n":3}]}`, want: "123"},
	{of: "sections", name: "Empty List", template: "({{#l}}no{{/l}})", variables: `{"l":[]}`, want: "()"},
	{of: "sections", name: "Doubled", template: "{{#on}}\n* first\n{{/on}}\n* {{two}}\n{{#on}}\n* third\n{{/on}}\n", variables: `{"on":true,"two":"second"}`, want: "* first\n* second\n* third\n"},
	{of: "sections", name: "Nested (Truthy)", template: "A{{#on}}B{{#on}}C{{/on}}D{{/on}}E", variables: `{"on":true}`, want: "ABCDE"},
	{of: "sections", name: "Nested (Falsey)", template: "A{{#on}}B{{#on}}C{{/on}}D{{/on}}E", variables: `{"on":false}`, want: "AE"},
	{of: "sections", name: "Context Misses", template: "[{{#none}}x{{/none}}]", want: "[]"},
	{of: "sections", name: "Implicit Iterator - String", template: "{{#l}}({{.}}){{/l}}", variables: `{"l":["a","b"]}`, want: "(a)(b)"},
	{of: "sections", name: "Implicit Iterator - Integer", template: "{{#l}}({{.}}){{/l}}", variables: `{"l":[1,2]}`, want: "(1)(2)"},
	{of: "sections", name: "Implicit Iterator - Decimal", template: "{{#l}}({{.}}){{/l}}", variables: `{"l":[1.10,2.2]}`, want: "(1.10)(2.2)", differs: "a number stands as the caller wrote it: 1.10 keeps its zero"},
	{of: "sections", name: "Implicit Iterator - Array", template: "{{#l}}({{#.}}{{.}}{{/.}}){{/l}}", variables: `{"l":[[1,2],["a"]]}`, want: "(12)(a)"},
	{of: "sections", name: "Implicit Iterator - Root-level", template: "{{#l}}({{n}}){{/l}}", variables: `{"l":[{"n":"a"},{"n":"b"}]}`, want: "(a)(b)", differs: "variables are an object, never a list: the list is one of its members"},
	{of: "sections", name: "Dotted Names - Truthy", template: "{{#a.b.c}}Here{{/a.b.c}}", variables: `{"a":{"b":{"c":true}}}`, want: "Here"},
	{of: "sections", name: "Dotted Names - Falsey", template: "({{#a.b.c}}Here{{/a.b.c}})", variables: `{"a":{"b":{"c":false}}}`, want: "()"},
	{of: "sections", name: "Dotted Names - Broken Chains", template: "({{#a.b.c}}Here{{/a.b.c}})", variables: `{"a":{}}`, want: "()"},
	{of: "sections", name: "Surrounding Whitespace", template: " | {{#on}}\t|\t{{/on}} | \n", variables: `{"on":true}`, want: " | \t|\t | \n"},
	{of: "sections", name: "Internal Whitespace", template: " | {{#on}} {{! gone }}\n {{/on}} | \n", variables: `{"on":true}`, want: " |  \n  | \n"},
	{of: "sections", name: "Indented Inline Sections", template: " {{#on}}YES{{/on}}\n {{#on}}GOOD{{/on}}\n", variables: `{"on":true}`, want: " YES\n GOOD\n"},
	{of: "sections", name: "Standalone Lines", template: "| This\n{{#on}}\n|\n{{/on}}\n| Line\n", variables: `{"on":true}`, want: "| This\n|\n| Line\n"},
	{of: "sections", name: "Indented Standalone Lines", template: "| This\n  {{#on}}\n|\n  {{/on}}\n| Line\n", variables: `{"on":true}`, want: "| This\n|\n| Line\n"},
	{of: "sections", name: "Standalone Line Endings", template: "|\r\n{{#on}}\r\n{{/on}}\r\n|", variables: `{"on":true}`, want: "|\r\n|"},
	{of: "sections", name: "Standalone Without Previous Line", template: "  {{#on}}\n#{{/on}}\n/", variables: `{"on":true}`, want: "#\n/"},
	{of: "sections", name: "Standalone Without Newline", template: "#{{#on}}\n/\n  {{/on}}", variables: `{"on":true}`, want: "#\n/\n"},
	{of: "sections", name: "Padding", template: "|{{# on }}={{/ on }}|", variables: `{"on":true}`, want: "|=|"},

	{of: "inverted", name: "Falsey", template: "{{^on}}shown{{/on}}", variables: `{"on":false}`, want: "shown"},
	{of: "inverted", name: "Truthy", template: "({{^on}}hidden{{/on}})", variables: `{"on":true}`, want: "()"},
	{of: "inverted", name: "Null is falsey", template: "{{^on}}shown{{/on}}", variables: `{"on":null}`, want: "shown"},
	{of: "inverted", name: "Context", template: "({{^who}}Hi {{name}}.{{/who}})", variables: `{"who":{"name":"Joe"}}`, want: "()"},
	{of: "inverted", name: "List", template: "({{^l}}{{n}}{{/l}})", variables: `{"l":[{"n":1},{"n":2}]}`, want: "()"},
	{of: "inverted", name: "Empty List", template: "{{^l}}Yay{{/l}}", variables: `{"l":[]}`, want: "Yay"},
	{of: "inverted", name: "Doubled", template: "{{^on}}\n* first\n{{/on}}\n* {{two}}\n{{^on}}\n* third\n{{/on}}\n", variables: `{"on":false,"two":"second"}`, want: "* first\n* second\n* third\n"},
	{of: "inverted", name: "Nested (Falsey)", template: "A{{^on}}B{{^on}}C{{/on}}D{{/on}}E", variables: `{"on":false}`, want: "ABCDE"},
	{of: "inverted", name: "Nested (Truthy)", template: "A{{^on}}B{{^on}}C{{/on}}D{{/on}}E", variables: `{"on":true}`, want: "AE"},
	{of: "inverted", name: "Context Misses", template: "[{{^none}}none{{/none}}]", want: "[none]"},
	{of: "inverted", name: "Dotted Names - Truthy", template: "({{^a.b.c}}No{{/a.b.c}})", variables: `{"a":{"b":{"c":true}}}`, want: "()"},
	{of: "inverted", name: "Dotted Names - Falsey", template: "{{^a.b.c}}No{{/a.b.c}}", variables: `{"a":{"b":{"c":false}}}`, want: "No"},
	{of: "inverted", name: "Dotted Names - Broken Chains", template: "{{^a.b.c}}No{{/a.b.c}}", variables: `{"a":{}}`, want: "No"},
	{of: "inverted", name: "Surrounding Whitespace", template: " | {{^on}}\t|\t{{/on}} | \n", variables: `{"on":false}`, want: " | \t|\t | \n"},
	{of: "inverted", name: "Internal Whitespace", template: " | {{^on}} {{! gone }}\n {{/on}} | \n", variables: `{"on":false}`, want: " |  \n  | \n"},
	{of: "inverted", name: "Indented Inline Sections", template: " {{^on}}NO{{/on}}\n {{^on}}WAY{{/on}}\n", variables: `{"on":false}`, want: " NO\n WAY\n"},
	{of: "inverted", name: "Standalone Lines", template: "| This\n{{^on}}\n|\n{{/on}}\n| Line\n", variables: `{"on":false}`, want: "| This\n|\n| Line\n"},
	{of: "inverted", name: "Standalone Indented Lines", template: "| This\n  {{^on}}\n|\n  {{/on}}\n| Line\n", variables: `{"on":false}`, want: "| This\n|\n| Line\n"},
	{of: "inverted", name: "Standalone Line Endings", template: "|\r\n{{^on}}\r\n{{/on}}\r\n|", variables: `{"on":false}`, want: "|\r\n|"},
	{of: "inverted", name: "Standalone Without Previous Line", template: "  {{^on}}\n^{{/on}}\n/", variables: `{"on":false}`, want: "^\n/"},
	{of: "inverted", name: "Standalone Without Newline", template: "^{{^on}}\n/\n  {{/on}}", variables: `{"on":false}`, want: "^\n/\n"},
	{of: "inverted", name: "Padding", template: "|{{^ on }}={{/ on }}|", variables: `{"on":false}`, want: "|=|"},

	{of: "partials", name: "Basic Behavior", template: `"{{>text}}"`, partials: map[string]string{"text": "from partial"}, want: `"from partial"`},
	{of: "partials", name: "Failed Lookup", template: `"{{>none}}"`, differs: "a partial that is not there is an error: a prompt that lost a part of itself is not sent"},
	{of: "partials", name: "Context", template: `"{{>p}}"`, variables: `{"x":"content"}`, partials: map[string]string{"p": "*{{x}}*"}, want: `"*content*"`},
	{of: "partials", name: "Recursion", template: "{{>node}}", variables: `{"content":"X","nodes":[{"content":"Y","nodes":[]}]}`, partials: map[string]string{"node": "{{content}}<{{#nodes}}{{>node}}{{/nodes}}>"}, want: "X<Y<>>", differs: "only the renderer allows it, ten deep: a saved partial that takes itself in is refused"},
	{of: "partials", name: "Nested", template: "{{>outer}}", variables: `{"a":"hello","b":"world"}`, partials: map[string]string{"outer": "*{{a}} {{>inner}}*", "inner": "{{b}}!"}, want: "*hello world!*"},
	{of: "partials", name: "Surrounding Whitespace", template: "| {{>p}} |", partials: map[string]string{"p": "\t|\t"}, want: "| \t|\t |"},
	{of: "partials", name: "Inline Indentation", template: "  {{x}}  {{> p}}\n", variables: `{"x":"|"}`, partials: map[string]string{"p": ">\n>"}, want: "  |  >\n>\n"},
	{of: "partials", name: "Standalone Line Endings", template: "|\r\n{{>p}}\r\n|", partials: map[string]string{"p": ">"}, want: "|\r\n>|"},
	{of: "partials", name: "Standalone Without Previous Line", template: "  {{>p}}\n>", partials: map[string]string{"p": ">\n>"}, want: "  >\n  >>"},
	{of: "partials", name: "Standalone Without Newline", template: ">\n  {{>p}}", partials: map[string]string{"p": ">\n>"}, want: ">\n  >\n  >"},
	{of: "partials", name: "Standalone Indentation", template: "\\\n {{>p}}\n/\n", variables: `{"x":"<\n->"}`, partials: map[string]string{"p": "|\n{{{x}}}\n|\n"}, want: "\\\n |\n <\n->\n |\n/\n"},
	{of: "partials", name: "Padding Whitespace", template: "|{{> p }}|", partials: map[string]string{"p": "[]"}, want: "|[]|"},

	{of: "delimiters", name: "Pair Behavior", template: "{{=<% %>=}}(<%x%>)", differs: "delimiters stay {{ and }}: a template means the same wherever it is taken in"},
}

func TestTheRulesOfMustache(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range rules {
		name := c.of + ": " + c.name
		if seen[name] {
			t.Errorf("%s is listed twice", name)
		}
		seen[name] = true
		if c.variables == "" {
			c.variables = "{}"
		}
		partials := func(ref Reference) (*Template, error) {
			text, ok := c.partials[ref.Name]
			if !ok {
				return nil, ErrNoPartial
			}
			return Parse(text)
		}
		tpl, err := Parse(c.template)
		got := ""
		if err == nil {
			got, err = tpl.Render(variables(t, c.variables), partials, false)
		}
		if refused := c.differs != "" && c.want == ""; refused != (err != nil) || got != c.want {
			t.Errorf("%s: %q with %s: %q, %v; want %q", name, c.template, c.variables, got, err, c.want)
		}
	}
}

// benchTemplate is a prompt of about 2 KB with a partial, a list and a choice.
func benchTemplate(tb testing.TB) (*Compiled, map[string]any, Partials) {
	tb.Helper()
	system := strings.Repeat("You answer questions of customers of {{company}} about {{topic}}. ", 16)
	text := `[{"role":"system","content":"` + system + `\n{{>rules}}\n{{#formal}}Be formal.{{/formal}}{{^formal}}Be kind.{{/formal}}"},` +
		`{"role":"user","content":"Known:\n{{#facts}}- {{name}}: {{value}}\n{{/facts}}\n` + strings.Repeat("Read what follows with care. ", 30) + `\n{{question}}"}]`
	compiled, bad := (&Prompt{String: text}).Compile()
	if len(bad) > 0 || len(text) < 2<<10 {
		tb.Fatal(bad, len(text))
	}
	part, err := Parse("Never tell {{secret}}.\nNever promise refunds.\n{{#sources}}See {{.}}.\n{{/sources}}")
	if err != nil {
		tb.Fatal(err)
	}
	vars := map[string]any{
		"company": "Example Ltd", "topic": "deliveries", "formal": true, "secret": "prices", "question": "Where is my parcel \"12\"?",
		"facts":   []any{map[string]any{"name": "order", "value": "12"}, map[string]any{"name": "city", "value": "Graz"}, map[string]any{"name": "days", "value": "3"}},
		"sources": []any{"the terms", "the handbook"},
	}
	return compiled, vars, func(Reference) (*Template, error) { return part, nil }
}

func BenchmarkRender2KB(b *testing.B) {
	compiled, vars, partials := benchTemplate(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compiled.Render(vars, partials); err != nil {
			b.Fatal(err)
		}
	}
}
