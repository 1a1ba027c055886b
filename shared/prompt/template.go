package prompt

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Template is a parsed text. It is never changed, so requests share it.
type Template struct {
	source string
	nodes  []node
	last   atomic.Pointer[deeperTemplate] // see behind
}

// deeperTemplate is a template as it is included after an indent.
type deeperTemplate struct {
	indent   string
	template *Template
}

// kind is the kind of a node of a template.
type kind uint8

const (
	literal  kind = iota
	variable      // {{name}}
	verbatim      // {{{name}}}, {{&name}}
	section       // {{#name}}
	inverted      // {{^name}}
	saved         // {{>slug@version}}
	brought       // {{>>name}}
)

type node struct {
	kind   kind
	text   string    // of a literal; of a partial its name
	ref    Reference // of a saved partial
	path   []string  // of a name a.b; empty: the current item
	inner  []node    // of a section
	indent string    // before a partial that is alone on its line
}

// Bounds of templates.
const (
	maxSections = 32     // nesting of sections
	maxNodes    = 20_000 // of one template
	maxNameText = 255
)

// SyntaxError is a mistake in a template, and its place. Of the text it contains only the
// name of a tag.
type SyntaxError struct {
	Line, Column int // from 1; the column counts bytes
	Problem      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// Parse reads a template.
func Parse(text string) (*Template, error) { return parse(parser{text: text}) }

// parseVariable reads a template that the value of a variable is: it may include other
// variables, but no saved partials, which the caller may have no right to read.
func parseVariable(text string) (*Template, error) {
	return parse(parser{text: text, variable: true})
}

func parse(p parser) (*Template, error) {
	nodes, err := p.nodesUntil("", 0)
	if err != nil {
		return nil, err
	}
	return &Template{source: p.text, nodes: nodes}, nil
}

// Static reports whether the template has no tags.
func (t *Template) Static() bool {
	return len(t.nodes) == 0 || len(t.nodes) == 1 && t.nodes[0].kind == literal
}

// Partials are the saved partials that the template names, each once, in order.
func (t *Template) Partials() []Reference {
	var out []Reference
	seen := map[Reference]bool{}
	eachNode(t.nodes, func(n *node) {
		if n.kind == saved {
			if !seen[n.ref] {
				seen[n.ref] = true
				out = append(out, n.ref)
			}
		}
	})
	return out
}

func eachNode(nodes []node, visit func(*node)) {
	for i := range nodes {
		visit(&nodes[i])
		eachNode(nodes[i].inner, visit)
	}
}

type parser struct {
	text  string
	at    int
	nodes int

	variable bool // the text is the value of a variable
}

func (p *parser) fail(at int, format string, args ...any) error {
	before := p.text[:at]
	line := strings.Count(before, "\n") + 1
	return &SyntaxError{line, at - strings.LastIndexByte(before, '\n'), fmt.Sprintf(format, args...)}
}

// tag is one tag of the text.
type tag struct {
	sigil      byte // of # ^ / ! > & { =; 0: none
	private    bool // >>
	name       string
	start, end int
}

// next finds the next tag; ok is false if there is none.
func (p *parser) next() (t tag, ok bool, err error) {
	open := strings.Index(p.text[p.at:], "{{")
	if open < 0 {
		return tag{}, false, nil
	}
	t.start = p.at + open
	body, closing := p.text[t.start+2:], "}}"
	if body != "" && strings.IndexByte("#^/!>&{=", body[0]) >= 0 {
		t.sigil, body = body[0], body[1:]
	}
	switch t.sigil {
	case '{':
		closing = "}}}"
	case '>':
		if rest, private := strings.CutPrefix(body, ">"); private {
			t.private, body = true, rest
		}
	}
	end := strings.Index(body, closing)
	if end < 0 {
		return t, false, p.fail(t.start, "this tag is not closed with %s", closing)
	}
	t.name = strings.TrimSpace(body[:end])
	t.end = len(p.text) - len(body) + end + len(closing)
	switch {
	case t.sigil == '=':
		return t, false, p.fail(t.start, "other delimiters than {{ and }} are not supported")
	case t.sigil == '!':
	case t.name == "":
		return t, false, p.fail(t.start, "this tag has no name")
	case len(t.name) > maxNameText:
		return t, false, p.fail(t.start, "the name of this tag has more than %d bytes", maxNameText)
	case strings.ContainsAny(t.name, "{}\n\r"):
		return t, false, p.fail(t.start, "the name of this tag has braces or line breaks")
	}
	return t, true, nil
}

// nodesUntil reads up to the end of a section, or of the text for "".
func (p *parser) nodesUntil(open string, depth int) ([]node, error) {
	var out []node
	opened := p.at
	for {
		t, ok, err := p.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			if open != "" {
				return nil, p.fail(max(opened-1, 0), "the section %q is not closed", open)
			}
			return p.addText(out, p.text[p.at:]), nil
		}
		before, after, indent := t.start, t.end, ""
		if t.standing() {
			before, after, indent = p.line(t)
		}
		out = p.addText(out, p.text[p.at:before])
		p.at = after
		if t.sigil == '/' {
			if t.name != open {
				return nil, p.fail(t.start, "{{/%s}} closes %s", t.name, orNothing(open))
			}
			return out, nil
		}
		if out, err = p.add(out, t, indent, depth); err != nil {
			return nil, err
		}
		if p.nodes++; p.nodes > maxNodes {
			return nil, p.fail(t.start, "a template may have %d tags", maxNodes)
		}
	}
}

