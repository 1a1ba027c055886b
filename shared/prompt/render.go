package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Bounds of what a template becomes.
const (
	MaxRendered = 4 << 20 // bytes
	maxDepth    = 10      // of partials in partials
	maxSteps    = 1_000_000
)

// Errors of rendering; all are mistakes of the caller.
var (
	ErrTooLong    = fmt.Errorf("the rendered text has more than %d bytes", MaxRendered)
	ErrTooDeep    = fmt.Errorf("partials are nested more than %d deep", maxDepth)
	ErrTooLarge   = errors.New("the template repeats too much")
	ErrNoPartial  = errors.New("a partial does not exist")
	errNoPartials = func(Reference) (*Template, error) { return nil, ErrNoPartial }
)

// Partials gives a saved partial.
type Partials func(Reference) (*Template, error)

// Render fills in the template. Variables are as encoding/json decodes them, with numbers
// as json.Number. jsonText writes values for a place inside of JSON: the texts of {{name}}
// are escaped, everything else is written as JSON.
func (t *Template) Render(variables any, partials Partials, jsonText bool) (string, error) {
	r := newRenderer(variables, partials)
	r.json = jsonText
	if err := r.nodes(t.nodes); err != nil {
		return "", err
	}
	return string(r.out), nil
}

func newRenderer(variables any, partials Partials) *renderer {
	if partials == nil {
		partials = errNoPartials
	}
	r := &renderer{partials: partials}
	r.context = append(r.memory[:0], variables)
	return r
}

type renderer struct {
	out      []byte
	context  []any // innermost last
	memory   [8]any
	partials Partials
	json     bool
	depth    int
	steps    int
}

func (r *renderer) write(s string) error {
	if len(r.out)+len(s) > MaxRendered {
		return ErrTooLong
	}
	r.out = append(r.out, s...)
	return nil
}

func (r *renderer) nodes(nodes []node) error {
	for i := range nodes {
		if r.steps++; r.steps > maxSteps {
			return ErrTooLarge
		}
		if err := r.node(&nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) node(n *node) error {
	switch n.kind {
	case literal:
		return r.write(n.text)
	case variable, verbatim:
		return r.value(r.look(n.path), n.kind == verbatim)
	case section:
		return r.section(n)
	case inverted:
		if v := r.look(n.path); falsy(v) {
			return r.nodes(n.inner)
		}
		return nil
	}
	return r.partial(n)
}

func (r *renderer) section(n *node) error {
	v := r.look(n.path)
	if falsy(v) {
		return nil
	}
	list, many := v.([]any)
	if !many {
		if _, yes := v.(bool); yes {
			return r.nodes(n.inner) // as in mustache.js: true selects the section but is no context
		}
		list = []any{v}
	}
	for _, item := range list {
		r.context = append(r.context, item)
		err := r.nodes(n.inner)
		r.context = r.context[:len(r.context)-1]
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) partial(n *node) error {
	var t *Template
	var err error
	if n.kind == saved {
		t, err = r.partials(n.ref)
	} else {
		text, ok := r.look(n.path).(string)
		if !ok {
			return r.value(r.look(n.path), false)
		}
		if t, err = parseVariable(text); err != nil {
			err = fault.Invalid("variables", "%s is itself a template, which is invalid: %s", fault.Clip(strings.Join(n.path, "."), 64), err)
		}
	}
	if err == nil && n.indent != "" {
		t, err = t.behind(n.indent)
	}
	if err != nil {
		return err
	}
	if r.depth++; r.depth > maxDepth {
		return ErrTooDeep
	}
	err = r.nodes(t.nodes)
	r.depth--
	return err
}

// behind returns the template with an indent before each line. The last result is cached,
// because a partial is mostly used in one place.
func (t *Template) behind(indent string) (*Template, error) {
	if last := t.last.Load(); last != nil && last.indent == indent {
		return last.template, nil
	}
	deeper, err := Parse(indented(t.source, indent))
	if err == nil {
		t.last.Store(&deeperTemplate{indent, deeper})
	}
	return deeper, err
}

// indented puts an indent before each line.
func indented(text, indent string) string {
	body, last := strings.CutSuffix(text, "\n")
	out := indent + strings.ReplaceAll(body, "\n", "\n"+indent)
	if last {
		out += "\n"
	}
	return out
}

// look finds a name: its first part in the innermost object that has it, the other parts
// below that.
func (r *renderer) look(path []string) any {
	if len(path) == 0 {
		return r.context[len(r.context)-1]
	}
	for i := len(r.context) - 1; i >= 0; i-- {
		object, ok := r.context[i].(map[string]any)
		if !ok {
			continue
		}
		v, ok := object[path[0]]
		if !ok {
			continue
		}
		for _, name := range path[1:] {
			object, ok = v.(map[string]any)
			if !ok {
				return nil
			}
			v = object[name]
		}
		return v
	}
	return nil
}

// falsy reports whether a value omits a section.
func falsy(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == ""
	case json.Number:
		n, err := x.Float64()
		return err == nil && n == 0
	case float64:
		return x == 0
	case []any:
		return len(x) == 0
	}
	return false
}

func (r *renderer) value(v any, verbatim bool) error {
	switch x := v.(type) {
	case nil:
		return nil
	case string:
		if r.json && !verbatim {
			quoted := wire.AppendJSONString(nil, x)
			return r.write(string(quoted[1 : len(quoted)-1]))
		}
		return r.write(x)
	case json.Number:
		return r.write(x.String())
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("prompt: a variable has no JSON: %w", err)
	}
	return r.write(string(raw))
}
