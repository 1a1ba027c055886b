package document

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Kind is the kind of a Node.
type Kind uint8

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Map
)

// String returns the kind with its article, as messages need it.
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a text", "a list", "a mapping"}[k]
}

// Place is a position in a file. Line and Column begin with 1.
type Place struct {
	File         string
	Line, Column int
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Node is one value of a file. A nil *Node is an absent value: its kind is Null.
type Node struct {
	At     Place
	kind   Kind
	scalar string // of Bool, Number and Text
	items  []*Node
	fields []Field
}

// Field is one entry of a mapping.
type Field struct {
	Name  string
	At    Place
	Value *Node
}

// Kind returns the kind of the node.
func (n *Node) Kind() Kind {
	if n == nil {
		return Null
	}
	return n.kind
}

// Items returns the items of a list; nil for any other kind.
func (n *Node) Items() []*Node {
	if n == nil {
		return nil
	}
	return n.items
}

// Fields returns the entries of a mapping in the order of the file; nil for any other kind.
func (n *Node) Fields() []Field {
	if n == nil {
		return nil
	}
	return n.fields
}

// Get returns the value of a field, or nil.
func (n *Node) Get(name string) *Node {
	for _, f := range n.Fields() {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// Scalar returns a boolean, number or text as text; "" for any other kind.
func (n *Node) Scalar() string {
	if n == nil {
		return ""
	}
	return n.scalar
}

// True reports whether the node is the boolean true.
func (n *Node) True() bool { return n.Kind() == Bool && n.scalar == "true" }

// Float returns the value of a number, or of a text that is one.
func (n *Node) Float() (float64, bool) {
	if n.Kind() != Number && n.Kind() != Text {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(n.scalar), 64)
	return f, err == nil && f-f == 0
}

// Value returns the node as nil, bool, json.Number, string, []any or map[string]any.
func (n *Node) Value() any {
	switch n.Kind() {
	case Bool:
		return n.scalar == "true"
	case Number:
		return json.Number(n.scalar)
	case Text:
		return n.scalar
	case List:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.Value()
		}
		return list
	case Map:
		m := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			m[f.Name] = f.Value.Value()
		}
		return m
	}
	return nil
}

// Error is a fault in a file.
type Error struct {
	At      Place
	Path    string // of the value, such as model_list[0].model_name; may be empty
	Message string
}

func (e *Error) Error() string {
	text := e.At.String() + ": "
	if e.Path != "" {
		text += e.Path + ": "
	}
	return text + e.Message
}

// Errorf returns an *Error at a place.
func Errorf(at Place, path, format string, args ...any) *Error {
	return &Error{at, path, fmt.Sprintf(format, args...)}
}

// Expect returns an error unless the node is absent, null, or of one of the kinds.
func (n *Node) Expect(path string, kinds ...Kind) error {
	if n.Kind() == Null {
		return nil
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if n.kind == k {
			return nil
		}
		names[i] = k.String()
	}
	return Errorf(n.At, path, "must be %s, not %s", strings.Join(names, " or "), n.kind)
}

// Join returns a mapping with the fields of two. Of fields with the same name, lists are
// joined; otherwise that of the first counts.
func Join(a, b *Node) *Node {
	out := &Node{At: a.At, kind: Map, fields: append([]Field(nil), a.fields...)}
	for _, f := range b.Fields() {
		i := 0
		for i < len(out.fields) && out.fields[i].Name != f.Name {
			i++
		}
		if i == len(out.fields) {
			out.fields = append(out.fields, f)
		} else if have := out.fields[i].Value; have.Kind() == List && f.Value.Kind() == List {
			out.fields[i].Value = &Node{At: have.At, kind: List, items: append(append([]*Node(nil), have.items...), f.Value.items...)}
		}
	}
	return out
}
