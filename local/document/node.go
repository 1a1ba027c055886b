package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
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

// Position is a position in a file. Line and Column begin with 1.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Node is one value of a file. A nil *Node is an absent value: its kind is Null.
type Node struct {
	At     Position
	kind   Kind
	scalar string // of Bool, Number and Text
	items  []*Node
	fields []Field
}

// Field is one entry of a mapping.
type Field struct {
	Name  string
	At    Position
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
	At      Position
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
func Errorf(at Position, path, format string, args ...any) *Error {
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

// Folder reads files of one folder. No name, and no link in it, leads out of the folder.
type Folder struct {
	root *os.Root
	left int // bytes that may still be read
	show string
}

// Open returns the folder of a file, and the name of the file in it. max is how many bytes
// may be read from the folder in all. The caller closes the folder.
func Open(path string, max int) (*Folder, string, error) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	return &Folder{root: root, left: max, show: filepath.Dir(path)}, name, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Read parses a file of the folder. at is the place of the name, for errors.
func (f *Folder) Read(name string, at Position) (*Node, error) {
	refuse := func(message string) error {
		if at.File == "" {
			at.File = name
		}
		return Errorf(at, "", "%s: %s", clip(name), message)
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, refuse("is outside of the folder of the file that is imported")
	}
	file, err := f.root.Open(filepath.FromSlash(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse("does not exist")
	case err != nil:
		return nil, refuse("cannot be opened inside the folder of the file that is imported")
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, refuse("is not a regular file")
	}
	raw, err := io.ReadAll(io.LimitReader(file, int64(f.left)+1))
	if err != nil {
		return nil, refuse("cannot be read")
	}
	if len(raw) > f.left {
		return nil, refuse("the files have too many bytes in all")
	}
	f.left -= len(raw)
	return Parse(name, raw)
}

// Ordered is a mapping that is written in its own order.
type Ordered []Entry

// Entry is one entry of an Ordered.
type Entry struct {
	Name  string
	Value any
}

// Write returns v as YAML: nil, bool, json.Number, int, string, []any, map[string]any (in
// the order of its keys) and Ordered. Parse returns the same values.
func Write(v any) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(encode(v)); err != nil {
		return nil, err
	}
	err := e.Close()
	return out.Bytes(), err
}

func encode(v any) *yaml.Node {
	scalar := func(tag, text string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
	}
	switch v := v.(type) {
	case bool:
		return scalar("!!bool", strconv.FormatBool(v))
	case int:
		return scalar("!!int", strconv.Itoa(v))
	case json.Number:
		return numeric(string(v))
	case string:
		return text(v)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, encode(item))
		}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case map[string]any:
		var o Ordered
		for name := range v {
			o = append(o, Entry{name, v[name]})
		}
		slices.SortFunc(o, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		return encode(o)
	case Ordered:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, e := range v {
			n.Content = append(n.Content, text(e.Name), encode(e.Value))
		}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	}
	return scalar("!!null", "null")
}

func numeric(text string) *yaml.Node {
	tag := "!!int"
	if strings.ContainsAny(text, ".eE") {
		tag = "!!float"
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
	if n.ShortTag() != tag { // such as 1e3, which YAML takes for a text without a dot
		n.Tag = "!!float"
	}
	return n
}

// text writes a text so that nothing else can be read from it.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if plain := (&yaml.Node{Kind: yaml.ScalarNode, Value: s}); plain.ShortTag() != "!!str" || strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == '\ufeff'
	}) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if strings.Contains(s, "\n") && (strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") || strings.Contains(s, " \n") || strings.HasSuffix(s, " ")) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