func orNothing(section string) string {
	if section == "" {
		return "no section"
	}
	return fmt.Sprintf("the section %q", section)
}

func (p *parser) addText(out []node, text string) []node {
	if text == "" {
		return out
	}
	return append(out, node{kind: literal, text: text})
}

// add reads the node that a tag begins.
func (p *parser) add(out []node, t tag, indent string, depth int) ([]node, error) {
	switch t.sigil {
	case '!':
		return out, nil
	case '#', '^':
		if depth == maxSections {
			return nil, p.fail(t.start, "sections may be nested at most %d deep", maxSections)
		}
		inner, err := p.nodesUntil(t.name, depth+1)
		if err != nil {
			return nil, err
		}
		n := node{kind: section, path: names(t.name), inner: inner}
		if t.sigil == '^' {
			n.kind = inverted
		}
		return append(out, n), nil
	case '>':
		if p.variable && !t.private {
			return nil, p.fail(t.start, "the text of a variable cannot include saved partials, only variables ({{name}} or {{>>name}})")
		}
		n := node{kind: saved, text: t.name, ref: ParseReference(t.name), indent: indent}
		if t.private {
			n.kind, n.path = brought, names(t.name)
		} else if err := CheckReference(t.name); err != nil {
			return nil, p.fail(t.start, "%s", err.Error())
		}
		return append(out, n), nil
	case '{', '&':
		return append(out, node{kind: verbatim, path: names(t.name)}), nil
	}
	return append(out, node{kind: variable, path: names(t.name)}), nil
}

// names are the parts of a.b; none for the current item.
func names(name string) []string {
	if name == "." {
		return nil
	}
	parts := strings.Split(name, ".")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// standing reports whether a tag of this kind removes its line if nothing else is on it.
func (t *tag) standing() bool { return strings.IndexByte("#^/!>", t.sigil) >= 0 && t.sigil != 0 }

// line returns the part of the text that a tag removes: its line if the tag is alone on it,
// otherwise the tag.
func (p *parser) line(t tag) (from, to int, indent string) {
	from = strings.LastIndexByte(p.text[:t.start], '\n') + 1
	rest := p.text[t.end:]
	end := strings.IndexByte(rest, '\n')
	if end < 0 {
		end, to = len(rest), len(p.text)
	} else {
		to = t.end + end + 1
	}
	if from < p.at || strings.TrimSpace(p.text[from:t.start]) != "" || strings.TrimSpace(rest[:end]) != "" {
		return t.start, t.end, ""
	}
	return from, to, p.text[from:t.start]
}
