package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of the input.
const (
	MaxBytes = 16 << 20 // of one file
	maxMarks = 300_000  // characters that can begin a value: bounds the memory of the parser
	maxNodes = 300_000  // values in all, aliases counted as often as they are used
	maxDepth = 64
)

// Parse reads one YAML or JSON document. name is the file name in the places of its values. An
// empty document is null.
func Parse(name string, raw []byte) (n *Node, err error) {
	if len(raw) > MaxBytes {
		return nil, Errorf(Position{File: name}, "", "has %d bytes; %d are allowed", len(raw), MaxBytes)
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	if at := tooMany(raw); at > 0 {
		return nil, Errorf(Position{File: name, Line: at, Column: 1}, "", "has too many values; about %d are allowed", maxMarks)
	}
	if first := bytes.TrimLeft(raw, " \t\r\n"); len(first) > 0 && first[0] == '{' && json.Valid(raw) {
		return parseJSON(name, raw)
	}
	defer func() {
		if r := recover(); r != nil { // a fault of the parser, not of ours
			n, err = nil, Errorf(Position{File: name}, "", "cannot be read as YAML")
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var root yaml.Node
	switch err := d.Decode(&root); {
	case errors.Is(err, io.EOF):
		return &Node{At: Position{name, 1, 1}}, nil
	case err != nil:
		return nil, syntax(name, err)
	}
	var second yaml.Node
	if err := d.Decode(&second); err == nil {
		return nil, Errorf(Position{name, second.Line, max(second.Column, 1)}, "", "a second document begins here; one is allowed")
	} else if !errors.Is(err, io.EOF) {
		return nil, syntax(name, err)
	}
	r := reader{file: name}
	return r.node(&root, 0)
}

// tooMany returns the line in which raw exceeds the number of values that are read.
func tooMany(raw []byte) int {
	marks, line := 0, 1
	for _, c := range raw {
		switch c {
		case '\n':
			line++
			marks++
		case ',', '[', '{', '?', '&', '*', '#', '!':
			marks++
		}
		if marks > maxMarks {
			return line
		}
	}
	return 0
}

var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?`)

// syntax gives an error of the parser the place in the file.
func syntax(name string, err error) error {
	text := err.Error()
	at := Position{File: name}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if line, err := strconv.Atoi(m[1]); err == nil {
			at.Line, at.Column = line, 1
		}
	}
	if at.Line == 0 {
		at.Line, at.Column = 1, 1
	}
	return Errorf(at, "", "is not valid YAML: %.200s", text)
}

// reader turns the nodes of the parser into ours.
type reader struct {
	file  string
	nodes int
}

func (r *reader) at(n *yaml.Node) Position { return Position{r.file, n.Line, n.Column} }

func (r *reader) node(n *yaml.Node, depth int) (*Node, error) {
	at := r.at(n)
	if r.nodes++; r.nodes > maxNodes {
		return nil, Errorf(at, "", "has too many values, with aliases expanded; %d are allowed", maxNodes)
	}
	if depth > maxDepth {
		return nil, Errorf(at, "", "is nested too deeply; %d levels are allowed", maxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return &Node{At: at}, nil
		}
		return r.node(n.Content[0], depth)
	case yaml.AliasNode:
		of, err := r.node(n.Alias, depth+1)
		if err != nil {
			return nil, err
		}
		copied := *of
		copied.At = at
		return &copied, nil
	case yaml.SequenceNode:
		out := &Node{At: at, kind: List, items: make([]*Node, 0, len(n.Content))}
		for _, c := range n.Content {
			item, err := r.node(c, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
		return out, nil
	case yaml.MappingNode:
		return r.mapping(n, depth)
	}
	return r.scalar(n)
}

func (r *reader) mapping(n *yaml.Node, depth int) (*Node, error) {
	out := &Node{At: r.at(n), kind: Map}
	seen := make(map[string]bool, len(n.Content)/2)
	var merged []*Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		value, err := r.node(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, Errorf(r.at(n.Content[i]), "", "a key must be a string")
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if seen[key.Value] {
			return nil, Errorf(r.at(n.Content[i]), "", "the key %q occurs twice", clip(key.Value))
		}
		seen[key.Value] = true
		out.fields = append(out.fields, Field{key.Value, r.at(n.Content[i]), value})
	}
	for _, m := range merged {
		sources := []*Node{m}
		if m.kind == List {
			sources = m.items
		}
		for _, s := range sources {
			if s.kind != Map {
				return nil, Errorf(m.At, "", "<< must name a mapping, or a list of them")
			}
			for _, f := range s.fields {
				if r.nodes++; r.nodes > maxNodes {
					return nil, Errorf(m.At, "", "has too many values, with aliases expanded; %d are allowed", maxNodes)
				}
				if !seen[f.Name] {
					seen[f.Name] = true
					out.fields = append(out.fields, f)
				}
			}
		}
	}
	return out, nil
}

var hexOrOctal = regexp.MustCompile(`^[-+]?0[xob]`)

func (r *reader) scalar(n *yaml.Node) (*Node, error) {
	out := &Node{At: r.at(n)}
	switch tag := n.ShortTag(); tag {
	case "!!null":
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, Errorf(out.At, "", "is not a boolean")
		}
		out.kind, out.scalar = Bool, strconv.FormatBool(b)
	case "!!int", "!!float":
		out.kind, out.scalar = Number, n.Value
		if !json.Valid([]byte(n.Value)) {
			text, ok := number(n)
			if !ok {
				return nil, Errorf(out.At, "", "%q is not a valid number", clip(n.Value))
			}
			out.scalar = text
		}
	case "!!str", "!!timestamp", "!":
		out.kind, out.scalar = Text, n.Value
	default:
		return nil, Errorf(out.At, "", "the tag %s is not supported", clip(tag))
	}
	return out, nil
}

// number writes a YAML number that JSON does not have, such as 0x10, 1_000 or .5.
func number(n *yaml.Node) (string, bool) {
	if hexOrOctal.MatchString(n.Value) || strings.Contains(n.Value, "_") {
		var i int64
		if n.Decode(&i) == nil {
			return strconv.FormatInt(i, 10), true
		}
	}
	var f float64
	if n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return "", false
	}
	return strconv.FormatFloat(f, 'g', -1, 64), true
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}

// parseJSON reads a JSON object. The YAML parser would reject tabs between its values.
func parseJSON(name string, raw []byte) (*Node, error) {
	j := jsonReader{file: name, raw: raw, d: json.NewDecoder(bytes.NewReader(raw)), line: 1}
	j.d.UseNumber()
	return j.value(0)
}

type jsonReader struct {
	file   string
	raw    []byte
	d      *json.Decoder
	nodes  int
	offset int // of the last place
	line   int
	start  int // of its line
}

// place is where the next value begins.
func (j *jsonReader) place() Position {
	to := int(j.d.InputOffset())
	for to < len(j.raw) && bytes.IndexByte([]byte(" \t\r\n,:"), j.raw[to]) >= 0 {
		to++
	}
	for ; j.offset < to; j.offset++ {
		if j.raw[j.offset] == '\n' {
			j.line++
			j.start = j.offset + 1
		}
	}
	return Position{j.file, j.line, to - j.start + 1}
}

func (j *jsonReader) value(depth int) (*Node, error) {
	at := j.place()
	if j.nodes++; j.nodes > maxNodes {
		return nil, Errorf(at, "", "has too many values; %d are allowed", maxNodes)
	}
	if depth > maxDepth {
		return nil, Errorf(at, "", "is nested too deeply; %d levels are allowed", maxDepth)
	}
	token, err := j.d.Token()
	if err != nil {
		return nil, Errorf(at, "", "is not valid JSON: %v", err)
	}
	switch v := token.(type) {
	case json.Delim:
		return j.compound(v, at, depth)
	case bool:
		return &Node{At: at, kind: Bool, scalar: strconv.FormatBool(v)}, nil
	case json.Number:
		return &Node{At: at, kind: Number, scalar: string(v)}, nil
	case string:
		return &Node{At: at, kind: Text, scalar: v}, nil
	}
	return &Node{At: at}, nil
}

func (j *jsonReader) compound(open json.Delim, at Position, depth int) (*Node, error) {
	out := &Node{At: at, kind: Map}
	if open == '[' {
		out.kind = List
	}
	seen := map[string]bool{}
	for j.d.More() {
		var f Field
		if out.kind == Map {
			f.At = j.place()
			token, err := j.d.Token()
			if err != nil {
				return nil, Errorf(f.At, "", "is not valid JSON: %v", err)
			}
			f.Name = fmt.Sprint(token)
			if seen[f.Name] {
				return nil, Errorf(f.At, "", "the key %q occurs twice", clip(f.Name))
			}
			seen[f.Name] = true
		}
		v, err := j.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if out.kind == List {
			out.items = append(out.items, v)
			continue
		}
		f.Value = v
		out.fields = append(out.fields, f)
	}
	_, err := j.d.Token()
	if err != nil {
		return nil, Errorf(at, "", "is not valid JSON: %v", err)
	}
	return out, nil
}
